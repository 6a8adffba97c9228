"""What can be separated catches the faults planted for it in the process under test, and accepts their twins there."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest
from hypothesis import settings

pytest.importorskip("torch")

from autograd_conformance.harness.checking.profiles import PROFILES
from autograd_conformance.harness.outcomes import named
from autograd_conformance.harness.running.separation import SEPARABLE
from autograd_conformance.implementations.separate import Separate
from autograd_conformance.selftests import warm
from autograd_conformance.selftests.planted import checks
from autograd_conformance.selftests.separated import FAULTS, FAULTY, TWINS, place_of

# With fewer examples than the gate's nothing is claimed.
pytestmark = [
    pytest.mark.skipif(
        settings.default.max_examples < PROFILES["gate"].examples, reason="skip: needs the examples of the profile gate"
    ),
]

NAMES = pytest.mark.parametrize("name", FAULTS, ids=lambda name: f"{name}-{FAULTS[name]}")


@pytest.fixture(scope="module")
def opened() -> Iterator[object]:
    """The adapter at a place, in a process of its own until the last test has ended."""
    found: list[Separate] = []

    @cache
    def at(place: str, device: str) -> Separate:
        # Each is a fork of a process that has torch in memory.
        started = Separate(place, warm.interpreter(torch=True))
        started.limit_threads()
        started.start_device(device)
        found.append(started)
        return started

    yield at
    for each in found:
        each.close()


@NAMES
def test_the_fault_is_caught(opened, name):
    planted = FAULTS[name]
    implementation = opened(place_of(name), planted.device)
    raised = checks.caught(planted.property_id, planted.variant, FAULTY[name], implementation, planted.device)
    assert isinstance(raised, planted.raises), f"not caught: {planted.fault}; raised: {raised!r}"
    missing = [words for words in planted.says if words not in str(raised)]
    assert not missing, f"{missing} not in: {raised}"


@NAMES
def test_the_twin_is_accepted(opened, name):
    planted = FAULTS[name]
    implementation = opened(place_of(name, twin=True), planted.device)
    raised = checks.raised_by(planted.property_id, planted.variant, TWINS[name], implementation, planted.device)
    assert raised is None, f"{planted.twin.name} is right, but: {raised}"


def test_each_test_that_can_be_separated_has_a_fault():
    assert {named(planted.property_id, planted.variant) for planted in FAULTS.values()} == set(SEPARABLE)
