"""Where processes cannot fork, the commands do the same: what is a fork elsewhere is another process, or none."""

from __future__ import annotations

import re
from importlib import util
from pathlib import Path

import pytest

from autograd_conformance.selftests.conftest import outside_with
from autograd_conformance.selftests.support import warm

FORKLESS = Path(warm.__file__).parent / "forkless"

NEEDS_TORCH = pytest.mark.skipif(util.find_spec("torch") is None, reason="torch is not installed")

ONE = ("--profile", "quick", "--functions", "Exp", "--properties", "VJP-REF")

# A right Function of the model, and one whose gradient is half as large.
OPS = """
from autograd_conformance import Declaration
from autograd_conformance.reference.model import Function


class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g * ctx.saved_tensors[0]


class Half(Square):
    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


square, half = (Declaration(each, "float[n]", implementation="model") for each in (Square, Half))
"""

# The same of torch.
TORCH_OPS = re.sub(r"from autograd_conformance.* import.*\n|square, half.*", "", OPS).replace(
    "class Square(", "import torch\nfrom torch.autograd import Function\n\n\nclass Square("
)

PROGRAM = """
import torch

from ops import Square

for length in (2, 3, 4):
    Square.apply(torch.rand(length, requires_grad=True)).sum().backward()
"""


@pytest.fixture
def forkless(tmp_path):
    """Runs the command in a folder with these files, by an interpreter that has no forks."""

    def run(*words, **files):
        for name, text in files.items():
            (tmp_path / f"{name}.py").write_text(text)
        return warm.started(*words, folder=tmp_path, environment=outside_with(FORKLESS), fresh=True)

    return run


@pytest.mark.parametrize("workers", ["0", "2"])
def test_the_model_runs(forkless, workers):
    done = forkless(
        "run", "model", "--profile", "quick", "--functions", "Exp", "--properties", "VJP-REF", "-n", workers
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"(\d+) of \1 test ids hold", done.stdout)


def test_functions_of_the_model_are_checked(forkless):
    done = forkless("check", "ops.py", "--implementation", "model", "--properties", "VJP-REF,VJP-FD", ops=OPS)
    assert done.returncode == 1, done.stderr
    assert "2 Functions: 1 without a fault, 1 wrong (Half)" in done.stdout


@NEEDS_TORCH
def test_scripts_are_run(forkless):
    words = ("--arg", "float[n]", "--properties", "VJP-FD")
    done = forkless("check", "ops:Half", *words, ops=TORCH_OPS)
    assert done.returncode == 1, done.stderr
    assert "script: autograd-conformance-scripts/ops/Half-VJP-FD.py\n" in done.stdout
    # Alone it is right, so that the script shows nothing.
    counted = "seen.append(1)\n        return g * (1 + (len(seen) < 9)) *"
    late = f"{TORCH_OPS}\nseen = []\n".replace("return g *", counted)
    done = forkless("check", "ops:Half", *words, ops=late)
    assert done.returncode == 1, done.stderr
    assert "call in a process of its own shows no fault" in done.stdout


@NEEDS_TORCH
def test_torch_runs(forkless):
    done = forkless("run", "torch", *ONE, "-n", "2")
    assert done.returncode == 0, done.stderr


@NEEDS_TORCH
def test_calls_are_recorded_and_packages_scanned(forkless):
    done = forkless("record", "-o", "found.py", "program.py", ops=TORCH_OPS, program=PROGRAM)
    assert done.returncode == 0, done.stderr
    assert "1 of 1 Functions are declared" in done.stdout
    done = forkless("check", "ops", "--properties", "VJP-FD")
    assert done.returncode == 1, done.stderr
    assert "2 Functions: 1 without a fault, 1 with another gradient than the derivative (Half)" in done.stdout
