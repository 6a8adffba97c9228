"""How a test says which property or clause it checks, and on which Functions and implementations."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autograd_conformance.harness.clauses import ClauseSubject
from autograd_conformance.harness.outcomes import named
from autograd_conformance.harness.profiles import number
from autograd_conformance.harness.subject import Subject
from autograd_conformance.implementations.protocol import CAPABILITIES
from autograd_conformance.reference.clauses import CLAUSES
from autograd_conformance.reference.clauses.definitions import Clause
from autograd_conformance.reference.definitions import FLOATING, Function
from autograd_conformance.reference.properties import PROPERTIES


def _every(_: Function) -> bool:
    return True


@dataclass(frozen=True)
class Claim:
    """What a test checks: a property, of the Functions that ``where`` picks, given the capabilities it ``needs``."""

    property_id: str
    where: Callable[[Function], bool]
    needs: frozenset[str]
    dtypes: tuple[str, ...]
    variant: str
    simulated: bool
    abstract: bool
    slow: bool
    looks_inside: bool = False

    @property
    def id(self) -> str:
        """What the test stands for."""
        return self.property_id

    @property
    def test(self) -> str:
        """The property's id, with the variant of the test."""
        return named(self.property_id, self.variant)


@dataclass(frozen=True)
class ClauseClaim:
    """What a test checks: a clause, given the capabilities it ``needs``, on every device or on accelerators only."""

    clause: Clause
    needs: frozenset[str]
    variant: str
    slow: bool
    accelerator: bool

    @property
    def id(self) -> str:
        """What the test stands for."""
        return self.clause.id


AnyClaim = Claim | ClauseClaim


def holds(
    property_id: str,
    *,
    where: Callable[[Function], bool] = _every,
    needs: str = "",
    dtypes: tuple[str, ...] = FLOATING,
    examples: float = 1.0,
    variant: str = "",
    simulated: bool = False,
    abstract: bool = False,
    slow: bool = False,
    looks_inside: bool = False,
) -> Callable[[Callable[..., None]], Any]:
    """Mark a test ``(subject, data)`` as the check of a property.

    ``examples`` scales the profile's number of examples; ``dtypes`` restricts those of the calls; ``variant`` tells
    apart the tests that check different sides of one property. A ``simulated`` test runs on the implementation's
    simulated devices and on every accelerator, an ``abstract`` one on those of its devices that hold no values; a
    ``slow`` one is left out of profiles that are not thorough. One that ``looks_inside`` sees nothing of a callable
    that is no Function class.
    """
    unknown = {property_id} - PROPERTIES.keys() | set(needs.split()) - CAPABILITIES.keys()
    if unknown:
        raise ValueError(f"unknown property or capability: {', '.join(sorted(unknown))}")
    claim = Claim(
        property_id, where, frozenset(needs.split()), dtypes, variant, simulated, abstract, slow, looks_inside
    )

    def decorate(test: Callable[..., None]) -> Any:
        @functools.wraps(test)
        def checked(subject: Subject, data: Any) -> None:
            __tracebackhide__ = True
            with subject.blaming_the_function():
                test(subject, data)

        return pytest.mark.conformance(claim)(_generated(checked, examples))

    return decorate


def keeps(
    clause_id: str,
    *,
    needs: str = "",
    examples: float = 1.0,
    variant: str = "",
    slow: bool = False,
    accelerator: bool = False,
) -> Callable[[Callable[..., None]], Any]:
    """Mark a test ``(subject, data)`` as the check of a clause.

    ``needs`` adds capabilities to the clause's own; the other words are those of `holds`. A test of an ``accelerator``
    is skipped where there is none.
    """
    unknown = {clause_id} - CLAUSES.keys() | set(needs.split()) - CAPABILITIES.keys()
    if unknown:
        raise ValueError(f"unknown clause or capability: {', '.join(sorted(unknown))}")
    if re.fullmatch(r"[a-z0-9_-]*", variant) is None:
        raise ValueError(f"a variant is a word of small letters, digits, - and _: {variant!r}")
    clause = CLAUSES[clause_id]
    claim = ClauseClaim(clause, frozenset((*clause.needs.split(), *needs.split())), variant, slow, accelerator)

    def decorate(test: Callable[..., None]) -> Any:
        @functools.wraps(test)
        def checked(subject: ClauseSubject, data: Any) -> None:
            __tracebackhide__ = True
            with subject.blaming_the_implementation():
                test(subject, data)

        return pytest.mark.conformance(claim)(_generated(checked, examples))

    return decorate


def _generated(test: Callable[..., None], examples: float) -> Any:
    """The test as Hypothesis runs it: with ``examples`` times the profile's number of examples."""
    count = number(examples, settings.default.max_examples)  # type: ignore[union-attr]
    generated: Any = settings(max_examples=count)(given(data=st.data())(test))
    generated.conformance_share = examples
    return generated
