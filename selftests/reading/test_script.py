"""Reproduction scripts: of documented Functions and of users', in the framework's own words."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from dataclasses import replace
from inspect import unwrap
from types import SimpleNamespace

import hypothesis
import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from autograd_conformance import implementations
from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.scripts import script
from autograd_conformance.harness.testing.subject import Subject
from autograd_conformance.implementations.scripting import Named
from autograd_conformance.implementations.torch import TorchImplementation
from autograd_conformance.implementations.torch import script as torch_script
from autograd_conformance.implementations.torch.words import Words
from autograd_conformance.reference.functions import FUNCTIONS
from autograd_conformance.reference.namespace import ARRAY_NAMES, EXTRA_NAMES
from autograd_conformance.reference.rounding import SAFETY
from autograd_conformance.selftests.check.checking import first_fault
from autograd_conformance.selftests.support.scripts import statuses
from autograd_conformance.strategies.calls import Call, Cotangent, Tensor, calls
from autograd_conformance.strategies.layouts import LAYOUTS, place
from autograd_conformance.strategies.scope import ALL_USED

TORCH = implementations.load("torch")
EXP = Call("Exp", (Tensor((2,), "complex128", requires_grad=True, layout="strided", fill="normal"),), (Cotangent(),))


def some_call(function):
    """A call of which every differentiable tensor requires grad, in layouts of its own."""
    strategy = calls(function, replace(ALL_USED, mask="full"), dtypes=function.dtypes[:1])
    settings = hypothesis.settings(database=None, phases=[hypothesis.Phase.generate], derandomize=True)
    return hypothesis.find(strategy, lambda call: all(0 not in t.shape for t in call.tensors), settings=settings)


def finding_of(example, off=0.0):
    """The finding that the last element of the first gradient is what the reference says, or off by so much."""
    number = example.track.index(True)
    expected = example.expected.gradients()[number]
    index = [side - 1 for side in expected.shape]
    value, bound = expected.value[tuple(index)], float(SAFETY * expected.error[tuple(index)])
    what = example.names[number]
    component = {"aspect": "value", "what": what, "number": number, "index": index, "bound": bound + 1e-12}
    found = {"what": what, "got": "0.0", "expected": str(value + off), "call": repr(example.call)}
    return {**found, "component": component}


def test_every_documented_function_runs_in_the_frameworks_own_words(tmp_path):
    found, expected = {}, {}
    for name, function in FUNCTIONS.items():
        example = Subject(TORCH, function, "cpu").made(some_call(function))
        for status, off in enumerate((0.0, 1.0)):
            text, problem = script.script_for(TORCH, function, "VJP-REF", finding_of(example, off))
            assert text, f"{name}: {problem}"
            assert not re.search(r"\b(xp|ag)\b", text)
            assert "SimpleNamespace" not in text
            found[f"{name}-{status}"], expected[f"{name}-{status}"] = text, status
    assert statuses(tmp_path, found) == expected


def test_a_script_is_short_and_has_what_it_needs_alone():
    example = Subject(TORCH, FUNCTIONS["Exp"], "cpu").made(EXP)
    text, _ = script.script_for(TORCH, FUNCTIONS["Exp"], "VJP-REF", finding_of(example))
    lines = text.splitlines()
    assert len(lines) <= 32
    assert lines[0].startswith("# VJP-REF: ")
    assert f"Exp on torch {TORCH.environment().version}" in lines[1]
    assert [line for line in lines if line.startswith(("import", "from"))] == ["import sys", "import torch"]
    assert "class Exp(torch.autograd.Function):" in lines
    assert "def run" not in text
    assert lines[-1].startswith("sys.exit(")


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "complex64", "int64"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_tensor_is_exact_in_its_layout(layout, dtype):
    for shape in ((), (3,), (2, 3), (1, 2, 2, 3), (0, 2), (70,)):
        values = np.arange(np.prod(shape)).reshape(shape) - 1.0
        values = values.astype(np.complex128) * (1 - 0.5j) if "complex" in dtype else values
        values = np.broadcast_to(values[:1], shape) if layout == "expanded" and shape else values
        values = values.astype(np.int64) if dtype == "int64" else values
        made = place(TORCH.xp, lambda a, d: TORCH.array(a, d, "cpu"), values, dtype, layout)
        track = dtype != "int64"
        text = torch_script.tensor(Named("x", values, dtype, layout, track), "cpu", place)
        again = eval(text, {"torch": torch})
        assert again.requires_grad == track
        assert torch.equal(again.detach(), made)
        assert again.dtype == made.dtype
        if not values.size:
            continue
        for seen in (torch.Tensor.stride, torch.Tensor.storage_offset, torch.is_conj, torch.Tensor.is_neg):
            assert seen(again) == seen(made), text


@pytest.mark.parametrize(
    "values",
    [
        np.array(1.5),
        np.array([0.0, -0.0, np.nan, np.inf, -np.inf]),
        np.array([complex(-0.0, np.nan), complex(np.inf, -0.0)]),
        np.full((2, 3), -0.0),
        np.ones((2, 3)),
        np.zeros((0, 3)),
        np.arange(90).reshape(9, 10),
        np.linspace(-1, 1, 200).reshape(10, 20),
        np.array([True, False]),
    ],
    ids=str,
)
def test_literals_are_exact(values):
    text = torch_script.literal(values, values.dtype.name)
    again = eval(text, {"torch": torch}).numpy()
    assert again.shape == values.shape
    assert again.dtype == values.dtype
    assert np.array_equal(again, values, equal_nan=values.dtype.kind in "fc")
    assert values.dtype == bool or np.array_equal(np.signbit(again.real), np.signbit(values.real))


def test_the_names_of_the_scripts_are_those_of_the_adapter():
    xp = TORCH.xp
    differing = {n for n in (*ARRAY_NAMES, *EXTRA_NAMES) if unwrap(getattr(xp, n)) is not getattr(torch, n, None)}
    assert differing == set(torch_script.NAMES) & {*ARRAY_NAMES, *EXTRA_NAMES}
    for name, text in torch_script.NAMES.items():
        found, mine = eval(text, {"torch": torch, "np": np}), unwrap(getattr(xp, name))
        count = mine.__code__.co_argcount if hasattr(mine, "__code__") else 1
        assert found is mine or found.__code__.co_argcount == count


class OwnEngine(TorchImplementation):
    """An adapter that takes gradients in its own way."""

    def vjp(self, f, primals, *, track=None):
        return super().vjp(f, primals, track=track)


@pytest.mark.parametrize(
    ("implementation", "change", "reason"),
    [
        (implementations.load("model"), {}, "scripts are not written for the implementation model"),
        (OwnEngine(), {}, "the adapter OwnEngine has its own vjp()"),
        (TORCH, {"flaky": True}, "fails only sometimes"),
        (TORCH, {"component": {}}, "does not say as data what is wrong"),
        (TORCH, {"what": None}, "ended with an error"),
    ],
    ids=("no text", "own engine", "flaky", "no data", "error"),
)
def test_a_failure_without_a_script_says_why(implementation, change, reason):
    example = Subject(TORCH, FUNCTIONS["Exp"], "cpu").made(EXP)
    failure = {k: v for k, v in {**finding_of(example), **change}.items() if v is not None}
    text, problem = script.script_for(implementation, FUNCTIONS["Exp"], "VJP-REF", failure)
    assert text is None
    assert reason in problem


def test_a_body_without_source_has_no_script():
    nameless = replace(FUNCTIONS["Exp"], body=lambda xp, ag: FUNCTIONS["Exp"].body(xp, ag))
    failure = finding_of(Subject(TORCH, FUNCTIONS["Exp"], "cpu").made(EXP))
    text, problem = script.script_for(TORCH, nameless, "VJP-REF", failure)
    assert text is None
    assert "not a plain function" in problem


# Users' Functions of which a script cannot import the class and write the arguments: it imports the declaration.
DECLARED = """
import torch
from autograd_conformance.harness.check import Declaration, Factory


class Powers(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, power, module):
        ctx.save_for_backward(x)
        ctx.power, ctx.module = power, module
        return x**power + module(x).detach() * 0

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        factor = ctx.power{fault}
        return g * factor * x ** (ctx.power - 1), None, None


def twice(seed):
    scale = 1 + torch.rand(())
    return lambda x: x * scale


def bound(base):
    class Local(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.exp() * base

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * x.exp() * (base{fault})

    return Local.apply


FLOAT = Declaration(Powers, "float[n] positive", 2.5, abs, name="Float", dtypes="float64")
MADE = Declaration(Powers, "float[n] positive", 2.5, Factory(twice), name="Made", dtypes="float64")
LAMBDA = Declaration(lambda x: Powers.apply(x, 3, abs), "float[n]", name="Lambda", dtypes="float64")
LOCAL = Declaration(bound(2.0), "float[n]", name="Local", dtypes="float64")
COMPARED = Declaration(
    bound(2.0), "float[n]", name="Compared", reference=lambda x: x.exp() * 2, dtypes=("float64", "float32")
)
"""


# Runs scripts twice: with these words as a file that they import, and with others.
RUNNER = """
import runpy, sys
folder, *texts = sys.argv[1:4]
for text in texts:
    open(folder + "/declarations.py", "w").write(text)
    sys.modules.pop("declarations", None)
    for path in sys.argv[4:]:
        try:
            runpy.run_path(path, run_name="__main__")
        except SystemExit as end:
            print(int(end.code or 0), file=sys.stderr)
"""


def test_scripts_of_users_import_what_was_declared(tmp_path, monkeypatch):
    texts = [DECLARED.replace("{fault}", fault) for fault in (" * 1.01", "")]
    (tmp_path / "declarations.py").write_text(texts[0])
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("declarations")
    monkeypatch.setitem(sys.modules, "declarations", module)
    declared = {name: each for name, each in vars(module).items() if isinstance(each, Declaration)}
    assert declared.keys() == {"FLOAT", "MADE", "LAMBDA", "LOCAL", "COMPARED"}
    tests = [*((name, "VJP-FD") for name in declared), ("COMPARED", "VJP-REF")]
    found = [tmp_path / f"{name}-{test}" for name, test in tests]
    for path, (name, test) in zip(found, tests, strict=True):
        line, _ = first_fault(declared[name], test)
        path.write_text(line["failure"]["script"])
    words = [sys.executable, "-B", "-c", RUNNER, str(tmp_path), *texts, *map(str, found)]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ran.stderr.split() == ["1"] * len(found) + ["0"] * len(found), ran.stdout + ran.stderr


@pytest.mark.parametrize(
    ("argument", "inplace", "expected", "end"),
    [
        ("{0}", (), "f(x * 2 + 1)", ""),
        ("{0}.to_sparse()", (), "f((x * 2 + 1).to_sparse())", ".to_sparse()"),
        ("{0}", (0,), "f((x * 2 + 1).clone())", ".clone()"),
    ],
)
def test_a_method_follows_the_whole_expression(argument, inplace, expected, end):
    shown = SimpleNamespace(
        apply="f", arguments=(argument,), inplace=inplace, slots=(0,), tensors=[SimpleNamespace(name="x")], tracked=[0],
        cotangents=(), used=(), unpacking="single",
    )  # fmt: skip
    assert Words(shown).call(["x * 2 + 1"]) == expected
    assert Words(shown).call() == f"f(x{end})"
