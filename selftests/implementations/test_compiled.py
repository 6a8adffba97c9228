"""The documented Functions in C++: which there are, what is said without a compiler, and that a wrong one is found."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from autograd_conformance import implementations
from autograd_conformance.implementations.protocol import Implementation, Unavailable
from autograd_conformance.reference.functions import FUNCTIONS

torch = pytest.importorskip("torch")
cpp = pytest.importorskip("autograd_conformance.implementations.torch.cpp")

# The name of an adapter whose Square sends back a gradient that is half as large as it should be.
WRONG = """
import torch
from autograd_conformance.implementations.torch import cpp


class Wrong(cpp.TorchCppImplementation):
    name = "wrong"

    def function(self, cls):
        return (lambda x: Halved.apply(cls.apply(x))) if cls.__name__ == "Square" else cls.apply


class Halved(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g / 2
"""


@pytest.fixture(scope="module")
def compiled() -> Implementation:
    try:
        found = implementations.load("torch-cpp")
        found.prepare()
    except Unavailable as problem:
        pytest.skip(str(problem))
    return found


def ran(implementation: str, *words: str, folder: Path) -> Any:
    command = [sys.executable, "-m", "autograd_conformance", "run", implementation, "--profile", "quick", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_source_has_the_functions_that_are_listed(compiled: Implementation) -> None:
    names = {name for name in dir(cpp.extension()) if not name.startswith("_")} - {"probes"}
    assert names == set(cpp.WRITTEN)
    assert names | {name for name, _ in compiled.limits} == set(FUNCTIONS)


def test_what_tests_call_around_a_function_is_python(compiled: Implementation) -> None:
    class Doubled(compiled.ag.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            ctx.factor = 2
            return x * ctx.factor

        @staticmethod
        def backward(ctx, g):  # type: ignore[no-untyped-def]
            return g * ctx.factor

    x = torch.ones(2, requires_grad=True)
    square = compiled.function(compiled.build(FUNCTIONS["Square"]))
    assert torch.autograd.grad(square(Doubled.apply(x)).sum(), x)[0].tolist() == [8.0, 8.0]


@pytest.mark.usefixtures("compiled")
def test_a_right_function_holds_and_a_wrong_one_does_not(tmp_path: Path) -> None:
    words = ("--functions", "Square", "--properties", "VJP-REF")
    assert ran("torch-cpp", *words, folder=tmp_path).returncode == 0
    tmp_path.joinpath("wrong.py").write_text(WRONG)
    done = ran("wrong.py", *words, folder=tmp_path)
    assert done.returncode == 1
    assert "VJP-REF[Square-cpu]" in done.stdout


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ("ninja", "there is no ninja: pip install ninja"),
        ("c++", r"there is no c\+\+: install one, or name another one in CXX"),
    ],
)
def test_a_tool_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, missing: str, said: str) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(cpp.shutil, "which", lambda tool: None if tool == missing else tool)
    with pytest.raises(Unavailable, match=said):
        implementations.load("torch-cpp")


def test_the_first_error_of_the_compiler_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(*_: Any, **__: Any) -> None:
        raise RuntimeError("Error building extension\nfunctions.cpp:1:1: error: no such thing\nmore")

    monkeypatch.setattr(cpp.cpp_extension, "load", load)
    with pytest.raises(Unavailable, match=r"cannot build its Functions: functions\.cpp:1:1: error: no such thing"):
        cpp.extension.__wrapped__()
