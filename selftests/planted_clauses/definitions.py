"""What a planted fault of a clause is, and how its test is run on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any

from autograd_conformance.harness.checking.clauses import ClauseSubject
from autograd_conformance.harness.checking.marks import ClauseClaim
from autograd_conformance.harness.outcomes import Broken
from autograd_conformance.implementations.deviations import Deviation
from autograd_conformance.implementations.protocol import Implementation
from autograd_conformance.implementations.torch import TorchImplementation
from autograd_conformance.selftests import planting
from autograd_conformance.selftests.planting import Fault, checks_in
from autograd_conformance.suites import contract
from autograd_conformance.suites.dialects import torch as dialect

TORCH = TorchImplementation()


@dataclass(frozen=True)
class Mend:
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
    """What `planting.raised_by` gives, on torch unless told otherwise."""
    return planting.raised_by(claim, test, implementation, examples=examples)


def caught(fault: Fault, mends: Sequence[Mend]) -> list[BaseException]:
    """What the tests of the clause raise because of the fault.

    Those that torch is listed to fail are asked if no other does. The finding that torch causes without the fault does
    not count: there the fault is planted into mended torch.
    """
    unlisted = [_raised_with(fault, *check) for check in checks_of(fault.clause) if deviation_of(check[0]) is None]
    listed = (_raised_of_listed(fault, mends, *check) for check in checks_of(fault.clause) if deviation_of(check[0]))
    return [raised for raised in unlisted if raised] or [raised for raised in listed if raised]


def _raised_with(fault: Fault, claim: ClauseClaim, test: Any) -> BaseException | None:
    with fault.install():
        return raised_by(claim, test)


def _raised_of_listed(fault: Fault, mends: Sequence[Mend], claim: ClauseClaim, test: Any) -> BaseException | None:
    raised = _raised_with(fault, claim, test)
    return _raised_on_mended(claim, test, fault, mends) if _is_listed(claim, raised) else raised


def _is_listed(claim: ClauseClaim, raised: BaseException | None) -> bool:
    deviation = deviation_of(claim)
    return isinstance(raised, Broken) and deviation is not None and deviation.covers(raised.finding.as_json())


def _raised_on_mended(claim: ClauseClaim, test: Any, fault: Fault, mends: Sequence[Mend]) -> BaseException | None:
    here = (claim.clause.id, claim.variant)
    for mend in mends:
        if (mend.clause, mend.variant) == here and mend.install is not None:
            with mend.install(), fault.install():
                return raised_by(claim, test)
    return None


def deviation_of(claim: ClauseClaim) -> Deviation | None:
    """What torch is listed not to keep of what the test checks."""
    return ClauseSubject(TORCH, claim.clause, "cpu", claim.variant).deviation


def held(mend: Mend) -> list[BaseException]:
    """What the listed tests of the clause still raise with the mend."""
    found = []
    for claim, test in checks_of(mend.clause):
        if claim.variant == mend.variant:
            with (mend.install or nullcontext)():
                found.append(raised_by(claim, test, TORCH if mend.install else model()))
    return [raised for raised in found if raised is not None]


@cache
def model() -> Implementation:
    from autograd_conformance.implementations.model import ModelImplementation

    return ModelImplementation()
