"""A listed deviation is known while it fails as listed, fixed once it passes, and hides nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from autograd_conformance.harness.outcomes import Broken, Finding, Kind
from autograd_conformance.harness.processes.blackbox import LastWords
from autograd_conformance.harness.running.results import died_line, result_line
from autograd_conformance.harness.testing.clauses import ClauseSubject
from autograd_conformance.harness.testing.subject import Subject
from autograd_conformance.implementations.deviations import (
    WITHOUT_ELEMENTS,
    Cause,
    Component,
    Deviation,
    Died,
    Found,
    Frequency,
    Grade,
    Hung,
    Raised,
    Refused,
    Shown,
    by_release,
    release_of,
)  # fmt: skip
from autograd_conformance.implementations.torch import RELEASE, TorchImplementation
from autograd_conformance.reference.clauses import CLAUSES
from autograd_conformance.reference.functions import FUNCTIONS
from autograd_conformance.strategies.calls import Call

LISTED = "requires_grad without grad mode"


def element(what: str, *index: int) -> Finding:
    """A finding about one element of a tensor."""
    return Finding(f"{what} at {index}", "1.0", "", "", component={"what": what, "index": list(index)})


CAUSE = Cause(grade=Grade.DIFFERENCE, reason="", link="", seen=(str(RELEASE),))


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


@pytest.mark.parametrize(
    "found",
    [element("gradient of x", 0, 1), element("gradient of y"), Finding("shape of the gradient", "", "", ""), None],
    ids=lambda found: found and found.what,
)
@pytest.mark.parametrize("function", ["Exp", "Sort", "Cube"])
@pytest.mark.parametrize("property_id", ["VJP-REF", "VJP-FD", "VJP-MASK"])
def test_one_entry_lists_several_ids_functions_and_findings(
    property_id: str, function: str, found: Finding | None
) -> None:
    subject = Subject(deviating(), FUNCTIONS[function], "cpu", property_id)
    error = found and Broken(property_id, "", "", found)
    listed = property_id != "VJP-MASK" and function != "Cube"
    usual, instead = ("fail", "known") if found else ("pass", "fixed")
    covered = listed and (found is None or "index" in found.component)
    assert result_line(subject, error or None)["outcome"] == (instead if covered else usual)


def test_what_shows_only_sometimes_may_pass() -> None:
    subject = Subject(deviating(frequency=Frequency.SOMETIMES), FUNCTIONS["Exp"], "cpu", "VJP-REF")
    assert result_line(subject, None)["outcome"] == "pass"
    error = Broken("VJP-REF", "", "", element("gradient of x", 0))
    assert result_line(subject, error)["outcome"] == "known"


EMPTY, FULL = "Call('Exp', args=(Tensor((0, 10)),), seed=1)", "Call('Exp', args=(Tensor((10, 2)),), seed=0)"
HERE = 0x7FB
TIMEOUT, CRASH = "Timeout (0:05:00)!", "Fatal Python error: Aborted"


def stacks(first: str, *places: str) -> tuple[str, ...]:
    """What faulthandler writes about a process whose test stands at the first of these places."""
    frames = (f'  File "/anywhere/{file}", line 7 in {name}' for file, name in (place.split(":") for place in places))
    other = ("Thread 0x00000000000008ff (most recent call first):", '  File "/anywhere/kernel.py", line 3 in wait')
    return (first, *other, f"Thread {HERE:#018x} [python] (most recent call first):", *frames)


@pytest.mark.parametrize(
    ("call", "words", "outcome"),
    [
        (EMPTY, stacks(TIMEOUT, "kernel.py:wait", "test_it.py:test"), "known"),
        (FULL, stacks(TIMEOUT, "kernel.py:wait", "test_it.py:test"), "error"),
        ("", stacks(TIMEOUT, "kernel.py:wait"), "error"),
        # The suite's own loop, or the adapter's.
        (EMPTY, stacks(TIMEOUT, "test_it.py:test"), "error"),
        (EMPTY, stacks(TIMEOUT, "adapter.py:wait", "kernel.py:wait"), "error"),
        # A process that did not even say where it stood.
        (EMPTY, (TIMEOUT,), "error"),
        (EMPTY, stacks(CRASH, "kernel.py:wait"), "error"),
        (EMPTY, (), "error"),
    ],
)
def test_a_listed_hang_is_known_only_in_its_calls_and_at_its_place(
    call: str, words: tuple[str, ...], outcome: str
) -> None:
    listed = Deviation(("VJP-REF",), (Hung(call=WITHOUT_ELEMENTS, at="kernel.py in wait"),), CAUSE, functions=("Exp",))
    key = {"kind": "result", "id": "VJP-REF[Exp-cpu]", "property": "VJP-REF", "function": "Exp", "device": "cpu"}
    assert died_line(LastWords("", key, call, words, thread=HERE), (listed,))["outcome"] == outcome
    other = {**key, "id": "VJP-REF[Sort-cpu]", "function": "Sort"}
    assert died_line(LastWords("", other, call, words, thread=HERE), (listed,))["outcome"] == "error"


@pytest.mark.parametrize(
    ("chosen", "first", "outcome"),
    [
        ("weights: []", CRASH, "known"),
        ("weights: [1]", CRASH, "error"),
        ("weights: []", "Fatal Python error: Segmentation fault", "error"),
        ("weights: []", TIMEOUT, "error"),
    ],
)
def test_a_listed_death_is_known_only_for_what_is_listed(chosen: str, first: str, outcome: str) -> None:
    listed = Deviation(("FN-01",), (Died(starting="died: Aborted", call=r"^weights: \[\]"),), CAUSE)
    key = {"kind": "result", "id": "FN-01[cpu]", "clause": "FN-01", "device": "cpu"}
    assert died_line(LastWords("", key, chosen, stacks(first, "a.py:f")), (listed,))["outcome"] == outcome


def test_each_of_several_deviations_of_a_test_is_known() -> None:
    found = TorchImplementation()
    shows = (Component("gradient of x"), Component("gradient of y"))
    found.deviations = tuple(Deviation(("VJP-REF",), (each,), CAUSE, functions=("Exp",)) for each in shows)
    subject = Subject(found, FUNCTIONS["Exp"], "cpu", "VJP-REF")
    for what, outcome in (("gradient of x", "known"), ("gradient of y", "known"), ("gradient of z", "fail")):
        assert result_line(subject, Broken("VJP-REF", "", "", element(what, 0)))["outcome"] == outcome
    assert result_line(subject, None)["outcome"] == "fixed"


TYPED = "RuntimeError: no rule for cos"


def lost(*words: str) -> dict[str, str]:
    last = LastWords("", {}, "", words)
    return {"type": last.kind, "message": last.cause, "call": EMPTY, "at": "kernel.py in wait"}


FAILURES = {
    "a result": Finding("gradient", TYPED, "", "").as_json(),
    "a component": element("gradient", 0, 1).as_json(),
    "an exception": Finding("gradient", TYPED, "", "", kind=Kind.RAISED).as_json(),
    "a refusal": {"outcome": "vacuous", "vacuous": "refused", "reason": "gradient", "excuse": TYPED},
    "nothing checked": {"outcome": "vacuous", "vacuous": "unchecked", "reason": "gradient"},
    "a silent death": lost(),
    "a death": lost("Fatal Python error: Aborted"),
    "a hang": lost("Timeout (0:05:00)!"),
    "a crash of the test": {"type": "RuntimeError", "message": "gradient", "traceback": []},
}


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
        (Died(starting="died", call="."), {"a death"}),
        (Died(starting="ended without a word", call="."), {"a silent death"}),
        (Died(starting="ended without a word", call=".", at="kernel.py in run"), set()),
        (Hung(call=".", at="kernel.py in wait"), {"a hang"}),
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


DEATH = Died(starting="died", call=".")
PROMISE = "It is never wrong."


def graded(grade: Grade, promise: str = "") -> Cause:
    return Cause(grade=grade, reason="", link="", seen=("1.0",), promise=promise)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: Found(), "without a text it covers anything"),
        (lambda: Found(" ", containing=" "), "without a text it covers anything"),
        (lambda: Raised(""), "Raised: without a type it covers any exception"),
        (lambda: Refused("", starting="no "), "Refused: without a type it covers any exception"),
        (lambda: Died(starting="died", call=""), "Died: without a call it covers the end of any"),
        (lambda: Died(call="."), "Died: without a text it covers any death"),
        (lambda: Hung(call="", at="kernel.py in wait"), "Hung: without a call it covers the end of any"),
        (lambda: Hung(call="."), "Hung: without a place it covers an endless loop of the suite"),
        (lambda: graded(Grade.WRONG), "wrong result or crash: quote in promise="),
        (lambda: graded(Grade.BROKEN, " "), "broken promise: quote in promise="),
        (lambda: graded(Grade.OUTDATED), "outdated documentation: quote in promise="),
        (lambda: graded(Grade.DIFFERENCE, PROMISE), "difference: nothing is promised, but promise= quotes 'It is"),
        (lambda: Cause(reason="", link="", seen=("1.0",)), "grade"),  # type: ignore[call-arg]
        (lambda: Deviation("FN-01", (DEATH,), CAUSE), "ids of a Deviation is a tuple"),  # type: ignore[arg-type]
        (lambda: Deviation(("FN-01",), DEATH, CAUSE), "shows of a Deviation is a tuple"),  # type: ignore[arg-type]
        (lambda: Deviation(("FN-01",), (DEATH,), CAUSE, functions="Exp"), "functions of a Deviation is a tuple"),  # type: ignore[arg-type]
    ],
)
def test_what_would_cover_more_or_says_less_than_it_should_cannot_be_made(
    made: Callable[[], object], said: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        made()


@pytest.mark.parametrize(
    ("seen", "outcome"),
    [((str(RELEASE),), "fixed"), (("1.0", str(RELEASE)), "fixed"), (("1.0",), "pass")],
)
def test_what_holds_is_fixed_only_on_a_release_on_which_it_was_seen(seen: tuple[str, ...], outcome: str) -> None:
    cause = Cause(grade=Grade.DIFFERENCE, reason="", link="", seen=seen)
    listed = Deviation(("FWD-GRADFLAG",), (Found(LISTED),), cause, functions=("Select",))
    subject = Subject(
        type("Other", (TorchImplementation,), {"deviations": (listed,)})(), FUNCTIONS["Select"], "cpu", "FWD-GRADFLAG"
    )
    assert result_line(subject, None)["outcome"] == outcome
    # What fails as listed is known on any release.
    assert (
        result_line(subject, Broken("FWD-GRADFLAG", "", "", Finding(LISTED, "True", "False", "")))["outcome"] == "known"
    )


@pytest.mark.parametrize(
    ("version", "release"),
    [
        ("2.13.0", "2.13.0"),
        ("2.13.0+cpu", "2.13.0"),
        ("2.13.0+mine", "2.13.0"),
        ("2.16.0a0+git1", "2.16.0"),
        ("x", "x"),
    ],
)
def test_a_build_or_a_fork_is_of_a_release(version: str, release: str) -> None:
    assert release_of(version) == release


def test_releases_are_in_their_order() -> None:
    assert by_release(["2.13.0", "2.4.0", "2.13.0"]) == ("2.4.0", "2.13.0")
    assert by_release(["b", "a"]) == ("a", "b")
    assert str(RELEASE) in TorchImplementation().checked()
