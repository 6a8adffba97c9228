"""The simulated accelerator is a device like others, and each of its faults changes what its sentence says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from autograd_conformance.harness.catalogue import PACKAGE
from autograd_conformance.selftests.conftest import outside_with
from autograd_conformance.selftests.implementations.accelerator_faults import FOUND_BY

FOLDER = PACKAGE / "examples" / "accelerator"

# The experiment of `accelerated.py` that is about each fault.
ABOUT = {
    "no_synchronisation": "a_copy_to_the_host_waits",
    "wrong_stream": "backward_is_on_the_stream_of_forward",
    "guard_left": "backward_leaves_the_current_device",
    "stale_memory": "freed_memory_is_kept_while_work_is_queued",
    "wrong_stride": "transposed result",
    "gradient_on_cpu": "float32_gradients_stay_on_the_device",
    "accumulation_elsewhere": "gradients_accumulate",
    "coarse_exp": "logarithm",
    "coarse_product": "product of float32 matrices",
    "non_blocking_lies": "a_copy_to_the_device_has_read_the_host",
    "dropped_offset": "a_view_is_copied_from_its_offset",
    "conj_forgotten": "a_conjugate_is_copied",
    "lost_version": "versions_count_what_is_written",
    "wrong_event": "an_event_orders_streams",
    "unordered_copy": "a_copy_between_devices_waits_for_both",
    "empty_launch": "no elements",
    "wrong_dtype": "sum of integers",
    "index_mixed": "tensors_are_on_the_device_that_was_asked_for",
    "silent_fallback": "what_runs_on_the_host_is_counted",
}

# What these change, nearly every experiment sees.
_SEEN_EVERYWHERE = {"no_synchronisation"}


def _python(*words: object, folder: Path, **variables: object) -> subprocess.CompletedProcess[str]:
    environment = {**outside_with(FOLDER), "SIMULATED_FAULT": "", **{n: str(value) for n, value in variables.items()}}
    given = [sys.executable, *map(str, words)]
    return subprocess.run(given, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def failures(tmp_path_factory):
    """How each experiment failed with each fault; with "" on the right device."""
    made = _python(
        PACKAGE / "selftests" / "implementations" / "accelerated.py", folder=tmp_path_factory.mktemp("experiments")
    )
    assert made.returncode == 0, made.stderr
    return json.loads(made.stdout)


def test_the_right_device_does_what_it_should(failures):
    assert {name: how for name, how in failures[""].items() if how} == {}
    assert len(failures[""]) > 40


def test_each_fault_is_the_subject_of_an_experiment(failures):
    assert {"", *ABOUT} == set(failures)


@pytest.mark.parametrize("fault", ABOUT)
def test_a_fault_changes_what_its_sentence_says(failures, fault):
    assert failures[fault][ABOUT[fault]]


@pytest.mark.parametrize("fault", sorted(set(ABOUT) - _SEEN_EVERYWHERE))
def test_a_fault_changes_little_else(failures, fault):
    assert sum(map(bool, failures[fault].values())) <= 4


# The suite on this device.


@pytest.fixture(scope="module")
def messages(tmp_path_factory):
    """What the suite's tests say of the right device, and of each fault."""
    made = _python(
        PACKAGE / "selftests" / "implementations" / "accelerated_suite.py", folder=tmp_path_factory.mktemp("suite")
    )
    assert made.returncode == 0, made.stderr
    return {(test, fault): message for test, fault, message in json.loads(made.stdout)}


def test_the_suite_accepts_the_right_device(messages):
    said = {test: message for (test, fault), message in messages.items() if not fault}
    assert {test: message for test, message in said.items() if message} == {}
    assert {found.test for found in FOUND_BY.values()} <= set(said)


def test_each_fault_is_found_by_a_test():
    # A fallback is slow, and not wrong.
    assert set(FOUND_BY) == set(ABOUT) - {"silent_fallback"}


@pytest.mark.parametrize("fault", FOUND_BY)
def test_the_suite_finds_the_fault(messages, fault):
    found = FOUND_BY[fault]
    first, _, rest = messages[found.test, fault].partition("\n")
    assert f"{found.test.partition('/')[0]} must hold" in first
    # The sentence itself says what the clause is about, whatever is wrong.
    assert found.says in rest


def _run(folder, *words, package="simulated_accelerator", **variables):
    """A run on this device: its exit status and output, and its report."""
    words = ("run", "torch", "--import", package, "--device", "simulated", "-n", "0", *words)
    made = _python("-m", "autograd_conformance", *words, folder=folder, **variables)
    lines = (folder / "autograd-conformance.ndjson").read_text().splitlines()
    return made.returncode, made.stdout, list(map(json.loads, lines))


def test_a_coarse_operation_is_one_finding(tmp_path):
    """What a device computes less accurately fails one clause; all else is held against what it reaches."""
    chosen = ("--functions", "Exp", "--properties", "FWD-VALUE,VJP-REF,VJP-FD,VJP-CHAIN,DBL-CORRECT")
    status, said, (header, *results) = _run(tmp_path, *chosen, SIMULATED_FAULT="coarse_exp")
    assert status == 0
    assert "simulated: float64 is only as accurate as float32: " in said
    assert header["facts"]["simulated"]["accurate_as"] == {"float64": "float32", "complex128": "float32"}
    assert {line["outcome"] for line in results if line["kind"] == "result"} == {"pass"}
    status, said, _ = _run(tmp_path, "--properties", "DEV-06", SIMULATED_FAULT="coarse_exp")
    assert status == 1
    assert "accuracy of float64" in said
    assert "--import simulated_accelerator --device simulated" in said


def test_check_says_what_the_device_takes(tmp_path):
    """What the device cannot do is said after the verdict on the Function."""
    words = ("--arg", "float[n]", "--import", "simulated_accelerator", "--device", "simulated")
    words += ("--properties", "VJP-REF,VJP-FD", "--profile", "quick")
    (tmp_path / "mine.py").write_text(SQUARE)
    made = _python(
        "-m", "autograd_conformance", "check", "mine.py:Square", *words, folder=tmp_path, SIMULATED_FAULT="coarse_exp"
    )
    assert made.returncode == 0, made.stdout
    assert "simulated: float64 is only as accurate as float32: " in made.stdout


SQUARE = """
import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x
"""

SINGLE = """
import simulated_accelerator
import torch

make = torch.tensor


def tensor(values, *, dtype=None, device=None):
    if dtype in (torch.float64, torch.complex128) and device == "simulated":
        raise TypeError("there is no double precision")
    return make(values, dtype=dtype, device=device)


torch.tensor = tensor
"""


def test_a_device_without_double_precision_is_accused_of_nothing(tmp_path):
    """What is compared in double precision alone is skipped with the reason, and all else is checked."""
    (tmp_path / "single.py").write_text(SINGLE)
    chosen = ("--functions", "MulConstant", "--properties", "VJP-REF,DBL-CORRECT", "--profile", "quick", "--seed", "0")
    status, said, (_, *results) = _run(
        tmp_path, *chosen, package="single", PYTHONPATH=os.pathsep.join((str(FOLDER), str(tmp_path)))
    )
    assert status == 0
    assert "simulated: without float64: TypeError: there is no double precision" in said
    outcomes = {line["id"]: line["outcome"] for line in results if line["kind"] == "result"}
    assert outcomes["VJP-REF[MulConstant-simulated]"] == "pass"
    assert outcomes["DBL-CORRECT[MulConstant-simulated]"] == "skip"


def test_a_fault_is_chosen_in_the_environment(tmp_path):
    script = "import torch, simulated_accelerator; print(torch.ones(2, device='simulated:1').device)"
    assert _python("-c", script, folder=tmp_path, SIMULATED_FAULT="index_mixed").stdout == "simulated:0\n"
    unknown = _python("-c", script, folder=tmp_path, SIMULATED_FAULT="index_mixd")
    assert unknown.returncode == 1
    assert "SIMULATED_FAULT=index_mixd: there is no such fault; choose one of no_sync" in unknown.stderr


def test_a_missing_compiler_is_named(tmp_path):
    made = _python(
        "-c", "import simulated_accelerator", folder=tmp_path, TORCH_EXTENSIONS_DIR=tmp_path, CXX="no-such-c++"
    )
    assert "it needs a C++20 compiler: name one in the variable CXX" in made.stderr
    assert "no-such-c++" in made.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_change_of_its_sources_is_compiled(tmp_path):
    # The name of what is loaded has a digest of all files.
    listed = {path.name for path in FOLDER.iterdir() if path.suffix in {".cpp", ".h"}}
    shown = _python("-c", "import simulated_accelerator as it; print(*(s.name for s in it._SOURCES))", folder=tmp_path)
    assert set(shown.stdout.split()) == listed
