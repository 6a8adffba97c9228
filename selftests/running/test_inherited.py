"""What a process inherits from whoever starts it: ignored and blocked signals, and streams that are closed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from autograd_conformance.selftests.conftest import COMMAND, OUTSIDE

NARROW = ("run", "model", "--functions=Exp", "--properties=VJP-REF", "--profile=quick", "--seed=1", "-n0")


def nothing():
    """The usual: what a shell gives."""


def ignore_ends():
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)


def close(*numbers):
    return lambda: [os.close(number) for number in numbers]


def block():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGCHLD})


@pytest.mark.parametrize(
    ("given", "heard"),
    [(nothing, {1, 2}), (ignore_ends, {1, 2}), (close(1), {2}), (close(0, 1, 2), set())],
    ids=["nothing", "SIGCHLD", "stdout", "all three"],
)
def test_the_verdict_is_that_of_the_run(tmp_path, given, heard):
    """With what it prints, as far as that can arrive."""
    done = subprocess.run(
        [COMMAND, *NARROW], cwd=tmp_path, env=OUTSIDE, capture_output=True, text=True, preexec_fn=given, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert ("3 of 3 test ids hold" in done.stdout) == (1 in heard)
    assert [file.name for file in tmp_path.iterdir()] == ["autograd-conformance.ndjson"]


# What a command does that waits to be ended.
WAITING = """
import sys, time
from autograd_conformance.harness import cli, program
cli.main = lambda: (print("begun", flush=True), time.sleep(60))
program.main()
"""


@pytest.mark.parametrize("given", [nothing, block])
def test_a_signal_that_was_blocked_ends_the_command(given):
    with subprocess.Popen(
        [sys.executable, "-c", WAITING], env=OUTSIDE, stdout=subprocess.PIPE, text=True, preexec_fn=given
    ) as running:
        assert running.stdout.readline() == "begun\n"
        running.terminate()
        assert running.wait(20) == -signal.SIGTERM


PROGRAM = "from autograd_conformance.harness.program import main; main()"


@pytest.mark.parametrize(
    ("words", "errors_too"),
    [(("list", "clauses"), False), (("compare", "no", "no"), True), (NARROW, True), ((*NARROW[:-1], "-n1"), False)],
    ids=["list", "compare", "run", "run with a worker"],
)
def test_a_reader_that_has_ended_is_no_failure(tmp_path, words, errors_too):
    """As after ``| head -1``. Exit status 1 would say that the implementation fails."""
    reading, writing = os.pipe()
    os.close(reading)
    errors = writing if errors_too else subprocess.PIPE
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words], cwd=tmp_path, env=OUTSIDE, stdout=writing, stderr=errors, text=True,
        check=False,
    )  # fmt: skip
    os.close(writing)
    assert done.returncode == 2
    if not errors_too:
        (said,) = done.stderr.splitlines()
        assert said.startswith("Error: who reads the output has ended")


def test_a_full_pipe_that_does_not_wait_loses_nothing():
    words = [sys.executable, "-c", PROGRAM, "list", "clauses"]
    expected = subprocess.run(words, env=OUTSIDE, stdout=subprocess.PIPE, check=True).stdout
    # More than fits into a pipe.
    assert len(expected) > 2**16
    with subprocess.Popen(
        words, env=OUTSIDE, stdout=subprocess.PIPE, preexec_fn=lambda: os.set_blocking(1, False)
    ) as running:
        # Until it is full.
        with pytest.raises(subprocess.TimeoutExpired):
            running.wait(2)
        assert running.stdout.read() == expected
    assert running.returncode == 0
