"""An implementation that tries to decide about the exit status of its own run."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import pytest

from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.harness.running.supervision import supervised
from autograd_conformance.selftests.conftest import COMMAND, OUTSIDE

# An implementation whose tanh is wrong if it says so, and what it does in addition.
MINE = """
import atexit, os, signal, sys, threading
from types import SimpleNamespace

from autograd_conformance.implementations.model import ModelImplementation
from autograd_conformance.reference.model_namespace import xp


class Mine(ModelImplementation):
    name = "mine"
    calls = 0
    xp = SimpleNamespace(**{{**vars(xp), **({{"tanh": lambda x: 1.01 * xp.tanh(x)}} if {wrong} else {{}})}})

    def vjp(self, *args, **kwargs):
        Mine.calls += 1
        {during}
        return super().vjp(*args, **kwargs)


{at_import}
"""

AT_THE_END = ("atexit.register(os._exit, 0)", "atexit.register(os.abort)")
IN_BETWEEN = ("os._exit(0)", "os.kill(os.getpid(), signal.SIGKILL)", "raise SystemExit(0)")


def mine(folder, *, wrong=False, during="pass", at_import=""):
    """An adapter of the model that does this while it runs, and when it is imported."""
    (folder / "mine.py").write_text(MINE.format(wrong=wrong, during=during, at_import=at_import))
    return "mine.py"


def checked(folder, *words, **what):
    """A run of an attacking adapter."""
    narrow = ("--functions", "LLTM", "--properties", "VJP-REF,FWD-VALUE")
    return subprocess.run(
        [COMMAND, "run", mine(folder, **what), *narrow, *words], cwd=folder, env=OUTSIDE, capture_output=True,
        text=True, timeout=300, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(("attack", "workers"), [*zip(AT_THE_END, "02", strict=True)])
def test_how_the_process_ends_decides_nothing(tmp_path, attack, workers):
    right = checked(tmp_path, "-n", workers, at_import=attack)
    wrong = checked(tmp_path, "-n", workers, at_import=attack, wrong=True)
    assert (right.returncode, wrong.returncode) == (0, 1), right.stderr + wrong.stderr


@pytest.mark.parametrize(("attack", "workers"), [*zip(IN_BETWEEN, "002", strict=True)])
def test_a_run_that_ends_in_between_is_no_success(tmp_path, attack, workers):
    # More calls than the smoke stage makes.
    done = checked(tmp_path, "-n", workers, during=f"if Mine.calls > 20: {attack}")
    assert done.returncode in (1, 2), done.stdout
    assert "Traceback" not in done.stderr
    if done.returncode == 2:
        assert done.stderr.startswith("Error: the run did not end properly: its process ")


def exits():
    raise SystemExit(0)


def raises():
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("action", "how"),
    [
        (lambda: os._exit(0), "ended with exit status 0 before the verdict"),
        (lambda: os._exit(1), "ended with exit status 1 before the verdict"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "was ended by SIGKILL before the verdict"),
    ],
)
def test_a_process_that_ends_itself_gives_no_verdict(action, how):
    with pytest.raises(UsageProblem, match=how):
        supervised(action)


@pytest.mark.parametrize(("action", "status"), [(lambda: 0, 0), (lambda: 1, 1), (exits, 2), (raises, 2)])
def test_the_verdict_is_what_the_process_says_at_its_end(action, status):
    assert supervised(action) == status


def test_a_gate_does_not_pass_without_a_verdict(tmp_path):
    right = checked(tmp_path, "-n", "0")
    assert right.returncode == 0, right.stderr
    accepted = [COMMAND, "accept", "autograd-conformance.ndjson", "-o", "base.txt"]
    assert subprocess.run(accepted, cwd=tmp_path, env=OUTSIDE, check=False, capture_output=True).returncode == 0
    for what in ({"wrong": True, "at_import": AT_THE_END[0]}, {"during": "os._exit(0)"}, {"at_import": "os._exit(0)"}):
        assert checked(tmp_path, "-n", "0", "--baseline", "base.txt", **what).returncode in (1, 2)


def test_a_regression_that_the_smoke_stage_meets_is_one_all_the_same(tmp_path):
    """With a baseline the adapter is known to be right."""
    assert checked(tmp_path, "-n", "0").returncode == 0
    accepted = [COMMAND, "accept", "autograd-conformance.ndjson", "-o", "base.txt"]
    assert subprocess.run(accepted, cwd=tmp_path, env=OUTSIDE, check=False, capture_output=True).returncode == 0
    broken = "Mine.xp.sqrt, Mine.xp.tanh = (lambda x: x), (lambda x: 1.01 * xp.tanh(x))"
    unknown = checked(tmp_path, "-n", "0", at_import=broken)
    assert unknown.returncode == 2
    assert "does not pass the smoke stage" in unknown.stderr
    gated = checked(tmp_path, "-n", "0", "--baseline", "base.txt", at_import=broken)
    assert gated.returncode == 1, gated.stderr
    assert "the run goes on, to show what this breaks:\n  xp.sqrt is " in gated.stderr
    assert "VJP-REF[LLTM-cpu]" in gated.stdout
    assert "gate: fails: 2 broken" in gated.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda n: n.name)
def test_what_cancels_a_job_ends_it_like_an_interrupt(tmp_path, number):
    path = tmp_path / "r.ndjson"
    running = subprocess.Popen(
        [COMMAND, "run", "model", "--profile", "quick", "-n", "2", "--report", "r.ndjson"], cwd=tmp_path, env=OUTSIDE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: [signal.signal(each, signal.SIG_DFL) for each in (signal.SIGINT, number)],
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while (not path.exists() or path.stat().st_size < 20_000) and time.monotonic() < deadline:
        time.sleep(0.05)
    running.send_signal(number)
    out, err = running.communicate(timeout=120)
    assert running.returncode == 2, out + err
    assert "the run did not finish" in out
    assert "report: r.ndjson, without a footer" in out
    assert ndjson.flaw(ndjson.read(path))
