"""Shards and workers: the same outcomes whatever the split, and nothing lost unseen."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from autograd_conformance.harness import cli
from autograd_conformance.harness.commands import run as run_command
from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.harness.running import plugin
from autograd_conformance.harness.running.shards import Shard, merged
from autograd_conformance.selftests.support.reports import HEADER, lines, result, write

IDS = [f"VJP-REF[Function{n}-cpu]" for n in range(300)]

# Where the hash puts a few ids. A change of it moves every id of everybody's shards.
PLACES = {"VJP-REF[Exp-cpu]": 4, "NIG-01[cpu]": 6, "FN-12/keyword-only[cpu]": 2}


@pytest.mark.parametrize("count", [1, 2, 3, 7, 50])
def test_shards_have_each_id_once_and_keep_it(count):
    parts = [Shard(n, count).mine(IDS) for n in range(1, count + 1)]
    assert sorted(id for part in parts for id in part) == sorted(IDS)
    # With half of the ids gone, or in another order, none of the others moves.
    for part, n in zip(parts, range(1, count + 1), strict=True):
        assert Shard(n, count).mine(IDS[::2][::-1]) == part & set(IDS[::2])


def test_where_ids_go_does_not_change():
    found = {id: next(n for n in range(1, 8) if id in Shard(n, 7).mine(PLACES)) for id in PLACES}
    assert found == PLACES


SECONDS = {id: (n % 17) ** 2 * 0.1 for n, id in enumerate(IDS)}


def test_known_durations_balance_the_shards():
    loads = [sum(SECONDS[id] for id in Shard(n, 7, SECONDS).mine(IDS)) for n in range(1, 8)]
    by_name = [sum(SECONDS[id] for id in Shard(n, 7).mine(IDS)) for n in range(1, 8)]
    assert max(loads) < 1.02 * sum(loads) / 7
    assert max(by_name) > 1.1 * sum(by_name) / 7


def test_balanced_shards_have_each_id_once_and_new_ids_move_none():
    new = [f"VJP-FD[Function{n}-cpu]" for n in range(40)]
    parts = [Shard(n, 7, SECONDS).mine(IDS) for n in range(1, 8)]
    grown = [Shard(n, 7, SECONDS).mine([*new, *IDS[::-1]]) for n in range(1, 8)]
    assert sorted(id for part in grown for id in part) == sorted(IDS + new)
    assert [part & set(IDS) for part in grown] == parts
    idle = dict.fromkeys(IDS, 0.0)
    assert {len(Shard(n, 7, idle).mine(IDS)) for n in range(1, 8)} == {42, 43}


# Mistakes.


@pytest.fixture
def said(monkeypatch, tmp_path, one_process):  # noqa: ARG001
    """Exit status and output of the command, in an empty folder; no test may be started."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run_command.pytest, "main", lambda _: pytest.fail("tests were started"))

    def call(*words):
        done = CliRunner().invoke(cli.main, [str(word) for word in words])
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done.exit_code, done.output

    return call


MODEL = {**HEADER["implementation"], "name": "model"}


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("--shard", "0/3"), ("0/3", "2/7")),
        (("--shard", "4/3"), ("4/3", "I from 1 to N")),
        (("--shard", "two"), ("two", "2/7")),
        (("--balance", "old.ndjson"), ("--balance old.ndjson", "--shard")),
        (("--shard", "1/2", "--balance", "none.ndjson"), ("none.ndjson", "No such file", "give a file that")),
        (("--shard", "1/2", "--balance", "other.ndjson"), ("other.ndjson", "implementation is mine")),
        (("--shard", "1/2", "--balance", "quick.ndjson"), ("quick.ndjson", "profile is quick")),
        (("--shard", "1/2", "--balance", "empty.ndjson"), ("empty.ndjson", "no results")),
        (("--shard", "1/2", "--balance", "old.ndjson", "--report", "old.ndjson"), ("overwrite",)),
        (("--tx", "2*popen"), ("unknown option --tx",)),
        (("--", "--tx", "2*popen"), ("--tx after -- would change what the suite loads or runs",)),
        (("--", "--numprocesses=2"), ("give -n", 'before "--"')),
        (("--", "-xn2"), ("give -n", 'before "--"')),
        (("--", "--report=other.ndjson"), ("give --report", 'before "--"')),
    ],
)
def test_mistakes_are_reported_before_anything_runs(said, tmp_path, words, parts):
    found = [result("VJP-REF[Exp-cpu]")]
    write(tmp_path / "old.ndjson", lines(found, implementation=MODEL))
    write(tmp_path / "other.ndjson", lines(found))
    write(tmp_path / "quick.ndjson", lines(found, implementation=MODEL, profile="quick"))
    write(tmp_path / "empty.ndjson", lines([], implementation=MODEL))
    status, out = said("run", "model", *words)
    assert status == 2, out
    assert all(part in out for part in parts), out


# Merging.

FOUR = [result(f"VJP-REF[{name}-cpu]") for name in ("Exp", "Sort", "Cube", "Sinh")]
ALL = [line["id"] for line in FOUR]


def shard(number, results, *, count=2, all_ids=ALL, **header):
    return lines(results, all_ids=all_ids, shard=f"{number}/{count}", **header)


def run(id, *given, **header):
    return shard(*given, run={"id": id, "host": "h"}, **header)


def built(digit, *given):
    return shard(*given, implementation={**HEADER["implementation"], "build": digit * 64})


def began(when, *given):
    return shard(*given, started=f"2026-01-{when}:00:00+00:00")


def test_shards_of_several_machines_and_of_one_night_are_one_run(tmp_path):
    parts = {tmp_path / "a": began("01T20", 1, FOUR[:2]), tmp_path / "b": began("02T03", 2, FOUR[2:])}
    assert not ndjson.flaw(merged(parts))
    one, two = ({"run": {"id": "x", "host": host}} for host in ("one", "two"))
    found = merged({tmp_path / "a": shard(1, FOUR[:2], **one), tmp_path / "b": shard(2, FOUR[2:], **two)})
    assert found[0]["run"] == {"id": "x", "host": "one, two"}


def test_merged_shards_are_the_whole(tmp_path):
    whole = lines(FOUR)
    linked = [{**line, "link": "0" * 16} for line in FOUR]
    parts = {tmp_path / "a": shard(2, linked[1:], python="3.12"), tmp_path / "b": shard(1, linked[:1], platform="q")}
    found = merged(parts)
    assert not ndjson.flaw(found)
    assert ndjson.comparable(found[1:-1]) == ndjson.comparable(whole[1:-1])
    # The lines before each of them are others now.
    assert not any("link" in line for line in found)
    assert (found[-1]["digest"], found[-1]["all"]) == (whole[-1]["digest"], whole[-1]["all"])
    assert (found[0]["shard"], found[0]["expected"], found[0]["python"]) == (None, 4, "3.12, 3.11.7")


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ([shard(1, FOUR[:2])], "there is no report of shard 2/2"),
        ([shard(1, FOUR[:2], count=3), shard(3, FOUR[2:], count=3)], "no report of shard 2/3"),
        ([shard(1, FOUR[:2]), shard(1, FOUR[2:])], "are both shard 1/2"),
        ([shard(1, FOUR[:2]), shard(2, FOUR[1:])], "VJP-REF[Sort-cpu] is in both"),
        ([shard(1, FOUR[:2]), shard(2, FOUR[3:])], "have 3 test ids, but the run has 4"),
        ([shard(1, FOUR[:2]), shard(2, FOUR[2:], all_ids=ALL[1:])], "choice of test ids"),
        ([shard(1, FOUR[:2]), shard(2, FOUR[2:], count=3)], "number of shards is 2 in the first and 3"),
        ([shard(1, FOUR[:2]), shard(2, FOUR[2:], seed=1)], "seed is 0 in the first and 1"),
        ([shard(1, FOUR[:2]), shard(2, FOUR[2:], dtype="float32")], "dtype is None in the first and float32"),
        (
            [shard(n, FOUR[2 * n - 2 : 2 * n], corpus="c.txt", counterexamples=f"{n}" * 64) for n in (1, 2)],
            f"counterexamples is {'1' * 64} in the first and {'2' * 64} in the second",
        ),
        ([shard(1, FOUR[:2]), shard(2, FOUR[2:], balance="0" * 64)], "balance"),
        ([shard(1, FOUR[:2]), shard(2, FOUR[2:], implementation={**MODEL, "name": "mine", "version": "2"})], "version"),
        ([shard(1, FOUR[:2]), shard(2, FOUR[2:], packages={"hypothesis": "5"})], "packages"),
        ([shard(1, FOUR[:2]), shard(2, FOUR[2:])[:-1]], "not a complete report: the run did not finish"),
        ([shard(1, FOUR[:2]), lines(FOUR[2:])], "is not a shard"),
        ([run("a", 1, FOUR[:2]), run("b", 2, FOUR[2:])], "run id is a in the first and b in the second"),
        ([run("a", 1, FOUR[:2]), run(None, 2, FOUR[2:])], "run id is a in the first and None in the second"),
        ([built("1", 1, FOUR[:2]), built("2", 2, FOUR[2:])], f"build is {'1' * 64} in the first"),
        ([began("01T02", 1, FOUR[:2]), began("02T02", 2, FOUR[2:])], "started at 2026-01-01 02:00, the second at"),
        ([run("a", 1, FOUR[:2], seed=2), run("a", 2, FOUR[2:])], "seed is 2 in the first"),
        (
            [shard(1, FOUR[:2]), shard(2, FOUR[2:], suite={**HEADER["suite"], "sources": {"suites": "1" * 16}})],
            f"suite's suites is {'0' * 16} in the first and {'1' * 16}",
        ),
        ([lines(FOUR)], "is not a shard"),
    ],
)
def test_what_is_not_the_whole_is_not_merged(said, tmp_path, parts, reason):
    paths = [write(tmp_path / f"{n}.ndjson", part) for n, part in enumerate(parts)]
    status, out = said("merge", *paths, "-o", "all.ndjson")
    assert status == 2
    assert reason in out
    assert not (tmp_path / "all.ndjson").exists()


def test_mistakes_in_merging(said, tmp_path):
    a, b = (write(tmp_path / f"{n}", shard(n, FOUR[2 * n - 2 : 2 * n])) for n in (1, 2))
    for words, reason in (
        ((), "give the reports of all shards"),
        ((a, b, "-o", b), "would overwrite the shard"),
        ((a, a, b), "given twice"),
        ((a, "none"), "No such file"),
        ((a, b, "-o", "nowhere/x"), "no folder nowhere"),
    ):
        status, out = said("merge", *words)
        assert status == 2
        assert reason in out
    assert said("merge", a, b)[0] == 0


def test_only_shards_of_the_named_run_are_merged(said, tmp_path):
    """As when an older run has left shards with the same names, and this one none."""
    paths = [write(tmp_path / f"{n}", run("a", n, FOUR[2 * n - 2 : 2 * n])) for n in (1, 2)]
    assert said("merge", *paths, "--run-id", "a")[0] == 0
    status, out = said("merge", *paths, "--run-id", "b")
    assert (status, "is not of the run 'b': its run id is 'a'" in out) == (2, True), out


# Real runs.

NARROW = ("model", "--properties", "FWD-VALUE,NIG-*,VJP-NONDIFF", "--profile", "quick", "--seed", "7")


def results_in(path):
    found = ndjson.read(path)
    assert not ndjson.flaw(found), str(ndjson.flaw(found))
    return ndjson.comparable(found[1:-1])


@pytest.fixture(scope="module")
def alone(command):
    """A run in one process that is not split."""
    run = command(*NARROW, "-n", "0")
    assert run.status == 0, run.out
    return run


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_workers_change_nothing(command, alone, workers):
    run = command(*NARROW, "-n", str(workers))
    assert run.status == 0
    assert results_in(run.path) == results_in(alone.path)


@pytest.mark.parametrize(("count", "more"), [(1, ("-n", "1")), (3, ()), (7, ()), (3, ("--balance", "old"))])
def test_shards_change_nothing(command, alone, tmp_path, count, more):
    (tmp_path / "old").write_bytes(alone.path.read_bytes())
    paths = []
    for n in range(1, count + 1):
        words = ("-n", "0", "--shard", f"{n}/{count}", "--report", f"{n}.ndjson", *more)
        run = command(*NARROW, *words, folder=tmp_path)
        assert run.status == 0, run.out
        assert f"; shard {n}/{count}" in run.out
        paths.append(str(tmp_path / f"{n}.ndjson"))
    seconds = {id: line["seconds"] for id, line in alone.results.items()} if "--balance" in more else {}
    for n, path in enumerate(paths, 1):
        ids = {line["id"] for line in ndjson.read(Path(path)) if line["kind"] == "result"}
        assert ids == Shard(n, count, seconds).mine(alone.results)
        assert ids
    target = tmp_path / "all.ndjson"
    done = CliRunner().invoke(cli.main, ["merge", *paths, "-o", str(target)])
    assert done.exit_code == 0, done.output
    assert results_in(target) == results_in(alone.path)
    assert CliRunner().invoke(cli.main, ["compare", str(alone.path), str(target)]).output.startswith("gate: holds")


def test_a_shard_without_ids_is_whole(command, tmp_path):
    words = ("model", "--functions", "Exp", "--properties", "VJP-FINITE", "--profile", "quick", "--seed", "1")
    for workers in ("0", "1"):
        for n in (1, 2):
            run = command(*words, "--shard", f"{n}/2", "--report", f"{n}", "-n", workers, folder=tmp_path)
            assert run.status == 0, run.out
            assert not ndjson.flaw(ndjson.read(tmp_path / f"{n}"))
        assert f"shard {n}/2 has no test id" in run.out or "1 of 1 test ids hold" in run.out
        assert len(merged({tmp_path / n: ndjson.read(tmp_path / n) for n in ("1", "2")})) == 3


def test_it_is_the_same_with_torch(command, tmp_path):
    words = ("torch", "--functions", "Exp", "--properties", "FWD-VALUE,VJP-REF,ENV-DEVICE", "--profile", "quick")
    words = (*words, "--seed", "7", "-n")
    whole = [results_in(command(*words, workers).path) for workers in ("0", "1")]
    for n in (1, 2):
        assert command(*words, "0", "--shard", f"{n}/2", "--report", f"{n}", folder=tmp_path).status == 0
    found = merged({tmp_path / n: ndjson.read(tmp_path / n) for n in ("1", "2")})
    assert whole[0] == whole[1] == ndjson.comparable(found[1:-1])


# Workers that are lost.


def test_a_worker_with_other_versions_is_refused():
    wanted = {"hypothesis": "6.1", "torch": "2.13"}
    plugin._verify_the_same(wanted, wanted)
    with pytest.raises(UsageProblem, match=r"has torch 2\.12, but the run uses torch 2\.13"):
        plugin._verify_the_same(wanted, wanted | {"torch": "2.12"})
    with pytest.raises(UsageProblem, match="the corpus file differs there, or it changed during the run"):
        plugin._verify_the_same({"counterexamples": "a" * 64}, {"counterexamples": "b" * 64})


DYING = """
import os

import pytest

from autograd_conformance.harness.testing.marks import holds


@holds("VJP-REF")
def test_dying(subject, data):
    example = subject.example(data.draw(subject.calls(), label="call"))
    subject.assert_close(example.call, example.names, got=example.run()[1], expected=example.expected.gradients())
    if "PYTEST_XDIST_WORKER" in os.environ:
        os._exit(0)


@holds("VJP-FD")
def test_right(subject, data):
    example = subject.example(data.draw(subject.calls(), label="call"))
    subject.assert_close(example.call, example.names, got=example.run()[1], expected=example.expected.gradients())
"""
RUN = ("model", "--functions", "Exp", "--profile", "quick", "--seed", "1")


@pytest.fixture
def dying(tmp_path):
    (tmp_path / "dying").mkdir()
    (tmp_path / "dying" / "test_dying.py").write_text(DYING)
    return tmp_path


def test_a_worker_that_dies_in_a_test_costs_that_test(command, dying):
    run = command(*RUN, "--suite", "dying", "-n", "1", folder=dying)
    assert run.status == 1
    assert run.outcomes == {"VJP-REF[Exp-cpu]": "error", "VJP-FD[Exp-cpu]": "pass"}
    assert not ndjson.flaw(run.lines)


@pytest.mark.parametrize(
    ("hook", "reason"),
    [
        ("def pytest_runtest_logfinish(nodeid):\n    'test_right' in nodeid and os._exit(0)", "was lost: "),
        ("def pytest_collection():\n    os._exit(0)", "cannot start: Not properly terminated"),
    ],
)
def test_a_worker_that_dies_outside_of_a_test_leaves_no_whole_report(command, dying, hook, reason):
    source = f"import os\n\nif 'PYTEST_XDIST_WORKER' in os.environ:\n    {hook.replace(chr(10), chr(10) + '    ')}\n"
    (dying / "dying" / "conftest.py").write_text(source)
    (dying / "dying" / "test_dying.py").write_text(DYING.replace("os._exit(0)", "pass"))
    run = command(*RUN, "--suite", "dying", "-n", "1", folder=dying)
    assert run.status == 2, run.out
    assert "worker gw" in run.out
    assert reason in run.out
    assert ndjson.flaw(run.lines)
