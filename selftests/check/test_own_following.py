"""What `check` shows while it runs: each fault at once, also if it is then interrupted or killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time

import psutil
import pytest

pytest.importorskip("torch")

from autograd_conformance.harness.reports import ndjson
from autograd_conformance.selftests.conftest import COMMAND, OUTSIDE
from autograd_conformance.selftests.support import screen, warm

# VJP-FD finds a fault, and ENV-THREADS does not end.
WAITING = """
import threading, time
import torch
from autograd_conformance.harness.check import Declaration

class Norms(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x * x).sum()

    @staticmethod
    def backward(ctx, g):
        return 2 * g * ctx.saved_tensors[0]

class Waiting(Norms):
    @staticmethod
    def forward(ctx, x):
        if threading.current_thread() is not threading.main_thread():
            time.sleep(200)
        return Norms.forward(ctx, x)

    @staticmethod
    def backward(ctx, g):
        return 3 * g * ctx.saved_tensors[0]

waiting = Declaration(Waiting, "float[n]")
after = Declaration(Norms, "float[n]", name="After")
"""
ASKED = ("--properties", "VJP-FD,ENV-THREADS,FWD-DTYPE", "--profile", "quick", "--seed", "1")
CHECK = (COMMAND, "check", "mine.py", *ASKED, "--time-limit", "100")
FOUND = "found: Waiting: WRONG: VJP-FD"
# The display's lines.
DISPLAY = re.compile(r"━|^\d+ of \d+ checks|^finding out|^preparing|^ +\d+ s  ")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mine.py").write_text(WAITING)
    return tmp_path


@pytest.fixture(scope="module")
def terminated(tmp_path_factory):
    """A folder in which `check` ran in a terminal until it was terminated, and what was seen."""
    folder = tmp_path_factory.mktemp("terminated")
    (folder / "mine.py").write_text(WAITING)
    return folder, in_terminal(folder, lambda process: process.terminate())


def displayed(lines):
    return [line for line in lines if DISPLAY.search(line)]


def runs_threads(lines):
    return any(re.search(r"^ +\d+ s  ENV-THREADS\[Waiting-cpu\]", line) for line in lines)


def in_terminal(folder, send, *, columns=120):
    """`check` in a terminal; ``send`` is called with the process when the last check runs."""
    sent = []

    def watch(lines, process):
        if not sent and runs_threads(lines):
            sent.append(1)
            send(process)

    done = screen.run([*CHECK, "--report", "r.ndjson"], folder, columns=columns, watch=watch)
    assert sent
    return done


def test_an_interrupted_check_says_what_it_knew(folder):
    done = in_terminal(folder, lambda process: os.killpg(process.pid, signal.SIGINT), columns=40)
    says_what_it_knew(folder, done, "interrupted", 40)


@pytest.mark.parametrize(("name", "named"), [("Waiting", 1), ("After", 0)])
def test_the_words_of_a_fault_are_explained_by_a_command(folder, name, named):
    words = [COMMAND, "check", "mine.py", "--functions", name, "--properties", "VJP-FD", "--profile", "quick"]
    done = screen.run(words, folder, columns=120)
    assert done.status == named
    assert sum("what the words mean: autograd-conformance list verdicts" in line for line in done.screen.text) == named


def test_a_terminated_check_says_what_it_knew(terminated):
    says_what_it_knew(*terminated, "terminated", 120)


def says_what_it_knew(folder, done, word, columns):
    """Assert that a check that ended so has shown what it found, and has left the terminal as it was."""
    text = " ".join(" ".join(done.screen.text).split())
    assert done.status == 2
    assert not displayed(done.screen.text)
    assert not done.screen.hidden
    assert done.restored
    before, after = text.split("Waiting (", 1)
    assert FOUND in before
    assert f"{word}: not all of its checks were made" in after
    assert "1 check holds, 4 do not" in after
    assert "must hold: gradients agree" in after
    # The terminal breaks this line anywhere.
    assert f"After:notchecked:{word}" in after.replace(" ", "")
    assert "Traceback" not in text
    assert max(map(len, done.screen.text)) <= columns
    assert "the run did not finish" in str(ndjson.flaw(ndjson.read(folder / "r.ndjson")))


def test_the_progress_is_shown_below_what_was_found(terminated):
    _, done = terminated
    shown = next(lines for lines in done.screens if runs_threads(lines))
    place = next(n for n, line in enumerate(shown) if line.startswith(FOUND))
    bar = next(n for n, line in enumerate(shown) if "━" in line)
    assert place < bar
    assert re.fullmatch(r"[345] of 12 checks, 1 fault, 0:\d\d", shown[bar + 1])
    assert any(line.startswith("finding out about ") for lines in done.screens for line in lines)


def until(condition, seconds=100):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_killed_check_has_shown_what_it_found_and_leaves_no_process(folder):
    with (folder / "out.txt").open("w") as out:
        running = subprocess.Popen(CHECK, cwd=folder, env=OUTSIDE, stdout=out, stderr=out)
    until(lambda: FOUND in (folder / "out.txt").read_text())
    children = psutil.Process(running.pid).children(recursive=True)
    assert children
    running.kill()
    running.wait()
    assert not psutil.wait_procs(children, timeout=20)[1]
    assert (folder / "out.txt").read_text().startswith(FOUND)


def test_a_killed_process_costs_the_check_that_it_made(folder):
    def kill(process):
        (child,) = psutil.Process(process.pid).children()
        child.kill()

    done = in_terminal(folder, kill)
    text = " ".join(" ".join(done.screen.text).split())
    # A fault was found before.
    assert done.status == 1
    assert "CRASHES: ENV-THREADS must hold: concurrent calls" in text
    assert "the process ended without a word" in text
    # The other checks are made, and none is made again.
    ids = [line["id"] for line in ndjson.read(folder / "r.ndjson") if line["kind"] == "result"]
    assert len(ids) == len(set(ids)) == 12
    assert ndjson.flaw(ndjson.read(folder / "r.ndjson")) is None
    waiting, after = text.split("After (", 1)
    assert "1 check holds, 5 do not" in waiting
    assert "6 checks hold, 0 do not" in after


def test_the_checks_that_tell_most_come_first_and_those_of_a_function_together(folder):
    text = WAITING.replace("time.sleep(200)", "pass")
    (folder / "mine.py").write_text(text)
    done = warm.started(*CHECK[1:], "--report", "r.ndjson", folder=folder, torch=True)
    assert done.returncode == 1, done.stdout + done.stderr
    tests = [(line["function"], ndjson.test_of(line)) for line in ndjson.read(folder / "r.ndjson")[1:-1]]
    expected = ["VJP-FD", "VJP-FD/kinks", "VJP-FD/long", "VJP-FD/small", "FWD-DTYPE", "ENV-THREADS"]
    assert tests == [(name, test) for name in ("Waiting", "After") for test in expected if (name, test) in tests]
    assert {test for _, test in tests} == set(expected)
    # What one cause explains is shown once, and the verdict follows when it is known.
    assert done.stdout.count("found: Waiting: ") == 1
    assert done.stdout.count("\x1b") == 0
    assert done.stdout.index("\nWaiting (") < done.stdout.index("\nAfter (")
