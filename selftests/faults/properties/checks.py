"""Runs the check of a property on a Function, as the plugin does, without pytest."""

from __future__ import annotations

import pkgutil
import traceback
import warnings
from functools import cache
from importlib import import_module
from typing import Any

from autograd_conformance.harness.testing import drawing
from autograd_conformance.harness.testing.marks import Claim, claims_in
from autograd_conformance.harness.testing.subject import Subject
from autograd_conformance.implementations.protocol import Implementation
from autograd_conformance.reference.definitions import Function
from autograd_conformance.selftests.faults import planting
from autograd_conformance.selftests.faults.planting import Case
from autograd_conformance.suites import functions as suite

SEEDS = 4


@cache
def tests() -> tuple[tuple[Claim, Any], ...]:
    """Every test that documented Functions get, with its claim; `test_own_planted` runs those of users' Functions."""
    modules = [import_module(f"{suite.__name__}.{found.name}") for found in pkgutil.iter_modules(suite.__path__)]
    found = (pair for module in modules for pair in claims_in(module))
    return tuple((claim, test) for claim, test in found if isinstance(claim, Claim) and not claim.own)


def tests_of(
    property_id: str, function: Function, implementation: Implementation, device: str
) -> list[tuple[Claim, Any]]:
    """The tests that check a property of a Function there."""
    abstract, simulated = device in implementation.abstract_devices(), device in implementation.simulated_devices()
    return [
        (claim, test)
        for claim, test in tests()
        if claim.property_id == property_id
        and claim.where(function)
        and (claim.abstract, claim.simulated) == (abstract, simulated)
        and claim.needs <= implementation.capabilities
        and set(claim.dtypes) & set(function.dtypes)
    ]


def check(
    claim: Claim, test: Any, function: Function, implementation: Implementation, device: str = "cpu", seed: int = 0
) -> Subject:
    """Run a test. Raises Broken where the property does not hold, Vacuous where nothing was checked."""
    subject = Subject(implementation, function, device, claim.property_id, variant=claim.variant, allowed=claim.dtypes)
    drawing.prepare(test, f"{claim.property_id}:{claim.variant}:{function.name}", seed)
    test(subject)
    subject.record.verify_exercised()
    return subject


def checked(property_id: str, variant: str, case: Case, seed: int = 0) -> Subject:
    """The subject of the one test of a property's variant, after it ran."""
    found = tests_of(property_id, case.function, case.implementation, case.device)
    ((claim, test),) = [(claim, test) for claim, test in found if claim.variant == variant]
    return check(claim, test, case.function, case.implementation, case.device, seed)


def raised_by(property_id: str, variant: str, case: Case, seed: int = 0) -> BaseException | None:
    """What `checked` raises; of a group the first."""
    with warnings.catch_warnings():
        # What is verified is the verdict, not what a framework warns of on the way.
        warnings.simplefilter("ignore")
        return planting.raised_by(property_id, variant, case, seed, by=checked)


def caught(property_id: str, variant: str, case: Case) -> BaseException | None:
    """What `raised_by` gives for the first of a few seeds with which it raises.

    One run of the gate meets a rare size, layout or interleaving of threads only with luck.
    """
    raised = (raised_by(property_id, variant, case, seed) for seed in range(SEEDS))
    return next((each for each in raised if each is not None), None)


def frames_of(raised: BaseException | None) -> set[str]:
    """The names of the functions that an exception came through."""
    return {frame.name for frame in traceback.extract_tb(raised.__traceback__)} if raised else set()
