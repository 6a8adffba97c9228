"""Decorators that mark a test with the property or clause that it checks."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from autograd_conformance.harness.outcomes import named
from autograd_conformance.harness.testing.clauses import ClauseSubject
from autograd_conformance.harness.testing.drawing import number
from autograd_conformance.harness.testing.examined import naming_what_is_missing
from autograd_conformance.harness.testing.subject import Subject
from autograd_conformance.implementations.protocol import CAPABILITIES
from autograd_conformance.reference.clauses import CLAUSES
from autograd_conformance.reference.clauses.definitions import Clause
from autograd_conformance.reference.definitions import FLOATING, Function
from autograd_conformance.reference.properties import PROPERTIES


def _every(_: Function) -> bool:
    return True


@dataclass(frozen=True)
class Claim:
    """The property that a test checks, for the Functions that ``where`` selects; see `holds` for the other fields."""

    property_id: str
    where: Callable[[Function], bool]
    needs: frozenset[str]
    dtypes: tuple[str, ...]
    variant: str
    simulated: bool
    abstract: bool
    slow: bool
    looks_inside: bool = False
    own: bool = False

    @property
    def id(self) -> str:
        """The id of the property."""
        return self.property_id

    @property
    def test(self) -> str:
        """The property's id, with the variant of the test."""
        return named(self.property_id, self.variant)


@dataclass(frozen=True)
class ClauseClaim:
    """The clause that a test checks; see `keeps` for the fields."""

    clause: Clause
    needs: frozenset[str]
    variant: str
    slow: bool
    accelerator: bool

    @property
    def id(self) -> str:
        """The id of the clause."""
        return self.clause.id


AnyClaim = Claim | ClauseClaim

# The tests of properties by their names, such as VJP-FD or VJP-FD/long, of the suites that are imported.
TESTS: dict[str, list[Any]] = {}


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
    own: bool = False,
) -> Callable[[Callable[..., None]], Any]:
    """Mark a test ``(subject, data)`` as a check of a property.

    Args:
        property_id: The id of the property.
        where: Selects the Functions that get the test.
        needs: The capabilities that the test needs, separated by spaces.
        dtypes: The dtypes of its calls.
        examples: A factor on the profile's number of examples.
        variant: Distinguishes several tests of one property.
        simulated: Whether it runs on simulated devices and accelerators, instead of the usual devices.
        abstract: Whether it runs on devices without values, instead of the usual devices.
        slow: Whether only thorough profiles run it.
        looks_inside: Whether it observes forward and backward, so that it needs a Function class.
        own: Whether only users' Functions get it.
    """
    unknown = {property_id} - PROPERTIES.keys() | set(needs.split()) - CAPABILITIES.keys()
    if unknown:
        raise ValueError(f"unknown property or capability: {', '.join(sorted(unknown))}")
    claim = Claim(
        property_id, where, frozenset(needs.split()), dtypes, variant, simulated, abstract, slow, looks_inside, own
    )

    def decorate(test: Callable[..., None]) -> Any:
        @functools.wraps(test)
        def checked(subject: Subject, data: Any) -> None:
            __tracebackhide__ = True
            with subject.blaming_the_function(), naming_what_is_missing(subject.implementation):
                test(subject, data)

        generated = _claiming(claim, _generated(checked, examples))
        TESTS.setdefault(claim.test, []).append(generated)
        return generated

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
    """Mark a test ``(subject, data)`` as a check of a clause.

    ``needs`` adds capabilities to those of the clause. A test for an ``accelerator`` is skipped if there is none. The
    other arguments are those of `holds`.
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
            with subject.blaming_the_implementation(), naming_what_is_missing(subject.implementation):
                test(subject, data)

        return _claiming(claim, _generated(checked, examples))

    return decorate


def _claiming(claim: AnyClaim, test: Any) -> Any:
    # Not a pytest mark: marks must be registered, and a user's own suite does not load the plugin.
    test.claim = claim
    return test


def claim_of(test: Any) -> AnyClaim | None:
    """The claim of a test function, or None."""
    claim = getattr(test, "claim", None)
    return claim if isinstance(claim, AnyClaim) else None


def claims_in(module: ModuleType) -> Iterator[tuple[AnyClaim, Any]]:
    """The tests of a module, each with its claim."""
    for test in vars(module).values():
        claim = claim_of(test)
        if claim is not None:
            yield claim, test


def _generated(test: Callable[..., None], examples: float) -> Any:
    """The test as a Hypothesis test with ``examples`` times the profile's number of examples."""
    count = number(examples, settings.default.max_examples)  # type: ignore[union-attr]
    generated: Any = settings(max_examples=count)(given(data=st.data())(test))
    generated.conformance_share = examples
    return generated
