"""An implementation that tries to decide about the exit status of its own run."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import pytest

from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.harness.processes.supervision import supervised
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.selftests.conftest import COMMAND, OUTSIDE
from autograd_conformance.selftests.gate.attacking import accept, checked

AT_THE_END = ("atexit.register(os._exit, 0)", "atexit.register(os.abort)")
# With the number of workers and the right exit status: what raises in a test is a failure of that one.
IN_BETWEEN = (
    ("os._exit(0)", "0", 2),
    ("os.kill(os.getpid(), signal.SIGKILL)", "0", 2),
    ("raise SystemExit(0)", "1", 1),
)


@pytest.mark.parametrize(("attack", "workers"), [*zip(AT_THE_END, "01", strict=True)])
def test_how_the_process_ends_decides_nothing(tmp_path, attack, workers):
    right = checked(tmp_path, "-n", workers, at_import=attack)
    wrong = checked(tmp_path, "-n", workers, at_import=attack, wrong=True)
    assert (right.returncode, wrong.returncode) == (0, 1), right.stderr + wrong.stderr


@pytest.mark.parametrize(("attack", "workers", "status"), IN_BETWEEN)
def test_a_run_that_ends_in_between_is_no_success(tmp_path, attack, workers, status):
    done = checked(tmp_path, "-n", workers, during=f"if Mine.calls > 20: {attack}")
    assert done.returncode == status, done.stdout
    assert "Traceback" not in done.stderr
    if status == 2:
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
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "ended with SIGKILL before the verdict"),
    ],
)
def test_a_process_that_ends_itself_gives_no_verdict(action, how):
    with pytest.raises(UsageProblem, match=how):
        supervised(action)


@pytest.mark.parametrize(("action", "status"), [(lambda: 0, 0), (lambda: 1, 1), (exits, 2), (raises, 2)])
def test_the_verdict_is_what_the_process_says_at_its_end(action, status):
    assert supervised(action) == status


@pytest.mark.parametrize(("exits", "status"), [(None, 0), (0, None)], ids=["returns", "ends itself"])
def test_a_process_that_the_implementation_forked_is_not_waited_for(exits, status):
    pipe, write_end = os.pipe()

    def leaves_one():
        pid = os.fork()
        if pid == 0:
            time.sleep(600)
            os._exit(0)
        os.write(write_end, str(pid).encode())
        if exits is not None:
            os._exit(exits)
        return 0

    began = time.monotonic()
    try:
        if status is None:
            with pytest.raises(UsageProblem, match="ended with exit status 0 before the verdict"):
                supervised(leaves_one)
        else:
            assert supervised(leaves_one) == status
        assert time.monotonic() - began < 300
    finally:
        os.kill(int(os.read(pipe, 16)), signal.SIGKILL)
        os.close(pipe)
        os.close(write_end)


def test_a_gate_does_not_pass_without_a_verdict(tmp_path):
    right = checked(tmp_path, "-n", "0")
    assert right.returncode == 0, right.stderr
    accept(tmp_path)
    attacks = (
        ({"wrong": True, "at_import": AT_THE_END[0]}, 1),
        ({"during": "os._exit(0)"}, 2),
        ({"at_import": "os._exit(0)"}, 2),
    )
    for what, status in attacks:
        assert checked(tmp_path, "-n", "0", "--baseline", "base.txt", **what).returncode == status


def test_a_regression_that_the_smoke_stage_meets_is_one_all_the_same(tmp_path):
    """With a baseline the adapter is known to be right."""
    assert checked(tmp_path, "-n", "0").returncode == 0
    accept(tmp_path)
    broken = "Mine.xp.sqrt, Mine.xp.tanh = (lambda x: x), (lambda x: 1.01 * model_namespace.xp.tanh(x))"
    unknown = checked(tmp_path, "-n", "0", at_import=broken)
    assert unknown.returncode == 2
    assert "does not pass the smoke stage" in unknown.stderr
    gated = checked(tmp_path, "-n", "0", "--baseline", "base.txt", at_import=broken)
    assert gated.returncode == 1, gated.stderr
    assert "the run goes on, to show what this breaks:\n  xp.sqrt(x) is " in gated.stderr
    assert "VJP-REF[LLTM-cpu]" in gated.stdout
    assert "gate: fails: 2 broken" in gated.stdout


# It waits in its second test, until it is interrupted.
WAITING = """
import time
from pathlib import Path

from autograd_conformance.harness.testing.marks import holds


@holds("FWD-VALUE")
def test_right(subject, data):
    data.draw(subject.calls())
    subject.assert_that(True, None, "it", got=1, expected=1)


@holds("VJP-REF")
def test_waiting(subject, data):
    Path("waiting").touch()
    time.sleep(60)
"""


@pytest.mark.parametrize(
    ("number", "workers"),
    [(signal.SIGINT, "0"), (signal.SIGTERM, "0"), (signal.SIGHUP, "0"), (signal.SIGTERM, "1")],
    ids=lambda given: getattr(given, "name", given),
)
def test_what_cancels_a_job_ends_it_like_an_interrupt(tmp_path, number, workers):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "test_it.py").write_text(WAITING)
    running = subprocess.Popen(
        [COMMAND, "run", "model", "--suite", "./own", "--functions", "Exp", "-n", workers], cwd=tmp_path, env=OUTSIDE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: [signal.signal(each, signal.SIG_DFL) for each in (signal.SIGINT, number)],
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while not (tmp_path / "waiting").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    running.send_signal(number)
    out, err = running.communicate(timeout=120)
    assert running.returncode == 2, out + err
    assert "the run did not finish" in out
    assert "report: autograd-conformance.ndjson, without a footer" in out
    assert ndjson.flaw(ndjson.read(tmp_path / "autograd-conformance.ndjson"))
