"""Scripts of users' Functions show the failure, wherever the Function is defined and whatever is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import util

import pytest

pytest.importorskip("torch")

from autograd_conformance.harness.check.declaration.naming import module_name
from autograd_conformance.selftests.check.checking import lines_of
from autograd_conformance.suites.declared import Checked

OPS = """
import torch
from autograd_conformance import Declaration


class HalfMasked(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return (g * w, g * x) if ctx.needs_input_grad[0] else (None, None)


class Tripled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return 3 * g


half_masked = Declaration(HalfMasked, "float[n]", "float[n]")
tripled = Declaration(Tripled, "float[n]")
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A function that imports OPS from a file with that name."""

    def imported(name):
        path = tmp_path / name
        path.write_text(OPS)
        spec = util.spec_from_file_location(path.stem, path)
        module = util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, path.stem, module)
        spec.loader.exec_module(module)
        return module

    return imported


def ended(script, path):
    path.write_text(script)
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    return subprocess.run([sys.executable, str(path)], env=environment, check=False, capture_output=True)


@pytest.mark.parametrize(
    ("name", "declaration", "property_id"),
    [
        ("ops.py", "half_masked", "VJP-FIT"),
        ("ops.py", "half_masked", "VJP-NONE"),
        ("my-ops.py", "tripled", "VJP-FD"),
        ("class.py", "tripled", "VJP-FD"),
    ],
)
def test_the_script_ends_with_1(module, tmp_path, name, declaration, property_id):
    (line,) = lines_of(Checked(getattr(module(name), declaration), seed=0), property_id)
    assert "script" in line["failure"], line["failure"]["no_script"]
    done = ended(line["failure"]["script"], tmp_path / "script.py")
    assert done.returncode == 1, line["failure"]["script"] + done.stderr.decode()
    assert b"got" in done.stdout


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("mypackage.ops:Scale", "mypackage.ops"),
        ("ops.py:Scale", "ops"),
        ("other/ops.py", "other.ops"),
        ("../ops.py:Scale", "ops"),
        ("{here}/other/ops.py", "other.ops"),
        ("/elsewhere/my ops.py", "my-ops"),
    ],
)
def test_the_scripts_of_each_module_have_a_folder_of_their_own(target, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert module_name(target.format(here=tmp_path)) == name
