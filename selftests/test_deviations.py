"""A listed deviation is known while it fails as listed, fixed once it passes, and hides nothing else."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from autograd_conformance.harness.blackbox import LastWords
from autograd_conformance.harness.outcomes import Broken, Finding
from autograd_conformance.harness.report import died_line, result_line
from autograd_conformance.harness.subject import Subject
from autograd_conformance.implementations.protocol import Deviation
from autograd_conformance.implementations.torch import TorchImplementation
from autograd_conformance.reference.functions import FUNCTIONS

LISTED = "requires_grad without grad mode"


@pytest.mark.parametrize(
    ("function", "what", "outcome"),
    [
        ("Select", LISTED, "known"),
        ("Select", None, "fixed"),
        ("Select", "requires_grad of the outputs", "fail"),
        ("Exp", LISTED, "fail"),
        ("Exp", None, "pass"),
    ],
)
def test_only_the_listed_finding_is_known(function: str, what: str | None, outcome: str) -> None:
    subject = Subject(TorchImplementation(), FUNCTIONS[function], "cpu", "FWD-GRADFLAG")
    error = what and Broken("FWD-GRADFLAG", "", "", Finding(what, "True", "False", ""))
    assert result_line(subject, error or None)["outcome"] == outcome


def deviating(**more: object) -> TorchImplementation:
    listed = Deviation("VJP-REF VJP-FD", "gradient of * at (*)", "", "", "", function="Exp Sort", **more)  # type: ignore[arg-type]
    found = TorchImplementation()
    found.deviations = (listed,)
    return found


@pytest.mark.parametrize("what", ["gradient of x at (0, 1)", "gradient of y at ()", "shape of the gradient", None])
@pytest.mark.parametrize("function", ["Exp", "Sort", "Cube"])
@pytest.mark.parametrize("property_id", ["VJP-REF", "VJP-FD", "VJP-MASK"])
def test_one_entry_lists_several_ids_functions_and_findings(property_id: str, function: str, what: str | None) -> None:
    subject = Subject(deviating(), FUNCTIONS[function], "cpu", property_id)
    error = what and Broken(property_id, "", "", Finding(what, "", "", ""))
    listed = property_id != "VJP-MASK" and function != "Cube"
    usual, instead = ("fail", "known") if what else ("pass", "fixed")
    covered = listed and what != "shape of the gradient"
    assert result_line(subject, error or None)["outcome"] == (instead if covered else usual)


def test_what_shows_only_sometimes_may_pass() -> None:
    subject = Subject(deviating(sometimes=True), FUNCTIONS["Exp"], "cpu", "VJP-REF")
    assert result_line(subject, None)["outcome"] == "pass"
    error = Broken("VJP-REF", "", "", Finding("gradient of x at (0,)", "", "", ""))
    assert result_line(subject, error)["outcome"] == "known"


@pytest.mark.parametrize(
    ("call", "stacks", "outcome"),
    [
        ("Call('Exp', args=(Tensor((0, 2)),))", "Timeout (0:05:00)!", "known"),
        ("Call('Exp', args=(Tensor((1, 2)),))", "Timeout (0:05:00)!", "error"),
        ("Call('Exp', args=(Tensor((0, 2)),))", "Fatal Python error: Aborted", "error"),
        ("", "Timeout (0:05:00)!", "error"),
        ("no call", "Timeout (0:05:00)!", "error"),
    ],
)
def test_what_ends_calls_without_elements_may_end_any_test(call: str, stacks: str, outcome: str) -> None:
    found = TorchImplementation()
    what = "did not finish within the time limit *"
    found.deviations = (Deviation("VJP-FD", what, "", "", "", function="Sort", without_elements=True),)
    selection = SimpleNamespace(implementation=found, functions=[FUNCTIONS["Exp"]])
    key = {"kind": "result", "id": "VJP-REF[Exp-cpu]", "property": "VJP-REF", "function": "Exp", "device": "cpu"}
    line = died_line(LastWords("", key, call, (stacks,)), selection)  # type: ignore[arg-type]
    assert line["outcome"] == outcome
