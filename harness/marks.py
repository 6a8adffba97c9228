"""How a test says which property it checks, and on which Functions and implementations."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autograd_conformance.harness.subject import Subject
from autograd_conformance.implementations.protocol import CAPABILITIES
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
) -> Callable[[Callable[..., None]], Any]:
    """Mark a test ``(subject, data)`` as the check of a property.

    ``examples`` scales the profile's number of examples; ``dtypes`` restricts those of the calls; ``variant`` tells
    apart the tests that check different sides of one property. A ``simulated`` test runs on the implementation's
    simulated devices and on every accelerator, an ``abstract`` one on those of its devices that hold no values; a
    ``slow`` one is left out of profiles that are not thorough.
    """
    unknown = {property_id} - PROPERTIES.keys() | set(needs.split()) - CAPABILITIES.keys()
    if unknown:
        raise ValueError(f"unknown property or capability: {', '.join(sorted(unknown))}")
    claim = Claim(property_id, where, frozenset(needs.split()), dtypes, variant, simulated, abstract, slow)

    def decorate(test: Callable[..., None]) -> Any:
        @functools.wraps(test)
        def checked(subject: Subject, data: Any) -> None:
            __tracebackhide__ = True
            with subject.blaming_the_function():
                test(subject, data)

        count = max(1, round(examples * settings.default.max_examples))  # type: ignore[union-attr]
        return pytest.mark.conformance(claim)(settings(max_examples=count)(given(data=st.data())(checked)))

    return decorate
