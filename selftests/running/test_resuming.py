"""Interrupted runs that go on: the same ids and outcomes as without the interruption, and nothing of another run."""

from __future__ import annotations

import random
import signal
from datetime import datetime, timedelta, timezone

import pytest

from autograd_conformance.harness.commands import run
from autograd_conformance.harness.outcomes import DEATH, UsageProblem
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.harness.running import resuming
from autograd_conformance.selftests.gate.attacking import checked
from autograd_conformance.selftests.running.test_killed import NARROW, compared, disturb, start, whole  # noqa: F401
from autograd_conformance.selftests.support.reports import HEADER, IDS, lines, result, write
from autograd_conformance.selftests.support.warm import started

NOW = datetime.now(timezone.utc).isoformat(timespec="seconds")
PASSED = [result(id) for id in IDS]


def head(**changed):
    return {**HEADER, "started": NOW, "expected": len(IDS), **changed}


def interrupted(results, **changed):
    """A report without a footer."""
    chain = ndjson.Chain(head(**changed))
    return [head(**changed), *map(chain.linked, results)]


def resumed(tmp_path, given):
    return resuming.read(write(tmp_path / "r", given))


def test_what_the_run_wrote_is_kept(tmp_path):
    found = resumed(tmp_path, interrupted(PASSED[:3]))
    found.verify_same_run(head())
    assert found.ids == set(IDS[:3])
    assert str(found).endswith("r: 3 of 4 test ids have a result")
    assert resumed(tmp_path, interrupted([], expected=None)).ids == set()
    assert resumed(tmp_path, lines(PASSED, started=NOW)).ids == set(IDS)


def test_a_process_that_vanished_counts_only_in_a_run_that_finished(tmp_path):
    died = {"type": DEATH, "message": "the process ended without a word", "traceback": []}
    crashed = {**died, "traceback": ["  File x.py, line 1 in f"]}
    given = [result(IDS[0], "error", failure=died), result(IDS[1], "error", failure=crashed)]
    assert resumed(tmp_path, interrupted(given)).ids == {IDS[1]}
    assert resumed(tmp_path, lines(given, started=NOW)).ids == set(IDS[:2])


def test_a_process_that_vanished_long_before_the_end_has_died(tmp_path):
    died = {"type": DEATH, "message": "the process ended without a word", "traceback": []}
    later = [result(f"VJP-REF[F{n}-cpu]") for n in range(70)]
    found = resumed(tmp_path, interrupted([result(IDS[0], "error", failure=died), *later], expected=71))
    assert IDS[0] in found.ids


def test_a_drawn_seed_is_that_of_the_first_part(tmp_path):
    path = str(write(tmp_path / "r", interrupted(PASSED[:3], profile="nightly", seed=77)))
    assert run._seed(None, "nightly", path) == 77
    assert run._seed(5, "nightly", path) == 5
    assert run._seed(None, "gate", path) is None
    assert run._seed(None, "nightly", None) is None


WHOLE = interrupted(PASSED)
CHANGED = {
    "an outcome": [*WHOLE[:2], {**WHOLE[2], "outcome": "fail"}, *WHOLE[3:]],
    "a link": [*WHOLE[:2], {**WHOLE[2], "link": "0" * 16}, *WHOLE[3:]],
    "no link": [WHOLE[0], *PASSED],
    "the header": [{**WHOLE[0], "seed": 3}, *WHOLE[1:]],
    "a line less": [WHOLE[0], *WHOLE[2:]],
    "a line twice": [*WHOLE, WHOLE[-1]],
    "the order": [*WHOLE[:2], WHOLE[3], WHOLE[2], *WHOLE[4:]],
    "another kind": [*WHOLE, {"kind": "note"}],
    "a whole report": [*lines(PASSED)[:1], result(IDS[0], "fail"), *lines(PASSED)[2:]],
}


@pytest.mark.parametrize("what", CHANGED)
def test_a_report_that_was_changed_is_not_resumed(tmp_path, what):
    with pytest.raises(UsageProblem, match=r"r cannot be resumed: it was changed after the run wrote it"):
        resumed(tmp_path, CHANGED[what])


OTHER = {
    "run id": {"run": {"id": "b", "host": "here"}},
    "version": {"implementation": {**HEADER["implementation"], "version": "2"}},
    "build": {"implementation": {**HEADER["implementation"], "build": "1" * 64}},
    "suite's strategies": {
        "suite": {**HEADER["suite"], "sources": {**HEADER["suite"]["sources"], "strategies": "1" * 16}}
    },
    "module helper": {"imports": {"helper": "1" * 16}},
    "library libkernel.so": {"imports": {"libkernel.so": "1" * 16}},
    "suite's adapter": {"suite": {**HEADER["suite"], "sources": {**HEADER["suite"]["sources"], "adapter": "1" * 16}}},
    "devices": {"devices": ["cpu", "cuda:0"]},
    "profile": {"profile": "quick"},
    "seed": {"seed": 1},
    "dtype": {"dtype": "float32"},
    "counterexamples": {"counterexamples": "1" * 64},
    "options": {"options": {**HEADER["options"], "device": "cpu"}},
    "packages": {"packages": {**HEADER["packages"], "hypothesis": "7"}},
    "shard": {"shard": "1/2"},
    "claims": {"claims": ["double_backward"]},
}


@pytest.mark.parametrize("what", OTHER)
def test_another_run_is_not_continued(tmp_path, what):
    found = resumed(tmp_path, interrupted(PASSED))
    with pytest.raises(UsageProblem, match=rf"r cannot be resumed: its {what} is .*, but this run's is [^\n]*$"):
        found.verify_same_run(head(**OTHER[what]))


def test_the_machine_may_be_another(tmp_path):
    found = resumed(tmp_path, interrupted(PASSED[:2], run={"id": "a", "host": "one"}, python="3.10"))
    other = head(run={"id": "a", "host": "two"}, platform="q", started="2100-01-01T00:00:00+00:00")
    found.verify_same_run(other)
    both = found.together(other)
    assert both["run"] == {"id": "a", "host": "one, two"}
    assert (both["platform"], both["python"], both["started"]) == ("p, q", "3.10, 3.11.7", NOW)
    with pytest.raises(UsageProblem, match="its number of test ids is 4, but this run's is 3"):
        found.together({**other, "expected": 3})


def test_only_an_id_says_that_an_old_report_is_of_this_run(tmp_path):
    old = (datetime.now(timezone.utc) - timedelta(hours=13)).isoformat(timespec="seconds")
    run = {"run": {"id": "a", "host": "h"}}
    resumed(tmp_path, interrupted(PASSED, started=old, **run)).verify_same_run(head(**run))
    with pytest.raises(UsageProblem, match="no run id says that it is of this run; start again with"):
        resumed(tmp_path, interrupted(PASSED, started=old)).verify_same_run(head())


# Real runs.


def go_on(folder, *words):
    done = started("run", *NARROW, *words, "--resume", "new.ndjson", folder=folder)
    return done.returncode, done.stdout + done.stderr


def assert_complete(path, expected):
    found = ndjson.read(path)
    assert not ndjson.flaw(found), ndjson.flaw(found)
    assert compared(found) == compared(ndjson.read(expected))
    assert found[-1]["digest"] == ndjson.read(expected)[-1]["digest"]


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_run_goes_on_and_then_has_nothing_left(whole, tmp_path, workers):  # noqa: F811
    path, text = tmp_path / "new.ndjson", whole.read_bytes()
    # In the middle of a line.
    path.write_bytes(text[: len(text) // 2])
    for said in ("resuming new.ndjson: ", "nothing was left to run: all "):
        status, out = go_on(tmp_path, "-n", workers, "--resume-finished")
        assert status == 0, out
        assert said in out
        assert_complete(path, whole)


def test_a_run_without_a_report_starts(whole, tmp_path):  # noqa: F811
    status, out = go_on(tmp_path, "-n", "0")
    assert status == 0, out
    assert "new.ndjson does not exist: the run starts with its first test" in out
    assert_complete(tmp_path / "new.ndjson", whole)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--seed", "8"), "its seed is 7, but this run's is 8"),
        (("--run-id", "x"), "its run id is None, but this run's is x"),
        (("--shard", "1/2"), "its shard is None, but this run's is 1/2"),
        (("--report", "other.ndjson"), "leave out --report"),
    ],
)
def test_a_refused_report_stays_as_it_is(whole, tmp_path, words, reason):  # noqa: F811
    path = tmp_path / "new.ndjson"
    path.write_text("".join(whole.read_text().splitlines(keepends=True)[:5]))
    before = path.read_bytes()
    status, out = go_on(tmp_path, "-n", "0", *words)
    assert (status, path.read_bytes()) == (2, before)
    assert reason in out
    assert "Traceback" not in out


def test_a_run_that_is_killed_again_and_again_ends_whole(whole, tmp_path):  # noqa: F811
    path, chance = tmp_path / "new.ndjson", random.Random(11)
    for way in ("command", "controller", "worker", "command", "controller"):
        running = start(tmp_path, *(("--resume", "new.ndjson") if path.exists() else ()))
        had = path.stat().st_size if path.exists() else 0
        disturb(running, path, way, had + chance.uniform(0.05, 0.3) * whole.stat().st_size)
        if running.returncode in (0, 1):
            break
        assert running.returncode in (2, -signal.SIGKILL)
    found = ndjson.read(path)
    if ndjson.flaw(found):
        status, out = go_on(tmp_path, "-n", "2")
        assert status in (0, 1), out
    found = ndjson.read(path)
    assert not ndjson.flaw(found)
    mine, expected = compared(found), compared(ndjson.read(whole))
    assert mine.keys() == expected.keys()
    # One test may have died with its worker.
    assert sum(mine[id] != expected[id] for id in expected) <= 1


def test_the_exit_status_is_that_of_the_whole(tmp_path):
    assert checked(tmp_path, "-n", "0", wrong=True).returncode == 1
    path = tmp_path / "autograd-conformance.ndjson"
    everything = path.read_text().splitlines(keepends=True)
    assert '"outcome": "fail"' in everything[1]
    for kept in (2, len(everything) - 1, len(everything)):
        path.write_text("".join(everything[:kept]))
        done = checked(tmp_path, "-n", "0", "--resume", path.name, "--resume-finished", wrong=True)
        assert done.returncode == 1, done.stdout + done.stderr
        assert not ndjson.flaw(ndjson.read(path))


def test_a_finished_report_gives_no_verdict_by_itself(whole, tmp_path):  # noqa: F811
    path = tmp_path / "new.ndjson"
    path.write_bytes(whole.read_bytes())
    status, out = go_on(tmp_path, "-n", "0")
    assert (status, path.read_bytes()) == (2, whole.read_bytes())
    assert "new.ndjson is finished: nothing is left to run, and nothing is checked again" in out
    status, out = go_on(tmp_path, "-n", "0", "--resume-finished")
    assert status == 0, out


def test_an_answer_without_a_report_to_resume_is_asked_for_by_mistake(tmp_path):
    done = started("run", *NARROW, "--resume-finished", folder=tmp_path)
    assert done.returncode == 2
    assert "--resume-finished is about --resume FILE; give one" in done.stderr


def test_a_test_that_kills_again_has_died(tmp_path):
    leaving = {"during": "os._exit(0) if 'PYTEST_XDIST_WORKER' in os.environ else None"}
    assert checked(tmp_path, "-n", "1", **leaving).returncode == 1
    path = tmp_path / "autograd-conformance.ndjson"
    expected = ndjson.read(path)[-1]["counts"]
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    assert checked(tmp_path, "-n", "1", "--resume", path.name, **leaving).returncode == 1
    found = ndjson.read(path)
    assert not ndjson.flaw(found)
    assert found[-1]["counts"] == expected == {"error": 2}
