"""The tests of a user's Function, run again with one given call instead of drawn ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from autograd_conformance.harness.checking.drawing import prepare
from autograd_conformance.harness.checking.marks import TESTS, Claim
from autograd_conformance.harness.checking.subject import Subject
from autograd_conformance.harness.outcomes import Broken, OutOfTime
from autograd_conformance.strategies.calls import Call


def replayed(subject: Subject, test: Any, call: Call, examples: int = 1) -> tuple[bool, Broken | None]:
    """Whether a test holds with this call, and its failure if not; neither if that is unknown.

    It runs ``examples`` times, because it may draw more than the call.
    """
    claim = test.claim
    assert isinstance(claim, Claim)
    record = subject.record.another()
    this = replace(
        subject, property_id=claim.property_id, variant=claim.variant, record=record, replayed=call, excluded=(),
        choices={}, tried=[],
    )  # fmt: skip
    prepare(test, this.key["id"], 0, examples=1, least=examples, shrink=False)
    try:
        test(subject=this)
    except Broken as broken:
        return False, broken
    except (Exception, OutOfTime):  # noqa: BLE001 - such a call cannot be tested
        return False, None
    return record.checks > 0 and not record.excused, None


def fails(subject: Subject, name: str, call: Call, examples: int = 1) -> bool:
    """Whether a test of this name, such as VJP-PURE/owned, fails with this call because of what it compares."""
    found = (replayed(subject, test, call, examples)[1] for test in TESTS.get(name, ()))
    return any(broken is not None and not broken.finding.is_loud for broken in found)
