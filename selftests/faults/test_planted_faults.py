"""Every property and every assertion catches the faults planted for it, and accepts their correct twins."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import settings

pytest.importorskip("torch")

from autograd_conformance.harness.outcomes import Broken, Record, Vacuous, named
from autograd_conformance.harness.running.results import json_of
from autograd_conformance.harness.scripts.script import script_for
from autograd_conformance.harness.testing.assertions import Assertions
from autograd_conformance.harness.testing.profiles import PROFILES
from autograd_conformance.harness.testing.subject import Subject
from autograd_conformance.implementations.model import ModelImplementation
from autograd_conformance.implementations.torch import TorchImplementation
from autograd_conformance.reference.properties import PROPERTIES
from autograd_conformance.selftests.faults.planting import Fault
from autograd_conformance.selftests.faults.properties import PLANTED, checks
from autograd_conformance.selftests.faults.properties.definitions import TORCH
from autograd_conformance.selftests.support import scripts
from autograd_conformance.strategies.calls import parse

# With fewer examples than the gate's nothing is claimed.
pytestmark = pytest.mark.skipif(
    settings.default.max_examples < PROFILES["gate"].examples, reason="skip: needs the examples of the profile gate"
)

# The verbs that can fail, without those of which the tests are for users' Functions alone.
VERBS = {
    name
    for kind in (Subject, Assertions, Record)
    for name in vars(kind)
    if name.startswith(("assert_", "verify_")) or name in ("fail", "blaming_the_function")
} - {"assert_among_slopes", "assert_exists", "assert_precise", "assert_unbiased", "verify_reference"}


@cache
def started(planted: Fault) -> None:
    """Start the device on which a fault is planted, once."""
    planted.wrong.implementation.start_device(planted.wrong.device)


@cache
def outcome(planted: Fault) -> BaseException | None:
    """What the property's check raises on the fault."""
    started(planted)
    return checks.caught(planted.id, planted.variant, planted.wrong)


@pytest.mark.parametrize("planted", PLANTED, ids=str)
def test_the_fault_is_caught(planted):
    raised = outcome(planted)
    assert isinstance(raised, planted.raises), f"not caught: {planted.words}; raised: {raised!r}"
    missing = [words for words in planted.says if words not in str(raised)]
    assert not missing, f"{missing} not in: {raised}"


@pytest.mark.parametrize("planted", [p for p in PLANTED if p.raises is Broken], ids=str)
def test_the_message_names_a_call_that_can_be_read_back(planted):
    raised = outcome(planted)
    assert str(raised).startswith(f"{planted.id} must hold: {PROPERTIES[planted.id].sentence}")
    (line,) = [line for line in str(raised).splitlines() if line.startswith("  call: ")]
    call = parse(line.removeprefix("  call: "))
    assert call.function == planted.wrong.function.name
    assert repr(call) == raised.finding.call


# Faults that a script cannot show, with words of the reason.
NO_SCRIPT = {
    "VJP-REPEAT-CallsCounted": "earlier calls",
    "VJP-REPEAT-RememberedByShape": "earlier calls",
    "VJP-REPEAT-StateOfTheLastCall": "earlier calls",
    "VJP-REPEAT-SharedOutput": "earlier calls",
    "VJP-CHAIN-instances-StateOfTheLastCall": "several calls",
    **{str(p): "settings of the process" for p in PLANTED if p.id == "ENV-SETTINGS"},
    "ENV-THREADS-SharedScratch": "threads",
    "ENV-THREADS-StateOfTheLastCall": "threads",
}

# Header included. What is not a plain value or gradient needs a few lines more at most.
LINES = 40


@pytest.mark.parametrize("planted", [p for p in PLANTED if p.raises is Broken], ids=str)
def test_the_script_shows_the_fault_and_accepts_the_twin(planted):
    failure = json_of(outcome(planted).finding.as_json())
    test = named(planted.id, planted.variant)
    text, reason = script_for(planted.wrong.implementation, planted.wrong.function, test, failure, scripts.SOURCE)
    if planted.wrong.implementation is not TORCH or str(planted) in NO_SCRIPT:
        engine = "adapter" if isinstance(planted.wrong.implementation, TorchImplementation) else "not written for"
        assert text is None
        assert NO_SCRIPT.get(str(planted), engine) in reason
        return
    assert text is not None, reason
    assert scripts.status(text, Function=scripts.body_of(planted.wrong.function)) == scripts.shown_by(failure), text
    assert scripts.status(text, Function=scripts.body_of(planted.twin.function)) == 0, text
    assert len(text.splitlines()) <= LINES
    assert "from autograd_conformance" not in text


# Many faults have one twin.
TWINS = {(p.id, p.variant, p.twin.function.name, id(p.twin.implementation), p.twin.device): p for p in PLANTED}


@pytest.mark.parametrize("planted", TWINS.values(), ids=lambda p: f"{p.id}-{p.variant}-{p.twin.function.name}")
def test_the_twin_is_accepted(planted):
    started(planted)
    raised = checks.raised_by(planted.id, planted.variant, planted.twin)
    assert raised is None, f"{planted.twin.function.name} is right, but: {raised}"


@pytest.mark.parametrize(("checks_made", "inconclusive"), [(0, 0), (4, 3), (1, 1)])
def test_what_is_mostly_inconclusive_is_vacuous(checks_made, inconclusive):
    with pytest.raises(Vacuous):
        Record(checks=checks_made, inconclusive=inconclusive).verify_exercised()
    Record(checks=4, inconclusive=2).verify_exercised()


def test_slices_of_one_buffer_share_no_memory():
    for implementation in (TorchImplementation(), ModelImplementation()):
        whole = implementation.array(np.zeros((3, 4)), "float64", "cpu")
        left, right = whole[:, :2], whole[:, 2:]
        assert not implementation.shares_memory(left, right)
        assert implementation.shares_memory(left, whole[1:])


def test_names_are_unique():
    names = [str(planted) for planted in PLANTED]
    assert len(names) == len(set(names))


def test_every_property_has_a_planted_fault():
    # `test_own_relations` has those of what users declare.
    assert {planted.id for planted in PLANTED} == {p.id for p in PROPERTIES.values() if not p.own}


def test_every_variant_has_a_planted_fault():
    variants = {(claim.property_id, claim.variant) for claim, _ in checks.tests()}
    assert {(planted.id, planted.variant) for planted in PLANTED} == variants


def test_every_verb_has_a_fault_that_it_catches():
    caught = set().union(*(checks.frames_of(outcome(planted)) for planted in PLANTED))
    assert caught >= VERBS


def test_a_refusal_is_accepted_where_a_wrong_number_is_not():
    (silent,) = [p for p in PLANTED if str(p) == "VJP-INPLACE-SAFE-InputOnCtx"]
    assert isinstance(outcome(silent), Broken)
    subject = checks.checked(silent.id, silent.variant, silent.twin)
    assert subject.record.refused > 0
