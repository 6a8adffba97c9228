"""Workers that do not answer, or are lost without a word: each costs the test id that it ran."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from autograd_conformance.harness.outcomes import DEATH, HANG
from autograd_conformance.harness.running.results import died_line
from autograd_conformance.harness.running.watchdog import Watchdog

STOPPING = """
import os
import signal
import time

from autograd_conformance.harness.testing.marks import holds


def right(subject, data):
    example = subject.example(data.draw(subject.calls(), label="call"))
    subject.assert_close(example.call, example.names, got=example.run()[1], expected=example.expected.gradients())


@holds("VJP-REF")
def test_right(subject, data):
    right(subject, data)


@holds("VJP-FD", where=lambda f: f.name == "Exp")
def test_stopped(subject, data):
    right(subject, data)
    os.kill(os.getpid(), signal.SIGSTOP)


@holds("VJP-LINEAR", where=lambda f: f.name == "Exp")
def test_dead_with_a_child(subject, data):
    right(subject, data)
    # What it leaves behind has the connection to the controller open until that has given it up.
    if os.fork() == 0:
        for _ in range(600):
            if "VJP-LINEAR[" in open("autograd-conformance.ndjson").read():
                break
            time.sleep(0.1)
    os._exit(0)
"""


def test_a_worker_that_does_not_answer_costs_its_id_alone(command, tmp_path):
    (tmp_path / "test_stopping.py").write_text(STOPPING)
    words = ("--suite", str(tmp_path), "--functions", "Exp,Square", "--time-limit", "3", "-n", "4")
    run = command("model", *words)
    assert run.status == 1, run.out + run.err
    assert run.footer is not None
    assert run.outcomes == {
        "VJP-REF[Exp-cpu]": "pass",
        "VJP-REF[Square-cpu]": "pass",
        "VJP-FD[Exp-cpu]": "error",
        "VJP-LINEAR[Exp-cpu]": "error",
    }
    stopped = run.results["VJP-FD[Exp-cpu]"]["failure"]
    assert (stopped["type"], stopped["call"][:10]) == (HANG, "Call('Exp'")
    assert stopped["message"] == "did not finish within the time limit of 0:00:03 (h:mm:ss)"


@pytest.mark.parametrize(("seconds", "kind"), [(2, DEATH), (5, HANG)])
def test_a_worker_without_a_black_box_is_blamed_on_what_it_ran(tmp_path, seconds, kind):
    watchdog = Watchdog(tmp_path, 5.0)
    key = {"kind": "result", "id": "VJP-REF[Exp-cpu]", "property": "VJP-REF", "function": "Exp", "device": "cpu"}
    watchdog.begin("a::b", SimpleNamespace(gateway=SimpleNamespace(id="gw0")), key)
    running = watchdog.end("a::b")
    running.seconds = seconds
    line = died_line(watchdog.last_words("a::b", running), ())
    assert (line["id"], line["outcome"], line["failure"]["type"]) == (key["id"], "error", kind)
    assert watchdog.end("a::b") is None
