"""The examples of kernels: `check` accepts each as it is, and finds what is planted in it, in about a minute."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("torch")

from autograd_conformance.selftests.support.warm import OUTSIDE

KERNELS = Path(__file__).resolve().parents[2] / "examples" / "kernels"
# What an example needs beside torch.
NEEDS = {
    "triton_product": find_spec("triton"),
    "numba_softplus": find_spec("numba"),
    "cpp_square": shutil.which("ninja") and shutil.which(os.environ.get("CXX", "c++")),
    "half_swish": True,
}
# Faults: what is written instead of what, and the test that finds it.
FAULTS = [
    ("triton_product", "product(g, x)", "product(g, 1.5 * x)", "VJP-FD"),
    ("triton_product", "triton.cdiv(out.numel(), BLOCK)", "1", "MEM-WRITTEN"),
    ("numba_softplus", "np.exp(-x[i])", "np.exp(x[i])", "VJP-FD"),
    ("cpp_square", "2 * at[i]", "3 * at[i]", "VJP-FD"),
    ("half_swish", "g * gate * s", "1.05 * g * gate * s", "VJP-REF/averages"),
]


def check(example, folder, *words):
    """What `check` says of an example, and its exit status."""
    if not NEEDS[example.stem]:
        pytest.skip(f"skip: {example.stem} needs a package or a compiler that is not installed: tox run -e kernels")
    # A compiler may be slow.
    words = ("check", str(example), "--scripts", str(folder), "--time-limit", "300", *words)
    environment = {**OUTSIDE, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1", "TORCH_EXTENSIONS_DIR": str(folder)}
    command = [sys.executable, "-m", "autograd_conformance", *words]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert not done.stderr
    return done.stdout, done.returncode


def test_every_example_is_checked():
    assert {path.stem for path in KERNELS.glob("*.py")} == NEEDS.keys() == {name for name, *_ in FAULTS}


@pytest.mark.parametrize("name", NEEDS)
def test_a_right_kernel_is_accepted(name, tmp_path):
    said, status = check(KERNELS / f"{name}.py", tmp_path)
    assert (status, "0 do not" in said) == (0, True), said


@pytest.mark.parametrize(("name", "right", "wrong", "test"), FAULTS)
def test_a_planted_fault_is_found(name, right, wrong, test, tmp_path):
    text = (KERNELS / f"{name}.py").read_text(encoding="utf-8")
    assert right in text
    (tmp_path / f"{name}.py").write_text(text.replace(right, wrong), encoding="utf-8")
    said, status = check(tmp_path / f"{name}.py", tmp_path, "--properties", test)
    assert (status, f"WRONG: {test}\n" in said) == (1, True), said
