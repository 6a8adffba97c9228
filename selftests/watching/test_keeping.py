"""``--keep-inputs``: a call that shows a fault is kept with the program's own data, and can be watched again."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from autograd_conformance.selftests.support.warm import started
from autograd_conformance.selftests.watching.watched_program import AMPLE, rows_of, watched

if not hasattr(os, "fork") or sys.platform == "darwin":
    pytest.skip("on this platform no process can be forked", allow_module_level=True)

MODULE = """
import torch

class Scaling:
    def __init__(self, factor):
        self.factor = factor

class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scaling):
        ctx.save_for_backward(x)
        ctx.scaling = scaling
        return x * x * scaling.factor

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0] * ctx.scaling.factor, None

class Right(Scaled):
    @staticmethod
    def backward(ctx, g):
        return 2 * g * ctx.saved_tensors[0] * ctx.scaling.factor, None

class WithFunction(Scaled):
    pass
"""

PROGRAM = """
import torch, operations

class Main(operations.Scaled):
    pass

x = torch.randn(4, requires_grad=True)
for function in (operations.Scaled, operations.Right, Main):
    function.apply(x, operations.Scaling(3.0)).sum().backward()
scaling = operations.Scaling(3.0)
scaling.of = lambda x: x
operations.WithFunction.apply(x, scaling).sum().backward()
"""
HERE = Path("autograd-conformance-scripts", "operations", "Scaled-inputs.py")


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kept")
    folder.joinpath("operations.py").write_text(MODULE)
    return folder, watched(folder, PROGRAM, *AMPLE, "--keep-inputs", torch=True)[0]


def test_a_call_with_a_fault_is_kept_and_its_script_shows_the_fault_again(kept, tmp_path):
    folder, done = kept
    assert f"kept with the program's own data: {HERE} makes such a call again" in " ".join(done.stderr.split())
    again = started("watch", *AMPLE, "--", folder / HERE, folder=tmp_path, torch=True)
    assert again.returncode == 1, again.stderr
    assert "operations:Scaled  DIFFERS" in again.stderr
    assert "'<Scaling>'" in again.stderr


def test_nothing_is_kept_of_a_right_function_and_where_nothing_can_be_the_reason_is_said(kept):
    folder, done = kept
    assert [path.name for path in sorted(folder.joinpath(HERE).parent.iterdir())] == [
        "Scaled-inputs.pickle", HERE.name,
    ]  # fmt: skip
    text = " ".join(done.stderr.split())
    assert "no call is kept: a script can import no operator, and no class of a function or of the main module" in text
    assert "no call is kept: its arguments cannot be pickled: " in text
    assert rows_of(done.stderr)["Main"].startswith("DIFFERS")


def test_nothing_is_kept_unless_it_is_asked_for(tmp_path):
    tmp_path.joinpath("operations.py").write_text(MODULE)
    done, _, _ = watched(tmp_path, PROGRAM, torch=True)
    assert " kept" not in done.stderr
    assert not list(tmp_path.rglob("*.pickle"))
