"""Listed deaths and hangs in a run: they cover nothing but themselves, and pytest counts as the verdict does."""

from __future__ import annotations

import faulthandler
import itertools
import re

import pytest

from autograd_conformance.harness.processes import blackbox
from autograd_conformance.harness.processes.blackbox import BlackBox
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.harness.views import findings, summary
from autograd_conformance.selftests.support.reports import HEADER, result
from autograd_conformance.selftests.support.warm import started

LISTED = """
import dataclasses
import os
import time

from autograd_conformance.implementations.deviations import Cause, Component, Deviation, Died, Grade, Hung
from autograd_conformance.implementations.model import ModelImplementation


def leaving(*_):
    os._exit(0)


def waiting(*_):
    while True:
        time.sleep(1)


def looping(*_):
    while True:
        time.sleep(1)


ODDITIES = {"Exp": leaving, "Square": waiting, "Cube": leaving, "Sinh": looping}
OF_ONE = "^Call[(]'(Exp|Square|Sinh)'"


def listed(function, *shows):
    cause = Cause(grade=Grade.DIFFERENCE, reason="it is planted", link="", seen=("0.1.0",))
    return Deviation(("VJP-REF",), shows, cause, functions=(function,))


class ListedImplementation(ModelImplementation):
    name = "listed"
    deviations = (
        listed("Exp", Component("gradient")),
        listed("Exp", Died(starting="ended without a word", call=OF_ONE)),
        listed("Square", Hung(call=OF_ONE, at="listed.py in waiting")),
        # Not these.
        listed("Cube", Died(starting="ended without a word", call=OF_ONE)),
        listed("Sinh", Hung(call=OF_ONE, at="listed.py in waiting")),
        # It holds.
        listed("ReLU", Component("gradient")),
    )

    def function(self, cls):
        return ODDITIES.get(cls.__name__, cls.apply)
"""


@pytest.fixture(scope="module")
def run(command, tmp_path_factory):
    """A run on that implementation, of VJP-REF."""
    folder = tmp_path_factory.mktemp("listed")
    (folder / "listed.py").write_text(LISTED)

    def of(functions, *words):
        limits = ("--time-limit", "5", "-n", "2", "--profile", "quick", "--seed", "1", "--properties", "VJP-REF")
        one = ("--", "-k", "not sizes and not specials")
        return command("listed.py", "--functions", functions, *limits, *one, *words, folder=folder)

    return of


# The listed ones end nothing, even with -x.
def test_a_run_with_listed_deaths_and_hangs_alone_is_green_in_every_line(run):
    done = run("Exp,Square,MyCube", "-x")
    assert done.status == 0, done.out + done.err
    assert list(done.outcomes.values()).count("known") == 2
    assert "1 of 1 test ids hold; 2 known" in done.out
    assert not re.search(r"\d (failed|passed|xfailed)", done.out)


def test_pytest_counts_as_failed_what_the_verdict_does(run):
    done = run("Exp,Square,Cube,Sinh,ReLU,MyCube")
    assert done.status == 1, done.out + done.err
    assert done.outcomes == {
        "VJP-REF[Exp-cpu]": "known",
        "VJP-REF[Square-cpu]": "known",
        "VJP-REF[Cube-cpu]": "error",
        "VJP-REF[Sinh-cpu]": "error",
        "VJP-REF[ReLU-cpu]": "fixed",
        "VJP-REF[MyCube-cpu]": "pass",
    }
    assert done.results["VJP-REF[Sinh-cpu]"]["failure"]["at"] == "listed.py in looping"
    assert "1 of 4 test ids hold; 2 errors, 1 fixed, 2 known" in done.out
    assert "look at them first: VJP-REF[Cube-cpu], VJP-REF[Sinh-cpu]; if this still passes" in done.out
    assert "never checked" not in done.out


NINE = """
    def environment(self):
        return dataclasses.replace(super().environment(), version="9.9")
"""


def test_a_release_that_was_never_checked_is_named_first_and_last(tmp_path):
    """What holds there is not fixed: nobody has seen it fail."""
    (tmp_path / "listed.py").write_text(LISTED + NINE)
    narrow = ("--functions", "ReLU", "--properties", "VJP-REF", "-n", "0", "--profile", "quick", "--seed", "1")
    done = started("run", "listed.py", *narrow, folder=tmp_path)
    assert done.returncode == 0, done.stdout
    first, *_, last, _ = done.stdout.splitlines()
    assert first.endswith(", a release that was never checked")
    assert last == (
        "listed 9.9 is a release that this suite was never checked with (but with 0.1.0): "
        "what fails may be known of other releases, or new in this one"
    )
    header = ndjson.read(tmp_path / "autograd-conformance.ndjson")[0]
    assert header["implementation"]["checked"] == ["0.1.0"]


def test_what_is_not_run_says_why_by_group():
    older = {"reason": "it came with 2.12, and torch 2.11.0 is older"}
    found = [
        result("NIG-01[cpu]", "unsupported", reason="so"),
        result("BOX-01[cpu]", "unsupported", **older),
        result("BOX-02[cpu]", "unsupported", **older),
        result("BOX-03[cpu]"),
        *(result(f"DEV-0{n}[cpu]", "skip", reason="there is no accelerator on this machine") for n in range(3)),
    ]
    assert summary.not_run(found) == [
        "skipped: 3 test ids, such as DEV-00[cpu]: there is no accelerator on this machine",
        "unsupported: 2 test ids, such as BOX-01[cpu]: it came with 2.12, and torch 2.11.0 is older",
        "unsupported: 1 test id, such as NIG-01[cpu]: so",
    ]


def test_many_reasons_for_which_tests_are_not_run_are_counted():
    found = [result(f"NIG-{n}[cpu]", "skip", reason=f"reason {n}") for n in range(10, 30)]
    *_, last = shown = summary.not_run(found)
    assert len(shown) == summary.PARTS + 1
    assert last == "not run for other reasons: 8 test ids, in the report"


def test_what_is_known_is_counted_by_grade_the_worst_first():
    found = [
        result("DBL-05[cpu]", "known", reason="a", grade="difference"),
        result("NIG-02[cpu]", "known", reason="b", grade="wrong result or crash"),
        result("NIG-03[cpu]", "known", reason="c", grade="wrong result or crash"),
        result("NIG-04[cpu]", "known", reason="b", grade="wrong result or crash"),
        result("ENG-06[cpu]", "known", reason="of an earlier version"),
        result("ENG-07[cpu]"),
    ]
    assert summary.known(found, HEADER) == [
        "known: 5 test ids, which autograd-conformance report explains",
        "  wrong result or crash: 3 test ids of 2 findings",
        "  difference: 1 test id of 1 finding",
        "  not graded: 1 test id of 1 finding",
    ]
    assert summary.known(found[-1:], HEADER) == []


def test_causes_with_one_script_are_one_finding():
    """As on the page that the command prints."""
    (one, other), *_ = [
        list(dict.fromkeys(str(d.cause) for d in found))
        for found in findings.by_script(findings.listed()["torch"]).values()
        if len({d.cause for d in found}) == 2
    ]
    found = [result(f"NIG-0{n}[cpu]", "known", reason=r, grade="difference") for n, r in enumerate((one, other))]
    torch = {"implementation": {**HEADER["implementation"], "name": "torch"}}
    assert summary.known(found, torch) == [
        "known: 2 test ids, which autograd-conformance list findings explains",
        "  difference: 2 test ids of 1 finding",
    ]


def test_rows_that_pass_are_counted_and_the_others_shown():
    cells = itertools.product(("VJP-REF", "FWD-VALUE"), ("Exp", "Sin"), "ab")
    ids = [f"{name}[{function}-{device}]" for name, function, device in cells]
    head = {**HEADER, "properties": ["VJP-REF", "FWD-VALUE"], "functions": ["Exp", "Sin"]}
    assert summary.matrices([result(id) for id in ids], head, 80) == ["mine on a, b: all 4 rows pass"]
    bad = {"VJP-REF[Sin-a]": "known", "FWD-VALUE[Sin-b]": "fail"}
    assert summary.matrices([result(id, bad.get(id, "pass")) for id in ids], head, 80) == [
        "mine on a, b: 2 of 4 rows pass; these do not",
        "                 1  2",
        "VJP-REF          .  k",
        "FWD-VALUE on b   .  F",
        "",
        " 2 Sin",
        "",
        ". pass, k known, F fail, blank not applicable",
    ]


def test_only_a_call_that_is_listed_to_hang_gets_less_time(monkeypatch, tmp_path):
    given = []
    monkeypatch.setattr(faulthandler, "dump_traceback_later", lambda seconds, **_: given.append(round(seconds)))
    monkeypatch.setattr(faulthandler, "cancel_dump_traceback_later", lambda: None)
    box = BlackBox(tmp_path / "box")
    box.start("a::b", {}, 300.0, lambda call: "empty" in call)
    for call in ("full", "empty", "full", "full"):
        box.note(call)
    assert given == [300, 30, 300]
    box.note("empty")
    assert blackbox.last_words(tmp_path / "box").limit == 30
    box.note("full")
    assert blackbox.last_words(tmp_path / "box").limit == 300
    given.clear()
    box.start("a::c", {}, 5.0, lambda call: "empty" in call)
    box.note("empty")
    assert given == [5, 5]
    given.clear()
    box.start("a::d", {}, 0.0, lambda call: "empty" in call)
    box.note("empty")
    assert given == []
    box.close()
