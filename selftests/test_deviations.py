"""A listed deviation is known while it fails as listed, fixed once it passes, and hides nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from autograd_conformance.harness.checking.clauses import ClauseSubject
from autograd_conformance.harness.checking.subject import Subject
from autograd_conformance.harness.outcomes import Broken, Finding, Kind
from autograd_conformance.harness.running.blackbox import LastWords
from autograd_conformance.harness.running.results import died_line, result_line
from autograd_conformance.implementations.deviations import (
    Cause,
    Component,
    Deviation,
    Died,
    Found,
    Frequency,
    Hung,
    Raised,
    Refused,
    Shown,
)  # fmt: skip
from autograd_conformance.implementations.torch import TorchImplementation
from autograd_conformance.reference.clauses import CLAUSES
from autograd_conformance.reference.functions import FUNCTIONS
from autograd_conformance.strategies.calls import Call

LISTED = "requires_grad without grad mode"
CAUSE = Cause(reason="", link="", seen=("1.0",))


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
    shows = (Component("gradient of x"), Component("gradient of y"))
    listed = Deviation(("VJP-REF", "VJP-FD"), shows, CAUSE, functions=("Exp", "Sort"), **more)  # type: ignore[arg-type]
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
    subject = Subject(deviating(frequency=Frequency.SOMETIMES), FUNCTIONS["Exp"], "cpu", "VJP-REF")
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
    found.deviations = (Deviation(("VJP-FD",), (Hung(),), CAUSE, functions=("Sort",), without_elements=True),)
    key = {"kind": "result", "id": "VJP-REF[Exp-cpu]", "property": "VJP-REF", "function": "Exp", "device": "cpu"}
    line = died_line(LastWords("", key, call, (stacks,)), found.deviations)
    assert line["outcome"] == outcome


TYPED = "RuntimeError: no rule for cos"


def lost(*stacks: str) -> dict[str, str]:
    last = LastWords("", {}, "", stacks)
    return {"type": last.kind, "message": last.cause}


FAILURES = {
    "a result": Finding("gradient", TYPED, "", "").as_json(),
    "a component": Finding("gradient at (0, 1)", "1.0", "", "").as_json(),
    "an exception": Finding("gradient", TYPED, "", "", kind=Kind.RAISED).as_json(),
    "a refusal": {"outcome": "vacuous", "vacuous": "refused", "reason": "gradient", "excuse": TYPED},
    "nothing checked": {"outcome": "vacuous", "vacuous": "unchecked", "reason": "gradient"},
    "a silent death": lost(),
    "a death": lost("Fatal Python error: Aborted"),
    "a hang": lost("Timeout (0:05:00)!"),
    "a crash of the test": {"type": "RuntimeError", "message": "gradient", "traceback": []},
}
DEATHS = {"a silent death", "a death"}


@pytest.mark.parametrize(
    ("shown", "covered"),
    [
        (Found("gradient"), {"a result"}),
        (Found(starting="grad"), {"a result", "a component"}),
        (Found(starting="grad", ending="ent"), {"a result"}),
        (Found(starting="grad", ending="ten"), set()),
        (Found(containing="e"), {"a result", "a component"}),
        (Component(), {"a component"}),
        (Component("gradient"), {"a component"}),
        (Component("output"), set()),
        (Component(starting="output"), set()),
        (Raised("RuntimeError"), {"an exception"}),
        (Raised("RuntimeError", starting="no rule for "), {"an exception"}),
        (Raised("RuntimeError", containing="rule", ending="cos"), {"an exception"}),
        (Raised("RuntimeError", starting="rule"), set()),
        (Raised("Runtime"), set()),
        (Refused("RuntimeError", starting="no "), {"a refusal"}),
        (Refused("RuntimeError", starting="some "), set()),
        (Refused("TypeError"), set()),
        (Died(), DEATHS),
        (Died(starting="ended without a word"), {"a silent death"}),
        (Hung(), {"a hang"}),
    ],
)
def test_a_kind_of_failure_covers_no_other(shown: Shown, covered: set[str]) -> None:
    assert {name for name, failure in FAILURES.items() if shown.covers(failure)} == covered


def test_exceptions_are_covered_as_the_harness_reports_them() -> None:
    deviation = Deviation(("FN-01",), (Raised("RuntimeError", starting="planted"),), CAUSE)
    of_a_call = Subject(TorchImplementation(), FUNCTIONS["Exp"], "cpu", "VJP-REF")
    of_a_clause = ClauseSubject(TorchImplementation(), CLAUSES["FN-01"], "cpu")
    with pytest.raises(Broken) as called:
        of_a_call._fail_with(Call("Exp", (), ()), RuntimeError("planted fault"))
    with pytest.raises(Broken) as asked, of_a_clause.blaming_the_implementation():
        raise RuntimeError("planted fault")
    for raised in (called, asked):
        assert deviation.covers(raised.value.finding.as_json())
        assert "raised RuntimeError: planted fault" in str(raised.value)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: Found(), "without a text it covers anything"),
        (lambda: Found(" ", containing=" "), "without a text it covers anything"),
        (lambda: Raised(""), "Raised: without a type it covers any exception"),
        (lambda: Refused("", starting="no "), "Refused: without a type it covers any exception"),
        (lambda: Deviation("FN-01", (Died(),), CAUSE), "ids of a Deviation is a tuple"),  # type: ignore[arg-type]
        (lambda: Deviation(("FN-01",), Died(), CAUSE), "shows of a Deviation is a tuple"),  # type: ignore[arg-type]
        (lambda: Deviation(("FN-01",), (Died(),), CAUSE, functions="Exp"), "functions of a Deviation is a tuple"),  # type: ignore[arg-type]
    ],
)
def test_what_would_cover_more_than_itself_cannot_be_made(made: Callable[[], object], said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        made()
