"""What is not the implementation's fault ends with exit status 2 and one sentence: never 1, and without a stack."""

from __future__ import annotations

import errno
import resource
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from autograd_conformance.harness.outcomes import shortage
from autograd_conformance.harness.running import plugin
from autograd_conformance.harness.running.watchdog import START, Running, Watchdog
from autograd_conformance.selftests.conftest import OUTSIDE, outside_with
from autograd_conformance.selftests.support.warm import started

SMALL = ("model", "--functions", "Exp", "--properties", "VJP-REF,VJP-FD")
PROGRAM = "from autograd_conformance.harness.program import main; main()"


def ended(folder, *words, limit=None, env=OUTSIDE, implementation="model"):
    """Exit status and complete output of a run, perhaps with a limit on what its process may use."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "run", implementation, *SMALL[1:], "--profile", "quick", "--seed", "1", *words],
        cwd=folder, env=env, capture_output=True, text=True, timeout=300, check=False,
        preexec_fn=limit and partial(resource.setrlimit, *limit),
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def is_a_sentence(found, *parts):
    status, out = found
    assert status == 2, out
    assert "Traceback" not in out
    assert [part for part in parts if part not in out] == [], out


# Workers.


def impatient(folder):
    """The environment of a run that waits 3 s for a worker to start."""
    patch = "from autograd_conformance.harness.running import watchdog\nwatchdog.START = 3.0\n"
    (folder / "sitecustomize.py").write_text(patch)
    return outside_with(folder)


# What the program of a worker does in place of its start.
@pytest.mark.parametrize(
    ("does", "problem"),
    [
        ("os._exit(0)", "the workers cannot start: their program ended before it answered"),
        ("time.sleep(60)", "the workers cannot start: they did not answer within 3 s"),
    ],
)
def test_a_worker_that_cannot_start_is_no_failure(tmp_path, does, problem):
    env = impatient(tmp_path)
    with (tmp_path / "sitecustomize.py").open("a") as file:
        file.write(f"import os, sys, time\nif 'stdin.readline' in str(sys.orig_argv): {does}\n")
    old = tmp_path / "autograd-conformance.ndjson"
    old.write_text('{"kind": "header", "of": "old"}\n')
    is_a_sentence(ended(tmp_path, "--time-limit", "1", "-n", "1", env=env), problem)
    assert old.read_text() == '{"kind": "header", "of": "old"}\n'


SLOW = """
import os
import time

from autograd_conformance.implementations.model import ModelImplementation


class SlowImplementation(ModelImplementation):
    name = "slow"

    def environment(self):
        time.sleep(60 if "PYTEST_XDIST_WORKER" in os.environ else 0)
        return super().environment()
"""


def test_a_worker_that_does_not_get_to_its_tests_is_no_failure(tmp_path):
    (tmp_path / "slow.py").write_text(SLOW)
    found = ended(tmp_path, "--time-limit", "1", "-n", "1", env=impatient(tmp_path), implementation="slow.py")
    is_a_sentence(found, "cannot start: it did not answer within 3 s")


def test_a_start_may_take_longer_than_a_test():
    node = SimpleNamespace(gateway=SimpleNamespace(id="gw0"))
    watchdog = Watchdog(Path(), 3.0)
    watchdog.start_worker(node)
    start = watchdog._running["gw0"]
    start.seconds = START - 1
    assert (start.late, start.ignored) == (False, False)
    start.seconds = START
    assert (start.late, start.ignored) == (True, False)
    start.seconds = 2 * START
    assert start.ignored
    watchdog.begin("a::b", node, {})
    test = watchdog._running["a::b"]
    test.seconds = 12.0
    assert (test.late, test.ignored) == (True, False)
    test.seconds = 14.0
    assert test.ignored
    # 0 is no limit.
    unlimited = Running(node, {}, 0.0, seconds=1e6)
    assert (unlimited.late, unlimited.ignored) == (False, False)
    # A worker that runs a test has started, whether or not its collection was announced.
    assert watchdog.end("gw0") is None


def test_what_is_sent_to_a_dead_worker_does_not_end_the_run():
    def closed(*_, **__):
        raise OSError("cannot send (already closed?)")

    plugin._send_if_open(closed, "runtests", indices=[1])


# Arguments of pytest.


@pytest.mark.parametrize("word", ["--help", "-h", "-xh", "--version", "-V", "--markers", "--fixtures"])
def test_what_only_shows_something_checks_nothing(said, word):
    status, out = said("run", *SMALL, "-n", "0", "--", word)
    assert (status, "checks nothing" in out) == (2, True), out


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("-n", "1", "--", "-k", "("), "Wrong expression passed to '-k'"),
        (("-n", "0", "--", "-k", "("), "Wrong expression passed to '-k'"),
        (("-n", "0", "--", "none.py"), "there are no tests in "),
        (("-n", "0", "--", "--dist=each"), "would change what the suite loads or runs"),
        (("-n", "0", "--", "--maxfail=x"), "invalid int value"),
    ],
)
def test_a_wrong_argument_of_pytest_is_a_sentence(tmp_path, words, problem):
    done = started("run", *SMALL, "--profile", "quick", "--seed", "1", *words, folder=tmp_path)
    is_a_sentence((done.returncode, done.stdout + done.stderr), problem)


def test_a_k_that_names_an_option_is_no_option(said):
    words = (*SMALL, "--profile", "quick", "--seed", "1", "-n", "0")
    assert said("run", *words, "--", "-k", "not implementation")[0] in (0, 2)


# Limits of the machine.


@pytest.mark.parametrize("workers", ["0", "1"])
@pytest.mark.parametrize("files", [6, 8, 10, 12, 14])
def test_too_few_files_are_no_failure(tmp_path, files, workers):
    limit = (resource.RLIMIT_NOFILE, (files, files))
    is_a_sentence(ended(tmp_path, "-n", workers, limit=limit), "Too many open files")


# Without workers: one whose interpreter cannot start says so by itself, before any of our code runs.
@pytest.mark.parametrize("mebibytes", [60, 150, 200])
def test_too_little_memory_is_no_failure(tmp_path, mebibytes):
    limit = (resource.RLIMIT_AS, (mebibytes * 2**20, mebibytes * 2**20))
    status, out = ended(tmp_path, "-n", "0", limit=limit, env={**OUTSIDE, "OPENBLAS_NUM_THREADS": "1"})
    # How much the interpreter and its libraries need depends on the machine.
    assert status in (0, 2), out
    assert "Traceback" not in out


@pytest.mark.parametrize("size", [0, 512, 2048])
def test_files_that_must_be_small_are_no_failure(tmp_path, size):
    found = ended(tmp_path, "-n", "0", limit=(resource.RLIMIT_FSIZE, (size, size)))
    is_a_sentence(found)
    assert not (tmp_path / "autograd-conformance.ndjson").exists() or size == 2048


@pytest.mark.parametrize(
    ("raised", "scarce"),
    [
        (MemoryError(), True),
        (OSError(errno.EMFILE, "Too many open files"), True),
        (BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"), True),
        (RuntimeError("can't start new thread"), True),
        (RuntimeError("the Function is wrong"), False),
        (FileNotFoundError(errno.ENOENT, "No such file"), False),
        (ValueError("memory"), False),
    ],
)
def test_only_what_the_machine_lacks_is_a_shortage(raised, scarce):
    assert bool(shortage(raised)) == scarce


def test_threads_that_cannot_start_are_no_failure(said, monkeypatch):
    def refuse(_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    status, out = said("run", *SMALL, "--profile", "quick", "--seed", "1", "-n", "1")
    assert (status, "can't start new thread" in out) == (2, True), out
