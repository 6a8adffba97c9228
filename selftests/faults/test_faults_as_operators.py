"""The faults that are planted in bodies are found where these are operators of torch.library, too."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("torch")

from autograd_conformance import implementations
from autograd_conformance.harness.outcomes import Broken
from autograd_conformance.selftests.faults.planting import Fault
from autograd_conformance.selftests.faults.properties import PLANTED, checks
from autograd_conformance.selftests.faults.properties.definitions import TORCH

OPERATORS = implementations.load("torch-library")

# What cannot go wrong in a kernel, and why.
IMPOSSIBLE = {
    "FWD-LAYOUT-ConjugateBitIgnored": "a kernel gets tensors whose conjugation was carried out",
    "FWD-PURE-Relaid": "a kernel gets a tensor of its own, which may be laid out anew",
}


def takes(planted: Fault) -> bool:
    """Whether the fault is in a body of which an operator can be made, on the CPU."""
    wrong = planted.wrong
    in_body = wrong.implementation is TORCH and planted.twin is not None and planted.twin.implementation is TORCH
    return in_body and wrong.device == "cpu" and not wrong.function.inplace and not planted.id.startswith("JVP")


IN_BODIES = {str(planted): planted for planted in PLANTED if takes(planted)}
FOUND = {name: planted for name, planted in IN_BODIES.items() if name not in IMPOSSIBLE}
# The first fault of each test.
FIRST = sorted({(planted.id, planted.variant): name for name, planted in reversed(FOUND.items())}.values())


def raised(planted: Fault) -> BaseException | None:
    return checks.caught(planted.id, planted.variant, replace(planted.wrong, implementation=OPERATORS))


@pytest.mark.parametrize("name", FIRST)
def test_the_first_fault_of_each_test_is_found(name: str) -> None:
    found = raised(FOUND[name])
    assert isinstance(found, Broken), f"not found: {FOUND[name].words}; raised: {found!r}"


@pytest.mark.parametrize("name", sorted(FOUND.keys() - FIRST))
def test_every_other_fault_is_found(name: str) -> None:
    planted = FOUND[name]
    found = raised(planted)
    assert isinstance(found, planted.raises), f"not found: {planted.words}; raised: {found!r}"


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_what_cannot_go_wrong_does_not(name: str) -> None:
    assert raised(IN_BODIES[name]) is None, "it can go wrong: take it off the list"
