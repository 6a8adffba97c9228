"""A slow Function is distinguished from one that hangs."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch

from autograd_conformance.harness.reports import ndjson
from autograd_conformance.implementations.torch import settings as torch_settings
from autograd_conformance.selftests.check import user_ops
from autograd_conformance.selftests.conftest import outside_with
from autograd_conformance.selftests.support.warm import started

TEXT = """
import threading
import time
import torch
import user_ops
from autograd_conformance.harness.check import Declaration

class {name}(user_ops.{base}):
    @staticmethod
    def forward(ctx, *args):
        {first}
        return user_ops.{base}.forward(ctx, *args)

declared = Declaration({name}, {arguments}, examples=1)
"""
SLOW = "time.sleep(0.06)"
STUCK = "while threading.current_thread() is not threading.main_thread(): time.sleep(0.1)"
# One shape, so that little is to be found out by slow calls.
PAIR = "'float[1,2]', 'float[2]', '1'"


def check(folder, *words, **parts):
    (folder / "mine.py").write_text(TEXT.format(**parts))
    environment = outside_with(Path(user_ops.__file__).parent)
    words = ("check", "mine.py", *words, "--report", "r.ndjson")
    done = started(*words, folder=folder, environment=environment, torch=True)
    lines = ndjson.read(folder / "r.ndjson")
    assert ndjson.flaw(lines) is None
    return done, {ndjson.test_of(line): line for line in lines if line["kind"] == "result"}


def test_a_slow_function_is_reported_to_be_slow_and_every_check_is_made(tmp_path):
    words = ("--properties", "VJP-FD,FWD-DTYPE", "--time-limit", "3")
    done, results = check(tmp_path, *words, name="Slow", base="Scaled", first=SLOW, arguments=PAIR)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "GRADIENT NOT VERIFIED: VJP-FD: " in done.stdout
    assert "held before time was up\n    for more examples raise --time-limit" in done.stdout
    assert "found: " not in done.stdout
    assert "HANGS" not in done.stdout
    assert {line["outcome"] for line in results.values()} <= {"pass", "vacuous"}
    assert all("slow" in line for line in results.values())
    assert results["VJP-FD"]["vacuous"] == "slow"


def test_what_held_in_enough_examples_holds(tmp_path):
    words = ("--properties", "FWD-DTYPE", "--time-limit", "3")
    done, results = check(tmp_path, *words, name="Slow", base="Scaled", first="time.sleep(0.045)", arguments=PAIR)
    assert done.returncode == 0, done.stdout + done.stderr
    held = results["FWD-DTYPE"]["slow"]
    assert 5 <= held < 25
    assert f"FWD-DTYPE: {held} examples held before --time-limit; it was too short for all" in done.stdout
    assert "1 check holds, 0 do not" in done.stdout


def test_a_fault_of_a_slow_function_is_found(tmp_path):
    words = ("--properties", "VJP-FD", "--time-limit", "3")
    done, results = check(tmp_path, *words, name="Slow", base="Wrong", first="time.sleep(0.003)", arguments=PAIR)
    assert done.returncode == 1, done.stdout + done.stderr
    assert results["VJP-FD"]["outcome"] == "fail"
    assert "WRONG: VJP-FD" in done.stdout


def test_a_function_that_hangs_does(tmp_path):
    words = ("--properties", "ENV-THREADS,FWD-DTYPE", "--time-limit", "4", "--profile", "quick", "--seed", "2")
    done, results = check(tmp_path, *words, name="Stuck", base="Scaled", first=STUCK, arguments=PAIR)
    assert done.returncode == 2, done.stdout + done.stderr
    assert {line["failure"]["type"] for line in results.values() if line["outcome"] == "error"} == {"Hang"}
    assert "HANGS: ENV-THREADS\n" in done.stdout
    assert "1 check holds, 1 does not" in done.stdout
    assert "if a call takes so long, raise --time-limit" in done.stdout


@pytest.mark.parametrize("present", [False, True])
def test_seeding_formats_no_stack_for_absent_devices(monkeypatch, present):
    calls, seeded = [], torch.manual_seed
    monkeypatch.setattr(torch_settings.devices, "accelerators", lambda: ("cuda",) * present)
    monkeypatch.setattr(torch, "manual_seed", lambda seed: calls.append(seed) or seeded(seed))
    seeded(5)
    expected = torch.rand(4)
    torch_settings.reseed(5)
    assert torch.equal(torch.rand(4), expected)
    assert bool(calls) == present
