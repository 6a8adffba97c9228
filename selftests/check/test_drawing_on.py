"""A test that few examples do not exercise gets more, until it is exercised or has had as many as it may get."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

SUITE = """
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import holds


def drawn(subject, data):
    subject.example(data.draw(subject.calls(), label="call"))
    return subject.draw(data, st.integers(0, 9), "number") == 7


@holds("VJP-REF")
def test_rarely_checked(subject, data):
    subject.record.checks += drawn(subject, data)


@holds("VJP-FD")
def test_rarely_accepted(subject, data):
    accepted = drawn(subject, data)
    subject.record.checks += 1
    if not accepted:
        subject.record.excuse_with("RuntimeError: only seven")


@holds("VJP-LINEAR")
def test_never_accepted(subject, data):
    drawn(subject, data)
    subject.record.checks += 1
    subject.record.excuse_with("RuntimeError: never")


@holds("VJP-NONE")
def test_rarely_wrong(subject, data):
    wrong = drawn(subject, data)
    subject.record.checks += wrong
    assert not wrong


@holds("VJP-MASK")
def test_checked_at_once(subject, data):
    drawn(subject, data)
    subject.record.checks += 1
"""

RARE = ("VJP-REF[Exp-cpu]", "VJP-FD[Exp-cpu]")


@pytest.fixture(scope="module")
def run(command: Callable[..., object], tmp_path_factory: pytest.TempPathFactory) -> object:
    folder: Path = tmp_path_factory.mktemp("rare")
    (folder / "test_rare.py").write_text(SUITE)
    words = ("--suite", str(folder), "--functions", "Exp", "--profile", "quick", "--seed", "2", "-n", "0")
    return command("model", *words)


def test_what_few_examples_do_not_exercise_gets_more(run):
    assert {id: run.outcomes[id] for id in RARE} == dict.fromkeys(RARE, "pass")
    assert all(5 < run.results[id]["examples"] < 120 for id in RARE)


def test_a_fault_found_among_the_further_examples_counts_and_can_be_drawn_again(run):
    line = run.results["VJP-NONE[Exp-cpu]"]
    assert line["outcome"] == "error"
    assert line["failure"]["drawn"]["examples"] > 5


def test_what_is_exercised_gets_no_more(run):
    assert run.results["VJP-MASK[Exp-cpu]"]["examples"] == 5


def test_what_is_refused_in_all_of_them_is_vacuous(run):
    line = run.results["VJP-LINEAR[Exp-cpu]"]
    assert (line["outcome"], line["reason"]) == ("vacuous", "refused in every example: RuntimeError: never")
    assert 80 < line["examples"] < 120
    assert run.status == 1
