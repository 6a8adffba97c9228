"""Custom operators and Functions in programs of torch.export: the program, what is made of it, and AOTInductor."""

from __future__ import annotations

import io
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.torch._compiled import fresh, skip_without_inductor

SPACE = "autograd_conformance_export"
# The gradients of a formula are too large by this factor: so a result shows whether the formula was used.
FACTOR = 4


def _weighted(x: torch.Tensor, y: torch.Tensor, k: float) -> tuple[torch.Tensor, torch.Tensor]:
    return k * x * y, x * x


def _save(ctx, inputs, output):
    *tensors, ctx.k = inputs
    ctx.save_for_backward(*tensors)


def _formula(ctx, g, h):
    x, y = ctx.saved_tensors
    return FACTOR * (ctx.k * g * y + 2 * h * x), FACTOR * ctx.k * g * x, None


def _operator(subject):
    # Its schema is given, since annotations are text here.
    schema = "(Tensor x, Tensor y, float k) -> (Tensor, Tensor)"
    op = torch.library.custom_op(f"{SPACE}::weighted", _weighted, mutates_args=(), schema=schema)
    op.register_fake(lambda x, y, k: (torch.empty_like(x), torch.empty_like(x)))
    op.register_autograd(_formula, setup_context=_save)
    return op


def _function(subject):
    return subject.define(forward=_weighted, setup_context=_save, backward=_formula).apply


@dataclass(frozen=True)
class _Home:
    """What a module calls, and the factor of its gradients in an exported program, which takes a Function apart."""

    make: Any
    factor: int


HOMES = {"a custom operator": _Home(_operator, FACTOR), "a custom Function": _Home(_function, 1)}


class _Model(torch.nn.Module):
    """A custom operator or Function between ordinary operations."""

    def __init__(self, call, weight, k):
        super().__init__()
        self.call, self.k = call, k
        self.weight = torch.nn.Parameter(weight)

    def forward(self, x):
        first, second = self.call(x + self.weight, x, self.k)
        return first - x, second


@dataclass(frozen=True)
class _Case:
    """A model, how it is exported, and the input that its program then gets."""

    subject: Any
    model: _Model
    example: Any
    options: dict[str, Any]
    weight: np.ndarray
    x: np.ndarray

    def exported(self):
        """The exported program of the model."""
        export = partial(torch.export.export, self.model, (self.example,), **self.options)
        return self.subject.assert_accepted(export, "an export of the model")

    def assert_outputs(self, call):
        """The outputs of a program, and the leaf that it got, once the outputs are right."""
        subject, dtype = self.subject, str(self.example.dtype).removeprefix("torch.")
        x = subject.tensor(self.x, dtype).requires_grad_()
        outputs = subject.assert_accepted(lambda: call(x), "a call of the program with another input")
        shifted = self.x + self.weight
        expected = [self.model.k * shifted * self.x - self.x, shifted**2]
        subject.assert_all_same("outputs of the program", got=outputs, expected=expected)
        return x, outputs

    def gradients(self, factor):
        """The gradients of x and of the weight, for cotangents of ones, if those of the formula have this factor."""
        shifted, k = self.x + self.weight, self.model.k
        through = factor * (k * self.x + 2 * shifted)
        return [through + factor * k * shifted - 1, through.sum(axis=0)]


def _drawn(subject, data, home, *, strict=(False, True)):
    """A model that calls this, and how it is exported."""
    k = subject.draw(data, (-2.0, 0.5, 3.0), "number")
    strict = subject.draw(data, strict, "strict")
    dynamic = subject.draw(data, (True, False), "the number of rows is a symbol")
    rows, columns = subject.draw(data, st.tuples(st.integers(2, 4), st.sampled_from((2, 1, 3))), "shape")
    later = subject.draw(data, (5, 0, 1, 2, 3), "rows of the other input") if dynamic else rows
    tracked = subject.draw(data, (True, False), "the example requires grad")
    dtype = subject.draw(data, subject.dtypes, "dtype")
    # Numbers that are exact in half precision, sums of gradients included.
    weight, x = np.arange(columns) - 1.0, np.arange(later * columns).reshape(later, columns) % 5 - 2.0
    model = _Model(home.make(subject), subject.tensor(weight, dtype), k)
    example = subject.tensor(np.ones((rows, columns)), dtype).requires_grad_(tracked)
    sizes = {"dynamic_shapes": ({0: torch.export.Dim("rows")},)} if dynamic else {}
    return _Case(subject, model, example, {"strict": strict, **sizes}, weight, x)


def _assert_right(case, call, weights, factor):
    """The outputs are right, and a backward pass gives x and the weights of the program the right gradients."""
    x, outputs = case.assert_outputs(call)
    sum(y.sum() for y in outputs).backward()
    got = [each.grad for each in (x, *weights)]
    expected = case.gradients(factor)[: len(got)]
    case.subject.assert_all_same("gradients through the program", got=got, expected=expected)


def _assert_right_or_without_gradients(case, call, weights, factor):
    """As `_assert_right`, but a backward pass may raise instead."""
    with suppress(RuntimeError):
        _assert_right(case, call, weights, factor)


@keeps("COMPILE-16", slow=True, examples=0.4)
def test_an_exported_operator_is_one_node(subject, data):
    """An exported program has a node of the operator, its outputs for other inputs, and its formula's gradients."""
    with fresh():
        case = _drawn(subject, data, HOMES["a custom operator"])
        program = case.exported()
        called = [str(node.target) for node in program.graph.nodes if node.op == "call_function"]
        found = [name for name in called if SPACE in name or "mul" in name]
        what = "nodes of the operator, and of what its function does"
        subject.assert_equal(what, got=found, expected=[f"{SPACE}.weighted.default"])
        module = program.module()
        _assert_right(case, module, [*module.parameters()], FACTOR)


def _reloaded(program):
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    return torch.export.load(file)


STAGES = {
    "run_decompositions": lambda program: program.run_decompositions(),
    "save and load": _reloaded,
    "run_decompositions, save and load": lambda program: _reloaded(program.run_decompositions()),
}


@keeps("COMPILE-17", slow=True, examples=0.4)
def test_what_is_made_of_a_program_is_right(subject, data):
    """Decomposed and loaded programs have the outputs of the model, and its gradients or none."""
    home = HOMES[subject.draw(data, HOMES, "what the module calls")]
    stage = subject.draw(data, STAGES, "what is done with the program")
    with fresh():
        case = _drawn(subject, data, home, strict=(False,))
        module = STAGES[stage](case.exported()).module()
        _assert_right_or_without_gradients(case, module, [*module.parameters()], home.factor)


@keeps("COMPILE-17", variant="strict", slow=True, examples=0.2)
def test_a_strictly_exported_function_has_right_gradients_or_none(subject, data):
    """A strictly exported program that calls a Function has the outputs of the model, and its gradients or none."""
    home = HOMES["a custom Function"]
    with fresh():
        case = _drawn(subject, data, home, strict=(True,))
        module = case.exported().module()
        _assert_right_or_without_gradients(case, module, [*module.parameters()], home.factor)


def _assert_compiled(subject, data, home):
    skip_without_inductor(subject.device)
    with fresh(), TemporaryDirectory() as folder:
        case = _drawn(subject, data, home)
        program, path = case.exported(), str(Path(folder) / "model.pt2")
        compiling = partial(torch._inductor.aoti_compile_and_package, program, package_path=path)
        subject.assert_accepted(compiling, "AOTInductor")
        _assert_right_or_without_gradients(case, torch._inductor.aoti_load_package(path), [], home.factor)


@keeps("COMPILE-18", slow=True, examples=0.04)
def test_aot_inductor_compiles_an_operator(subject, data):
    """A package that calls an operator has the outputs of the model, for other inputs too, its gradients or none."""
    _assert_compiled(subject, data, HOMES["a custom operator"])


@keeps("COMPILE-18", variant="function", slow=True, examples=0.04)
def test_aot_inductor_compiles_a_function(subject, data):
    """A package that calls a Function has the outputs of the model, for other inputs too, its gradients or none."""
    _assert_compiled(subject, data, HOMES["a custom Function"])
