"""Every clause's test catches the fault planted for it.

That torch passes without it is what ``autograd-conformance run torch`` shows.
"""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import settings

pytest.importorskip("torch")

from autograd_conformance.harness.outcomes import Broken
from autograd_conformance.harness.testing.profiles import PROFILES
from autograd_conformance.reference.clauses import CLAUSES
from autograd_conformance.selftests.conftest import unchanged_settings
from autograd_conformance.selftests.faults.clauses import FAULTS, FIXES
from autograd_conformance.selftests.faults.clauses.definitions import (
    TORCH,
    caught,
    checks_of,
    deviations_of,
    every_test,
    held,
    raised_by,
)

pytestmark = pytest.mark.skipif(
    settings.default.max_examples < PROFILES["gate"].examples, reason="skip: needs the examples of the profile gate"
)


@pytest.fixture(autouse=True)
def settings_stay():
    """A planted fault may leave a setting changed, which is set back."""
    with suppress(pytest.fail.Exception), unchanged_settings():
        yield


SLOW = {claim.clause.id for claim, _ in every_test() if claim.slow}


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_the_fault_is_caught(fault):
    raised = caught(fault, FIXES)
    found = [each for each in raised if isinstance(each, Broken)]
    assert found, f"not caught: {fault.words or CLAUSES[fault.id].fault}; raised: {raised!r}"
    message = str(found[0])
    assert message.startswith(f"{fault.id} must hold: {CLAUSES[fault.id].sentence}")
    missing = [words for words in fault.says if words not in message]
    assert not missing, f"{missing} not in: {message}"


def test_a_mode_that_stays_fails_no_other_test():
    import torch

    (fault,) = (f for f in FAULTS if f.words == "an exception that leaves enable_grad switches grad mode off")
    assert caught(fault, FIXES)
    assert torch.is_grad_enabled()


@pytest.mark.parametrize("fault", [f for f in FAULTS if f.id not in SLOW], ids=str)
def test_the_fault_breaks_no_other_clause_of_the_group(fault):
    allowed = {fault.id, *fault.neighbours} | SLOW
    group = [c for c in CLAUSES.values() if c.group == CLAUSES[fault.id].group and c.id not in allowed]
    pairs = [pair for clause in group for pair in checks_of(clause.id)]
    with fault.install():
        found = {
            claim.clause.id: raised_by(claim, test, examples=0.2)
            for claim, test in pairs
            if not deviations_of(claim) and not _too_new(claim)
        }
    assert {name: raised for name, raised in found.items() if raised is not None} == {}


@pytest.mark.parametrize("fix", FIXES, ids=lambda fix: fix.clause)
def test_what_is_listed_can_hold(fix):
    assert held(fix) == []


def _too_new(claim):
    return claim.clause.since and TORCH.predates(claim.clause.since)
