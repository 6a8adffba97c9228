"""Processes that are stopped end, also those that no worker's watchdog sees: the one of a run, and that of a check."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time

import pytest

from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.harness.processes import supervision
from autograd_conformance.harness.processes.supervision import supervised
from autograd_conformance.selftests.conftest import COMMAND, OUTSIDE


def stopped():
    os.kill(os.getpid(), signal.SIGSTOP)
    return 0


def test_a_stopped_run_ends(monkeypatch):
    monkeypatch.setattr(supervision, "_PATIENCE", 1.0)
    with pytest.raises(UsageProblem, match="its process ended with SIGKILL before the verdict"):
        supervised(stopped)


def test_a_run_that_is_stopped_for_a_moment_goes_on(monkeypatch):
    monkeypatch.setattr(supervision, "_PATIENCE", 3.0)
    forked = []
    fork = os.fork
    monkeypatch.setattr(os, "fork", lambda: forked.append(fork()) or forked[-1])
    timer = threading.Timer(1.0, lambda: os.kill(forked[0], signal.SIGCONT))
    timer.start()
    assert supervised(stopped) == 0
    timer.join()


def test_a_run_in_the_background_of_a_shell_can_be_cancelled():
    """There SIGINT is ignored."""
    begun, to_test = os.pipe()
    parent = os.fork()
    if parent == 0:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

        def action():
            # The parent is soon ready to hear.
            time.sleep(1)
            os.write(to_test, b"x")
            for _ in range(3000):
                # In steps: what interrupts a process just before it sleeps is heard after that.
                time.sleep(0.1)
            return 0

        os._exit(supervised(action))
    os.read(begun, 1)
    os.kill(parent, signal.SIGINT)
    assert os.waitpid(parent, os.WNOHANG)[0] == 0
    os.kill(parent, signal.SIGTERM)
    before = time.monotonic()
    assert os.waitstatus_to_exitcode(os.waitpid(parent, 0)[1]) == 2
    assert time.monotonic() - before < 200


def test_the_time_in_which_the_parent_is_stopped_too_does_not_count():
    """As by a scheduler that suspends a job: the parent goes on first, and the child soon after."""
    parent = os.fork()
    if parent == 0:
        supervision._PATIENCE = 2.0
        os.setpgid(0, 0)
        os._exit(supervised(stopped_with_the_parent))
    time.sleep(5)
    os.kill(parent, signal.SIGCONT)
    assert os.waitstatus_to_exitcode(os.waitpid(parent, 0)[1]) == 0


def stopped_with_the_parent():
    parent, goes_on = os.getppid(), time.monotonic() + 5.5
    if os.fork() == 0:
        time.sleep(0.7)
        os.kill(parent, signal.SIGSTOP)
        time.sleep(max(0, goes_on - time.monotonic()))
        os.kill(os.getppid(), signal.SIGCONT)
        os._exit(0)
    return stopped()


STOPPING = """
import os
import signal
import subprocess

import torch
from autograd_conformance import Declaration


class Stopping(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        # Not in what is asked before the checks.
        if "test_vjp_ref" in os.environ["PYTEST_CURRENT_TEST"]:
            os.kill(os.getpid(), signal.SIGSTOP)
        return 2 * g


stopping = Declaration(Stopping, "float[n]")
"""


def test_a_run_that_is_ended_ends_at_once_and_quietly(tmp_path):
    """Its worker, too: xdist would wait for ten seconds, and the worker warn that nobody hears it."""
    words = [COMMAND, "run", "model", "-n", "1", "--properties", "VJP-REF"]
    running = subprocess.Popen(
        words, cwd=tmp_path, env=OUTSIDE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    report = tmp_path / "autograd-conformance.ndjson"
    while not report.exists() or len(report.read_bytes().splitlines()) < 2:
        assert running.poll() is None
        time.sleep(0.05)
    running.send_signal(signal.SIGTERM)
    out, errors = running.communicate(timeout=8)
    assert (running.returncode, errors) == (2, "")
    assert "the run did not finish: " in out
    assert "test ids have no result; it was interrupted" in out
    assert not any(word in out for word in ("Warning", "KeyboardInterrupt", "controller.py"))


def test_a_stopped_check_is_a_hang(tmp_path):
    (tmp_path / "mine.py").write_text(STOPPING)
    # After a backward of another test, torch's engine may refuse to run in a fork of this process.
    words = [COMMAND, "check", "mine.py", "--properties", "VJP-REF,VJP-FD", "--time-limit", "3"]
    done = subprocess.run(words, cwd=tmp_path, env=OUTSIDE, capture_output=True, text=True, check=False)
    assert (done.returncode, "HANGS: VJP-REF" in done.stdout) == (2, True), done.stdout + done.stderr
