"""The commands of the gate, and runs that are held against a baseline."""

from __future__ import annotations

import time

import pytest
from click.testing import CliRunner

from autograd_conformance.harness import cli
from autograd_conformance.harness.commands import run as run_command
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.selftests.support.reports import HEADER, IDS, lines, result, write


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("compare", "none.txt", "old.ndjson"), ("none.txt", "No such file", "accept")),
        (("compare", "base.txt", "none.ndjson"), ("none.ndjson", "No such file")),
        (("compare", "base.txt", "base.txt"), ("base.txt is not a report",)),
        (("compare", "base.txt", "old.ndjson", "--verify", "no-such-command"), ("no-such-command", "cannot be run")),
        (("compare", "base.txt", "failed.ndjson", "--verify", "false"), ("--verify false", "exit status 1")),
        (("compare", "base.txt", "failed.ndjson", "--verify", "true"), ("--verify true", "no report", "give the")),
        (("accept", "none.ndjson"), ("none.ndjson", "No such file")),
        (("accept", "old.ndjson", "-o", "old.ndjson"), ("-o old.ndjson would overwrite the report",)),
        (("accept", "old.ndjson", "-o", "nowhere/b"), ("nowhere/b", "-o FILE")),
        (("accept", "shard.ndjson"), ("shard.ndjson is shard 1/2", "merge")),
        (("accept", "replay.ndjson"), ("profile replay",)),
        (("compare", "base.txt", "shard.ndjson"), ("shard.ndjson is shard 1/2", "merge")),
        (("run", "model", "--baseline", "none.txt"), ("none.txt", "No such file")),
        (("run", "model", "--baseline", "old.ndjson"), ("old.ndjson is a report", "accept old.ndjson")),
        (("run", "model", "--baseline", "base.txt"), ("implementation is mine, and this run's is model",)),
        (("run", "model", "--baseline", "model.txt", "--seed", "3"), ("seed is 0, and this run's is 3",)),
        (("run", "model", "--baseline", "model.txt", "--shard", "1/2"), ("--shard 1/2", "merge", "compare")),
        (("run", "model", "--baseline", "model.txt", "--report", "model.txt"), ("overwrite the baseline",)),
        (("run", "model", "--baseline", "model.txt", "--profile", "replay"), ("--profile replay",)),
    ],
)
def test_mistakes_are_reported_before_anything_runs(said, base, tmp_path, monkeypatch, words, parts):
    monkeypatch.setattr(run_command.pytest, "main", lambda _: pytest.fail("tests were started"))
    write(tmp_path / "shard.ndjson", lines([result(id) for id in IDS], shard="1/2"))
    write(tmp_path / "replay.ndjson", lines([result(id) for id in IDS], profile="replay"))
    write(tmp_path / "failed.ndjson", lines([result(id, "fail") for id in IDS]))
    model = {**HEADER["implementation"], "name": "model"}
    write(tmp_path / "model.ndjson", lines([result(id) for id in IDS], implementation=model))
    assert said("accept", "model.ndjson", "-o", "model.txt")[0] == 0
    status, out = said(*words)
    assert status == 2, out
    assert all(part in out for part in parts), out
    assert (tmp_path / "base.txt").read_text() == base


def test_a_damaged_baseline_can_be_accepted_anew(said, base, tmp_path):
    (tmp_path / "base.txt").write_text(f"<<<<<<< a\n{base}=======\n{base}>>>>>>> b\n")
    status, out = said("accept", "old.ndjson", "-o", "base.txt")
    assert status == 0
    assert "merge conflict" in out
    assert (tmp_path / "base.txt").read_text() == base


PLANTED = """
from autograd_conformance.harness.testing.marks import holds


def reference(subject, data):
    example = subject.example(data.draw(subject.calls(), label="call"))
    subject.assert_close(example.call, example.names, got=example.run()[1], expected=example.expected.gradients())
    return example


@holds("VJP-REF")
def test_right(subject, data):
    example = reference(subject, data)
    {right}


@holds("VJP-FD")
def test_wrong(subject, data):
    example = reference(subject, data)
    subject.assert_that({wrong}, example.call, "{what}", got="this", expected="that")


@holds("VJP-LINEAR")
def test_raising(subject, data):
    reference(subject, data)
    {raising}


@holds("{claim}")
def test_gone(subject, data):
    reference(subject, data)
"""
BEFORE = {"right": "pass", "wrong": "False", "what": "rank", "raising": "raise KeyError", "claim": "VJP-CHAIN"}

# What is planted, and what the gate says of it.
REGRESSIONS = [
    ({}, 0, "gate: holds: 4 same"),
    ({"right": "import os; os._exit(0)"}, 1, "now: error (Death: "),
    ({"right": "import time; time.sleep(100)"}, 1, "now: error (Hang: "),
    ({"right": 'subject.assert_that(False, example.call, "x", got=1, expected=2)'}, 1, "now: fail (x)"),
    ({"right": "subject.record.checks = 0"}, 1, "now: vacuous"),
    ({"right": "subject.record.excused += 1"}, 1, "now: vacuous"),
    ({"right": 'import pytest; pytest.skip("no")'}, 1, "dropped: VJP-REF[Square-cpu]"),
    ({"what": "size"}, 1, "other: VJP-FD[Square-cpu]"),
    ({"wrong": "True"}, 1, "VJP-FD[Square-cpu]: fail (rank) -> pass"),
    ({"raising": "raise IndexError"}, 1, "now: error (IndexError)"),
    ({"claim": "VJP-MASK"}, 1, "VJP-CHAIN[Square-cpu]: pass -> absent"),
]


@pytest.fixture(scope="module")
def accepted(command, tmp_path_factory):
    """A folder with planted tests, and the baseline of what they do."""
    folder = tmp_path_factory.mktemp("accepted")
    (folder / "planted").mkdir()
    (folder / "planted" / "test_planted.py").write_text(PLANTED.format(**BEFORE))
    first = command(*RUN, "-n", "0", folder=folder)
    assert first.status == 1
    done = CliRunner().invoke(cli.main, ["accept", str(first.path), "-o", str(folder / "base.txt")])
    assert done.exit_code == 0
    return folder


RUN = (
    "model",
    "--suite",
    "planted",
    "--functions",
    "Square",
    "--time-limit",
    "10",
    "--profile",
    "quick",
    "--seed",
    "1",
)


@pytest.mark.parametrize(("change", "status", "shown"), REGRESSIONS)
def test_a_run_is_held_against_its_baseline(command, accepted, change, status, shown):
    (accepted / "planted" / "test_planted.py").write_text(PLANTED.format(**BEFORE | change))
    # Only a worker can be lost.
    workers = "1" if "Death" in shown or "Hang" in shown else "0"
    run = command(*RUN, "-n", workers, "--baseline", "base.txt", "--other-suite", folder=accepted)
    assert run.status == status, run.out + run.err
    assert shown in run.out


def test_a_run_that_does_not_end_is_no_pass(command, accepted):
    (accepted / "planted" / "test_planted.py").write_text(PLANTED.format(**BEFORE))
    run = command(*RUN, "-n", "0", "--baseline", "base.txt", "--", "-x", folder=accepted)
    assert run.status == 2
    assert "the gate cannot pass: " in run.err
    assert "did not finish" in run.out
    # The report of an earlier run is not taken for that of one which did not begin.
    assert not ndjson.flaw(command(*RUN, "-n", "0", folder=accepted).lines)
    run = command(*RUN, "-n", "0", "--baseline", "base.txt", "--", "--no-such-option", folder=accepted)
    assert run.status == 2
    assert not ndjson.flaw(run.lines)
    run = command(*RUN, "-n", "0", "--baseline", "base.txt", "--", "--version", folder=accepted)
    assert run.status == 2
    assert "checks nothing" in run.err


def test_parameters_that_pytest_was_given_count(command, accepted):
    run = command(*RUN, "-n", "0", "--baseline", "base.txt", "--", "-k", "test", folder=accepted)
    assert run.status == 2
    assert "its pytest is all, and this run's is -k test" in run.err


def test_a_header_without_what_every_one_has_is_no_report(said, tmp_path):
    (tmp_path / "odd.ndjson").write_text('{"kind": "header"}\n')
    for words in (("export", "odd.ndjson", "--markdown", "m.md"), ("compare", "odd.ndjson", "odd.ndjson")):
        status, out = said(*words)
        assert status == 2
        assert "its header lacks schema" in out


def test_the_old_implementation_is_asked_for_the_new_counterexamples(command, accepted, said, fast):
    folder = accepted
    (folder / "planted" / "test_planted.py").write_text(PLANTED.format(**BEFORE))
    old = command(*RUN, "-n", "0", folder=folder).path.rename(folder / "old.ndjson")
    change = {"right": 'subject.assert_that(False, example.call, "x", got=1, expected=2)'}
    (folder / "planted" / "test_planted.py").write_text(PLANTED.format(**BEFORE | change))
    new = command(*RUN, "-n", "0", folder=folder).path
    status, out = said("compare", old, new, "--verify", fast, "--other-suite")
    assert status == 1
    assert "before, with this counterexample: pass, on 0.1.0" in out


def test_the_comparison_of_large_reports_is_fast(tmp_path):
    ids = [f"VJP-REF[Function{n}-cpu]" for n in range(10_000)]
    for name in ("old", "new"):
        found = [result(id, "fail" if int(id[16:-5]) % 100 == 0 else "pass") for id in ids]
        write(tmp_path / name, lines(found))
    started = time.process_time()
    done = CliRunner().invoke(cli.main, ["compare", str(tmp_path / "old"), str(tmp_path / "new")])
    taken = time.process_time() - started
    assert done.output == "gate: holds: 10000 same\n"
    # Each with each other would take minutes.
    assert taken < 30


def test_an_odd_name_of_an_implementation_passes_through(command, said, tmp_path):
    source = "from autograd_conformance.implementations.model import ModelImplementation\n\n\n"
    (tmp_path / "odd.py").write_text(f"{source}class Odd(ModelImplementation):\n    name = 'möin/ä [x]: # end'\n")
    words = ("odd.py", "--functions", "Exp", "--properties", "VJP-REF", "--profile", "quick", "--seed", "1", "-n")
    path = command(*words, "0", folder=tmp_path).path
    assert said("accept", path, "-o", "base.txt")[0] == 0
    assert command(*words, "1", "--baseline", "base.txt", folder=tmp_path).status == 0
