"""What a planted fault of a clause is, and how its test is run on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any

from autograd_conformance.harness.outcomes import Broken
from autograd_conformance.harness.testing.clauses import ClauseSubject
from autograd_conformance.harness.testing.marks import ClauseClaim
from autograd_conformance.implementations.deviations import Deviation
from autograd_conformance.implementations.protocol import Implementation
from autograd_conformance.implementations.torch import TorchImplementation
from autograd_conformance.selftests.faults import planting
from autograd_conformance.selftests.faults.planting import Fault, checks_in
from autograd_conformance.suites import contract
from autograd_conformance.suites.dialects import torch as dialect

TORCH = TorchImplementation()

# The share of the examples with which a fault is looked for first.
FEW = 0.2


@dataclass(frozen=True)
class Fix:
    """A change of the process with which a clause holds that torch is listed not to keep.

    ``install`` None means that the suite's model keeps it.
    """

    clause: str
    install: Callable[[], AbstractContextManager[Any]] | None = None
    variant: str = ""


@cache
def every_test() -> tuple[tuple[ClauseClaim, Any], ...]:
    """Every test of a clause that torch runs, with its claim."""
    return checks_in(contract, dialect)


def checks_of(clause_id: str) -> list[tuple[ClauseClaim, Any]]:
    """The tests of a clause."""
    return [(claim, test) for claim, test in every_test() if claim.clause.id == clause_id]


def raised_by(
    claim: ClauseClaim, test: Any, implementation: Implementation = TORCH, examples: float = 1.0
) -> BaseException | None:
    """What `planting.raised_by` gives, on torch unless another one is given."""
    return planting.raised_by(claim, test, implementation, examples=examples)


def caught(fault: Fault, fixes: Sequence[Fix]) -> list[BaseException]:
    """What the tests of the clause raise because of the fault, up to the first that says so.

    Those that torch is listed to fail are asked if no other does. The finding that torch causes without the fault does
    not count: there the fault is planted into fixed torch.
    """
    unlisted = [check for check in checks_of(fault.id) if not deviations_of(check[0])]
    # A few examples find most faults, and spare the tests that find none.
    few = next((r for c in unlisted if isinstance(r := _raised_with(fault, *c, examples=FEW), Broken)), None)
    if few is not None:
        return [few]
    listed = [check for check in checks_of(fault.id) if deviations_of(check[0])]
    return _until_broken(_raised_with(fault, *check) for check in unlisted) or _until_broken(
        _raised_of_listed(fault, fixes, *check) for check in listed
    )


def _until_broken(raised: Iterable[BaseException | None]) -> list[BaseException]:
    """What was raised, up to the first that says that the clause is broken."""
    found = []
    for each in raised:
        if each is not None:
            found.append(each)
        if isinstance(each, Broken):
            break
    return found


def _raised_with(fault: Fault, claim: ClauseClaim, test: Any, examples: float = 1.0) -> BaseException | None:
    with fault.install():
        return raised_by(claim, test, examples=examples)


def _raised_of_listed(fault: Fault, fixes: Sequence[Fix], claim: ClauseClaim, test: Any) -> BaseException | None:
    raised = _raised_with(fault, claim, test)
    return _raised_on_fixed(claim, test, fault, fixes) if _is_listed(claim, raised) else raised


def _is_listed(claim: ClauseClaim, raised: BaseException | None) -> bool:
    return isinstance(raised, Broken) and any(d.covers(raised.finding.as_json()) for d in deviations_of(claim))


def _raised_on_fixed(claim: ClauseClaim, test: Any, fault: Fault, fixes: Sequence[Fix]) -> BaseException | None:
    here = (claim.clause.id, claim.variant)
    for fix in fixes:
        if (fix.clause, fix.variant) == here and fix.install is not None:
            with fix.install(), fault.install():
                return raised_by(claim, test)
    return None


def deviations_of(claim: ClauseClaim) -> tuple[Deviation, ...]:
    """What torch is listed not to keep of what the test checks."""
    return ClauseSubject(TORCH, claim.clause, "cpu", claim.variant).deviations


def held(fix: Fix) -> list[BaseException]:
    """What the listed tests of the clause still raise with the fix."""
    found = []
    for claim, test in checks_of(fix.clause):
        if claim.variant == fix.variant:
            with (fix.install or nullcontext)():
                found.append(raised_by(claim, test, TORCH if fix.install else model()))
    return [raised for raised in found if raised is not None]


@cache
def model() -> Implementation:
    from autograd_conformance.implementations.model import ModelImplementation

    return ModelImplementation()
