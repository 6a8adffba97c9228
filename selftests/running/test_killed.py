"""Runs that are killed, or whose report finds no room: never a report that passes for a whole one."""

from __future__ import annotations

import random
import re
import resource
import signal
import subprocess
import time
from types import SimpleNamespace

import psutil
import pytest
from click.testing import CliRunner

from autograd_conformance.harness import cli
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.harness.running.controller import Controller
from autograd_conformance.selftests.conftest import COMMAND

NARROW = ("model", "--properties", "FWD-VALUE,NIG-*", "--profile", "quick", "--seed", "7")

# What is killed or full, and at which share of the report's size.
_RANDOM = random.Random(5)
MOMENTS = [(way, round(_RANDOM.random(), 2)) for way in ("command", "controller", "worker", "disk") * 6]
# Within the footer.
MOMENTS += [("disk", 0.999)]

SECONDS = 120


@pytest.fixture(scope="module")
def whole(command):
    """The report of a run that nothing disturbs."""
    run = command(*NARROW, "-n", "0")
    assert run.status == 0
    assert not ndjson.flaw(ndjson.read(run.path))
    return run.path


def compared(lines):
    results = [line for line in lines if line["kind"] == "result"]
    return dict(
        zip(
            (line["id"] for line in sorted(results, key=lambda line: line["id"])),
            ndjson.comparable(results),
            strict=True,
        )
    )


def start(folder, *words, program=COMMAND, workers=1, limit=None):
    """A run in the background; its files grow to at most ``limit`` bytes."""
    confine = (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))) if limit else None
    return subprocess.Popen(
        [program, "run", *NARROW, "-n", str(workers), "--report", "new.ndjson", *words], cwd=folder, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=confine,
    )  # fmt: skip


def disturb(running, path, way, size):
    """Kill a process as soon as the report is so large."""
    deadline = time.monotonic() + SECONDS
    while running.poll() is None and time.monotonic() < deadline:
        if path.exists() and path.stat().st_size >= size:
            break
        time.sleep(0.002)
    found = psutil.Process(running.pid).children(recursive=True) if running.poll() is None else []
    # The killed one's children end by themselves, as nobody talks to them any more.
    # The first is the process of the run, and its children are the workers.
    victim = {"command": running, "controller": next(iter(found), running)}.get(way, next(iter(found[1:]), running))
    victim.send_signal(signal.SIGKILL)
    out = running.communicate(timeout=SECONDS)[0]
    assert not psutil.wait_procs(found, timeout=SECONDS)[1]
    return out


@pytest.mark.parametrize(("way", "share"), MOMENTS)
def test_no_disturbance_leaves_a_report_that_passes_for_whole(whole, fast, tmp_path, way, share):
    path, size = tmp_path / "new.ndjson", int(share * whole.stat().st_size)
    if way == "disk":
        with whole.open("rb") as report:
            limit = max(size, len(report.readline()) + 1)
        running = start(tmp_path, program=fast, workers=0, limit=limit)
        out = running.communicate(timeout=SECONDS)[0]
    else:
        running = start(tmp_path)
        out = disturb(running, path, way, size)
    expected = compared(ndjson.read(whole))
    found = ndjson.read(path) if path.exists() and path.stat().st_size else []
    mine = compared(found)
    other = [id for id, line in mine.items() if line != expected[id]]
    status = CliRunner().invoke(cli.main, ["compare", str(whole), str(path)])
    if found and not ndjson.flaw(found):
        # All was said before, or it was a worker, and its last test is reported.
        assert way != "disk"
        assert mine.keys() == expected.keys()
        assert len(other) <= (way == "worker")
        assert all('"outcome": "error"' in mine[id] for id in other)
        assert status.exit_code == len(other)
        assert running.returncode in (len(other), -signal.SIGKILL)
        return
    assert running.returncode in (2, -signal.SIGKILL), out
    assert len(other) <= 1
    assert status.exit_code == 2, status.output
    assert str(path) in status.output
    if way == "disk":
        assert "the report new.ndjson is incomplete, since it cannot be written: File too large" in out
        assert "without a footer" in out
        assert f"of {len(expected)} test ids hold" in out


def test_a_disk_without_room_for_the_first_line_costs_the_report_and_not_the_verdict(fast, tmp_path):
    (tmp_path / "new.ndjson").write_text('{"kind": "header"')
    running = start(tmp_path, "--functions", "Exp", program=fast, workers=0, limit=500)
    out = running.communicate(timeout=SECONDS)[0]
    assert running.returncode == 2
    assert "the report cannot be written to new.ndjson: File too large; choose another file with --report FILE" in out
    assert re.search(r"verdict.*model .*[0-9]+ of [0-9]+ test ids hold", out, re.DOTALL)
    assert "Traceback" not in out
    assert (tmp_path / "new.ndjson").read_text() == '{"kind": "header"'
    assert [path.name for path in tmp_path.iterdir()] == ["new.ndjson"]


def test_a_report_that_found_no_room_once_is_not_written_on():
    written = []

    def write(line):
        written.append(line)
        if len(written) == 2:
            raise OSError(28, "No space left on device")

    controller = SimpleNamespace(file=SimpleNamespace(path="r", write=write, begun=True), lost={})
    for number in range(5):
        Controller._write(controller, number)
    assert written == [0, 1]
    assert controller.lost == {
        "report": "the report r is incomplete, since it cannot be written: No space left on device"
    }


@pytest.mark.parametrize("again", range(5))
def test_the_same_commit_gives_the_same_verdict(command, whole, again):  # noqa: ARG001
    run = command(*NARROW, "-n", "2")
    assert run.status == 0
    assert compared(ndjson.read(run.path)) == compared(ndjson.read(whole))
    assert ndjson.read(run.path)[-1]["digest"] == ndjson.read(whole)[-1]["digest"]
