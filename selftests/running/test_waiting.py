"""Threads that an adapter leaves end nothing late, and a run that is silent says what it waits for."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from autograd_conformance.harness.probing import smoke
from autograd_conformance.harness.processes import waiting
from autograd_conformance.harness.running import progress
from autograd_conformance.selftests.conftest import OUTSIDE

# An adapter that leaves a thread which does not end, and one that an interpreter does not wait for.
LEAVING = """
import threading, time
from autograd_conformance.implementations.model import ModelImplementation


class Mine(ModelImplementation):
    name = "mine"


threading.Thread(target=time.sleep, args=(90,), daemon={daemon}).start()
"""


@pytest.mark.parametrize("daemon", [False, True])
def test_the_smoke_stage_ends_when_its_calls_are_done(tmp_path, daemon):
    (tmp_path / "mine.py").write_text(LEAVING.format(daemon=daemon))
    assert smoke.problems(str(tmp_path / "mine.py"), seconds=60) == []


WORKER = """
import sys, threading, time
from autograd_conformance.harness.processes.supervision import leave_with_main_thread
leave_with_main_thread()
threading.Thread(target=time.sleep, args=(90,), daemon=False).start()
print("done", flush=True)
"""


def test_a_worker_ends_with_its_main_thread():
    done = subprocess.run([sys.executable, "-c", WORKER], env=OUTSIDE, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


@pytest.fixture
def watch():
    """A watch that speaks after a second, and what it says."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    with os.fdopen(reading, "rb", buffering=0) as said, os.fdopen(writing, "wb") as file:
        found = waiting.Watch(file.fileno(), 1.0)
        found.said = lambda: (said.read() or b"").decode()
        yield found


def after(watch, seconds, monkeypatch):
    """What the watch says when it looks so many seconds after the last event."""
    with monkeypatch.context() as patch:
        patch.setattr(time, "monotonic", lambda: watch._since + seconds)
        watch.look()
    return watch.said()


def test_a_run_that_is_silent_says_what_it_waits_for(watch, monkeypatch):
    watch.what = "an import"
    assert after(watch, 0.9, monkeypatch) == ""
    assert after(watch, 1.2, monkeypatch) == "still waiting after 1 s for an import\n"
    # Not again at once.
    assert after(watch, 1.8, monkeypatch) == ""
    assert after(watch, 2.1, monkeypatch) == "still waiting after 2 s for an import\n"
    watch.moved()
    assert after(watch, 0.9, monkeypatch) == ""
    watch.what = None
    assert after(watch, 100, monkeypatch) == ""


def test_what_it_waits_for_may_be_gone_when_it_is_asked(watch, monkeypatch):
    def changed():
        raise RuntimeError("dictionary changed size during iteration")

    watch.what = changed
    assert after(watch, 5, monkeypatch) == ""


def test_each_phase_has_its_words_and_gives_way_to_the_one_before(watch, monkeypatch):
    monkeypatch.setattr(waiting, "_WATCH", [watch])
    waiting.phase("one")
    with waiting.during("two"):
        assert watch.what == "two"
    assert watch.what == "one"


def test_the_tests_that_run_are_named(monkeypatch, tmp_path, watch):
    monkeypatch.setattr(waiting, "_WATCH", [watch])
    monkeypatch.setattr(progress, "_terminal_of", lambda _: None)
    plugins = SimpleNamespace(get_plugin=lambda _: None)
    config = SimpleNamespace(pluginmanager=plugins, option=SimpleNamespace(time_limit=300.0))
    shown = progress.Progress(SimpleNamespace(collected={"a::t[m-1]"}, results=[]), config, tmp_path)
    shown.pytest_runtest_logstart("a::t[m-1]")
    said = after(watch, 12, monkeypatch)
    assert said == "still waiting after 12 s for t[m-1] (0:12); a test is ended after 5:00\n"
    shown.pytest_sessionfinish()
    assert watch.what == "the workers to end"


def test_a_run_watches_from_its_start(monkeypatch, tmp_path, capfd):
    (tmp_path / "mine.py").write_text(LEAVING.format(daemon=True))
    monkeypatch.setattr(waiting, "SECONDS", 0.1)
    monkeypatch.setattr(waiting, "_STEP", 0.1)
    monkeypatch.setattr(waiting, "_WATCH", [])
    with waiting.watched():
        assert smoke.problems(str(tmp_path / "mine.py")) == []
    assert "s for a process that imports " in capfd.readouterr().err
