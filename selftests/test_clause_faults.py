"""Every clause's test catches the fault planted for it, and torch without it passes."""

from __future__ import annotations

import pytest
from hypothesis import settings

pytest.importorskip("torch")

from autograd_conformance.harness.checking.profiles import PROFILES
from autograd_conformance.harness.outcomes import Broken
from autograd_conformance.reference.clauses import CLAUSES
from autograd_conformance.selftests.planted_clauses import FAULTS, MENDS
from autograd_conformance.selftests.planted_clauses.definitions import (
    TORCH,
    caught,
    checks_of,
    deviation_of,
    every_test,
    held,
    raised_by,
)

pytestmark = pytest.mark.skipif(
    settings.default.max_examples < PROFILES["gate"].examples, reason="skip: needs the examples of the profile gate"
)

SLOW = {claim.clause.id for claim, _ in every_test() if claim.slow}


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_the_fault_is_caught(fault):
    raised = caught(fault, MENDS)
    found = [each for each in raised if isinstance(each, Broken)]
    assert found, f"not caught: {fault.words or CLAUSES[fault.clause].fault}; raised: {raised!r}"
    message = str(found[0])
    assert message.startswith(f"{fault.clause}: {CLAUSES[fault.clause].sentence}")
    missing = [words for words in fault.says if words not in message]
    assert not missing, f"{missing} not in: {message}"


@pytest.mark.parametrize("fault", [f for f in FAULTS if f.clause not in SLOW], ids=str)
def test_the_fault_breaks_no_other_clause_of_the_group(fault):
    allowed = {fault.clause, *fault.neighbours} | SLOW
    group = [c for c in CLAUSES.values() if c.group == CLAUSES[fault.clause].group and c.id not in allowed]
    pairs = [pair for clause in group for pair in checks_of(clause.id)]
    with fault.install():
        found = {
            claim.clause.id: raised_by(claim, test, examples=0.2)
            for claim, test in pairs
            if deviation_of(claim) is None and not _too_new(claim)
        }
    assert {name: raised for name, raised in found.items() if raised is not None} == {}


@pytest.mark.parametrize(("claim", "test"), every_test(), ids=lambda value: getattr(value, "__name__", ""))
def test_torch_passes_but_for_what_is_listed(claim, test):
    if _too_new(claim):
        pytest.skip(f"skip: torch {TORCH.environment().version} is older than {claim.clause.since}")
    raised = raised_by(claim, test)
    assert isinstance(raised, Broken) if deviation_of(claim) else raised is None, raised


@pytest.mark.parametrize("mend", MENDS, ids=lambda mend: mend.clause)
def test_what_is_listed_can_hold(mend):
    assert held(mend) == []


def _too_new(claim):
    return claim.clause.since and TORCH.predates(claim.clause.since)
