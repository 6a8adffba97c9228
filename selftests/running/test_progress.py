"""What is shown while a run goes on: on a terminal, in a log, when workers die and when it is interrupted."""

from __future__ import annotations

import os
import re
import signal
from types import SimpleNamespace

import psutil
import pytest

from autograd_conformance.harness import text
from autograd_conformance.harness.processes.blackbox import BlackBox
from autograd_conformance.harness.running import progress
from autograd_conformance.selftests.conftest import COMMAND
from autograd_conformance.selftests.support import screen

RUN = ("run", "model", "--suite")
# The display's lines: the bar, how far the run is, what is running, what failed last.
DISPLAY = re.compile(r"━|^\d+ of \d+, |^ +\d+ s  |^failed: ")


def displayed(lines):
    return [line for line in lines if DISPLAY.search(line)]


@pytest.fixture(scope="session")
def in_terminal(fast, suite, tmp_path_factory):
    """Runs the command in a terminal; one that signals are sent to is ``own``, the process that was started."""

    def run(*words, own=False, **options):
        folder, program = tmp_path_factory.mktemp("terminal"), COMMAND if own else fast
        return screen.run([program, *RUN, str(suite), "--functions", "Exp,Square", *words], folder, **options)

    return run


@pytest.fixture(scope="session")
def eventful_session(in_terminal):
    return in_terminal("--time-limit", "3", "-n", "2", columns=200)


def test_it_shows_how_far_what_runs_and_what_fell_short(eventful_session):
    shown = ["\n".join(displayed(lines)) for lines in eventful_session.screens]
    assert any(re.search(r"^[1-9]\d* of 16, \d+ failed, \d:\d\d, about \d:\d\d left$", t, re.M) for t in shown)
    assert any(len(re.findall(r"^ +\d s  VJP-", t, re.M)) == 2 for t in shown)
    assert any(re.search(r"^ +\d s  VJP-SUBSET\[Exp-cpu\]$", t, re.M) for t in shown)
    assert any(re.search(r"^failed: VJP-\S+, VJP-", t, re.M) for t in shown)


def test_what_falls_short_is_reported_when_it_does_and_stays(eventful_session):
    running = [lines for lines in eventful_session.screens if displayed(lines)]
    assert any(line.startswith("fail: VJP-FD[Exp-cpu]") for lines in running for line in lines)
    before = "\n".join(eventful_session.screen.text).partition("= failures =")[0]
    for shown in (
        "fail: VJP-FD[Exp-cpu]: rank: got 2, expected less\n",
        "error: VJP-SUBSET[Exp-cpu]: Hang: did not finish within the time limit of 0:00:03",
        "error: VJP-REPEAT[Exp-cpu]: Death: the process died: Segmentation fault",
        "vacuous: VJP-UNUSED[Square-cpu]: ",
    ):
        assert before.count(shown) == 1, shown


@pytest.mark.parametrize("workers", ["0", "2"])
@pytest.mark.parametrize("columns", [40, 120])
def test_nothing_of_it_is_left(in_terminal, workers, columns):
    words = ("--properties", "VJP-FD,VJP-REF,VJP-LINEAR,VJP-UNUSED,VJP-NONE", "-n", workers)
    done = in_terminal(*words, columns=columns)
    assert done.status == 1
    assert max(len(displayed(lines)) for lines in done.screens) >= 3
    assert not displayed(done.screen.text)
    assert "verdict" in "\n".join(done.screen.text)
    assert not done.screen.hidden
    assert done.restored
    # Pytest's dots take no part.
    assert not re.search(r"^[.FEsxX]+$", "\n".join(done.screen.text), re.M)


def test_a_line_is_cut_rather_than_wrapped(in_terminal):
    # The last one hangs, which leaves time to look.
    words = ("--properties", "VJP-FD,VJP-LINEAR,VJP-SUBSET", "-n", "1", "--time-limit", "3")
    done = in_terminal(*words, columns=40)
    assert any(line.startswith("failed: ") and line.endswith("…") for lines in done.screens for line in lines)


def test_a_killed_worker_is_reported_and_the_display_goes_on(in_terminal):
    killed = []

    def watch(lines, process):
        if not killed and any(re.search(r"^ +[12] s  VJP-SUBSET", line) for line in lines):
            ((worker,),) = (run.children() for run in psutil.Process(process.pid).children())
            killed.append(worker.pid)
            worker.kill()

    words = ("--properties", "VJP-SUBSET,VJP-FD,VJP-REF,VJP-LINEAR", "-n", "1", "--time-limit", "100")
    done = in_terminal(*words, watch=watch, own=True)
    text = "\n".join(done.screen.text)
    assert killed
    assert "error: VJP-SUBSET[Exp-cpu]: Death: the process ended without a word" in text
    assert "node down" in text
    assert not displayed(done.screen.text)
    assert done.status == 1


@pytest.mark.parametrize("workers", ["0", "2"])
def test_an_interrupt_leaves_the_terminal_as_it_was(in_terminal, workers):
    sent = []

    def watch(lines, process):
        if not sent and any(re.search(r"^ +[12] s  VJP-SUBSET", line) for line in lines):
            sent.append(1)
            os.killpg(process.pid, signal.SIGINT)

    done = in_terminal(
        "--properties", "VJP-REF,VJP-SUBSET", "-n", workers, "--time-limit", "100", watch=watch, own=True
    )
    assert sent
    assert done.status == 2
    assert "the run did not finish" in "\n".join(done.screen.text)
    assert not displayed(done.screen.text)
    assert not done.screen.hidden
    assert done.restored


def test_a_run_that_is_killed_leaves_the_terminal_as_it_was(in_terminal):
    def watch(lines, process):
        if displayed(lines):
            process.kill()

    done = in_terminal("--properties", "VJP-REF,VJP-SUBSET", "-n", "0", "--time-limit", "100", watch=watch, own=True)
    assert done.status == -signal.SIGKILL
    assert not done.screen.hidden
    assert done.restored


SMALL = ("--properties", "VJP-REF,VJP-FD", "-n", "1")


def test_colour_is_left_out_where_it_is_not_wanted(in_terminal):
    plain, coloured = (in_terminal(*SMALL, environment=e).sent for e in ({"NO_COLOR": "1"}, {"NO_COLOR": ""}))
    assert re.search(r"\x1b\[[\d;]*[1-9][\d;]*m", coloured)
    assert not re.search(r"\x1b\[[\d;]*m", plain)
    assert "━" in plain


def test_a_dumb_terminal_gets_lines(in_terminal):
    sent = in_terminal(*SMALL, environment={"TERM": "dumb"}).sent
    assert "\x1b" not in sent
    assert "━" not in sent
    assert "fail: VJP-FD[Exp-cpu]: rank: got 2" in sent


def test_a_log_has_no_control_characters_and_no_dots(eventful):
    assert not re.search(r"[\x00-\x09\x0b-\x1f]", eventful.out)
    before = eventful.out.partition("=== failures")[0].splitlines()[:-1]
    assert "fail: VJP-FD[Exp-cpu]: rank: got 2, expected less" in before
    shown = r"|checking .*|devices .*|bringing up nodes\.\.\.|\[gw\d+\] node down: .*|(fail|error|vacuous): VJP-.*: .*"
    assert not [line for line in before if not re.fullmatch(shown, line)]


def test_the_users_own_verbosity_is_pytests(command, suite):
    shown = command("model", "--suite", str(suite), "--functions", "Exp", *SMALL[:2], "-n", "0", "--", "-vv").out
    assert "test_right[model-Exp-cpu] PASSED" in shown


# Without a run.


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass when the test says so."""
    now = SimpleNamespace(seconds=0.0)
    monkeypatch.setattr(progress.time, "monotonic", lambda: now.seconds)
    return now


def test_the_estimate_is_that_of_the_same_tests(clock):
    slow = [f"f.py::test_slow[m-{n}-cpu]" for n in range(20)]
    quick = [f"f.py::test_quick[m-{n}-cpu]" for n in range(20)]
    course = progress.Course({*slow, *quick})
    for nodeid in slow[:10]:
        assert course.remaining() is None
        course.begin(nodeid)
        clock.seconds += 10
        course.end(nodeid)
    assert course.remaining() == pytest.approx(10 * 10 + 20 * 10)
    course.begin(quick[0])
    clock.seconds += 1
    course.end(quick[0])
    assert course.remaining() == pytest.approx(10 * 10 + 19 * 1)
    assert (course.done, course.total) == (11, 40)


def test_the_estimate_is_shared_by_the_workers(clock):
    nodeids = [f"f.py::test[m-{n}-cpu]" for n in range(40)]
    course = progress.Course(set(nodeids))
    for pair in zip(nodeids[:20:2], nodeids[1:20:2], strict=True):
        for nodeid in pair:
            course.begin(nodeid)
        clock.seconds += 4
        for nodeid in pair:
            course.end(nodeid)
    assert course.remaining() == pytest.approx(20 * 4 / 2)


class Followed:
    """A run that is reported in a log."""

    def __init__(self, monkeypatch, tmp_path):
        self.lines = []
        terminal = SimpleNamespace(write_line=self.lines.append)
        plugins = SimpleNamespace(get_plugin=lambda _: terminal)
        self.controller = SimpleNamespace(collected=set(), finished=set(), results=[])
        monkeypatch.setattr(progress, "_terminal_of", lambda _: None)
        config = SimpleNamespace(pluginmanager=plugins)
        self.progress = progress.Progress(self.controller, config, tmp_path)

    def collect(self, count):
        self.controller.collected = {f"test[m-{n}]" for n in range(count)}

    def end(self, number, outcome):
        nodeid = f"test[m-{number}]"
        self.progress.pytest_runtest_logstart(nodeid)
        self.controller.finished.add(nodeid)
        line = {"id": f"A-01[{number}]", "outcome": outcome, "reason": "because"}
        self.controller.results.append(line)
        self.progress.pytest_runtest_logreport(SimpleNamespace(nodeid=nodeid, when="teardown"))


@pytest.fixture
def followed(monkeypatch, tmp_path):
    return Followed(monkeypatch, tmp_path)


def test_a_log_gets_a_line_a_minute_and_one_for_each_failure(followed, clock):
    followed.collect(400)
    for number in range(200):
        followed.end(number, "vacuous" if number == 130 else "pass")
        clock.seconds += 1
    shown = [
        "61 of 400, 1:00, about 0:01 left",
        "121 of 400, 2:00, about 0:01 left",
        "vacuous: A-01[130]: because",
        "181 of 400, 1 failed, 3:00, about 0:01 left",
    ]
    assert followed.lines == shown


def test_a_flood_of_failures_is_cut(followed):
    followed.collect(100)
    for number in range(100):
        followed.end(number, "vacuous")
    assert len(followed.lines) == progress.FAILURES_SHOWN + 1
    assert followed.lines[-1] == "(the end of the run shows all failures)"
    assert followed.progress.summary().startswith("100 of 100, 100 failed, ")


def test_what_runs_is_named_as_its_worker_says(followed, clock, tmp_path):
    followed.collect(3)
    box = BlackBox(tmp_path / "gw0")
    for number in range(2):
        followed.progress.pytest_runtest_logstart(f"test[m-{number}]")
        clock.seconds += 1
    assert followed.progress.running() == [("test[m-0]", 2), ("test[m-1]", 1)]
    box.start("test[m-1]", {"id": "A-01[1]"}, 0)
    assert followed.progress.running() == [("test[m-0]", 2), ("A-01[1]", 1)]
    box.finish()
    box.close()


def test_a_test_whose_worker_was_lost_does_not_run(followed):
    followed.collect(2)
    followed.progress.pytest_runtest_logstart("test[m-0]")
    followed.progress.pytest_runtest_logreport(SimpleNamespace(nodeid="test[m-0]", when="???"))
    assert followed.progress.running() == []
    assert followed.progress.summary().startswith("1 of 2, ")


@pytest.mark.parametrize(("seconds", "shown"), [(0, "0:00"), (59.6, "1:00"), (125, "2:05"), (3725, "1:02:05")])
def test_times_are_reported_as_a_clock_shows_them(seconds, shown):
    assert text.clock(seconds) == shown
