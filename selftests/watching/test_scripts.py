"""A fault of a call that a script can make has one, with a call of the same kind."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("torch")

from autograd_conformance.selftests.conftest import OUTSIDE
from autograd_conformance.selftests.watching.watched_program import AMPLE, watched

if not hasattr(os, "fork") or sys.platform == "darwin":
    pytest.skip("on this platform no process can be forked", allow_module_level=True)

MODULE = """
import torch

class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k, *others):
        ctx.k, ctx.others = k, others
        return x * k

    @staticmethod
    def backward(ctx, g):
        return 1.5 * g * ctx.k, None, *(None for _ in ctx.others)

class WithObject(Scale):
    pass
"""
PROGRAM = """
import torch
from scaling import Scale, WithObject

class Own(Scale):
    pass

x = torch.randn(4, 3, requires_grad=True)
for function, others in ((Scale, ()), (WithObject, (object(),)), (Own, ())):
    function.apply(x, 2.5, *others).sum().backward()
"""
SCRIPT = "autograd-conformance-scripts/scaling/Scale-VJP-FD.py"


def test_a_fault_has_a_script_that_shows_it(tmp_path):
    tmp_path.joinpath("scaling.py").write_text(MODULE)
    done, functions, _ = watched(tmp_path, PROGRAM, *AMPLE, torch=True)
    found = {name: each["findings"][0].get("script", "") for name, each in functions.items()}
    assert found == {"Scale": SCRIPT, "WithObject": "", "Own": ""}, done.stderr
    assert f"script: {SCRIPT}" in done.stderr
    assert "no script: the call has objects or values of the program" in done.stderr
    shown = subprocess.run([sys.executable, SCRIPT], cwd=tmp_path, env=OUTSIDE, capture_output=True, text=True)
    assert shown.returncode == 1
    assert "from scaling import Scale" in (tmp_path / SCRIPT).read_text()
