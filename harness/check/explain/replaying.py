"""The tests of a user's Function, run again with one given call instead of drawn ones."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from autograd_conformance.harness.check.declaration.declaration import Own
from autograd_conformance.harness.outcomes import Broken, Kind, OutOfTime
from autograd_conformance.harness.testing.drawing import prepare
from autograd_conformance.harness.testing.marks import TESTS, Claim
from autograd_conformance.harness.testing.own_faults import noticed
from autograd_conformance.harness.testing.subject import Subject
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
    except (Exception, OutOfTime) as raised:  # noqa: BLE001 - such a call cannot be tested
        noticed(raised)
        return False, None
    return record.checks > 0 and not record.excused, None


def fails(subject: Subject, name: str, call: Call, examples: int = 1, kinds: Collection[Kind] = tuple(Kind)) -> bool:
    """Whether a test of this name, such as VJP-PURE/owned, fails with this call because of what it compares.

    Only failures of these ``kinds`` count, and only tests that the Function gets.
    """
    tests = (test for test in TESTS[name] if _applies(subject, test.claim))
    found = (replayed(subject, test, call, examples)[1] for test in tests)
    return any(b is not None and not b.finding.is_loud and b.finding.kind in kinds for b in found)


def _applies(subject: Subject, claim: Claim) -> bool:
    assert isinstance(subject.function, Own)
    function = subject.function
    sees = function.sees_inside or not claim.looks_inside
    has = claim.needs <= subject.implementation.capabilities
    return sees and has and claim.where(function) and function.wants(claim)
