"""The likely cause of a wrong gradient: equal indices, or a missing conjugate, and only where these explain it."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch

from autograd_conformance.harness.check import Declaration, printing
from autograd_conformance.selftests.checking import accuses, faults_of, lines_of
from autograd_conformance.suites.declared import Checked

INDEXED = ("float[n]", "int[b](0..n-1)")
COMPLEX = ("number[n]", "number[n]")


class Rows(torch.autograd.Function):
    """A right gather, whose backward the faults override."""

    @staticmethod
    def forward(ctx, x, index):
        ctx.save_for_backward(index)
        ctx.n = x.shape[0]
        return x[index]


class Assigned(Rows):
    @staticmethod
    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        found = g.new_zeros(ctx.n)
        found[index] = g
        return found, None


class AddedAndDoubled(Rows):
    @staticmethod
    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        return g.new_zeros(ctx.n).index_add(0, index, 2 * g), None


class Product(torch.autograd.Function):
    """A right product, whose backward the faults override."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y


class OneUnconjugated(Product):
    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y, g * x.conj()


class Halved(Product):
    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y.conj(), g * x.conj() / 2


@pytest.mark.parametrize(
    ("function", "arguments", "words"),
    [
        (Assigned, INDEXED, "where entries of argument 1 (index) are equal"),
        (AddedAndDoubled, INDEXED, ""),
        (OneUnconjugated, COMPLEX, "a factor of backward is not conjugated"),
        (Halved, COMPLEX, ""),
    ],
)
def test_what_the_probes_show_is_said(function, arguments, words):
    (head,) = lines_of(Checked(Declaration(function, *arguments), profile="quick", seed=0), "VJP-FD")
    likely = head["failure"].get("likely", "")
    assert words in likely
    assert bool(likely) == bool(words)


class LossOfShapes(torch.autograd.Function):
    """Right for square matrices only: the other shapes fail in one way."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x * (1.0 + 0.5 * (x.shape[0] - x.shape[1]))


def test_one_fault_in_several_shapes_is_one_block():
    faults = faults_of(Declaration(LossOfShapes, "float[n,m]"), "VJP-FD", profile="quick")
    assert [line["property"] for line in printing.headlines(faults)] == ["VJP-FD"]


class Targets(torch.autograd.Function):
    """softplus(x) - x t. There is no gradient for t."""

    @staticmethod
    def forward(ctx, x, t):
        ctx.save_for_backward(x, t)
        return torch.nn.functional.softplus(x) - x * t

    @staticmethod
    def backward(ctx, g):
        x, t = ctx.saved_tensors
        return g * (torch.sigmoid(x) - t), None


class TargetsDoubled(Targets):
    """The other gradient is wrong, too."""

    @staticmethod
    def backward(ctx, g):
        return 2 * Targets.backward(ctx, g)[0], None


class Shifted(torch.autograd.Function):
    """x * t + b. Each gradient is guarded by the flag of the next argument."""

    @staticmethod
    def forward(ctx, x, t, b):
        ctx.save_for_backward(x, t)
        return x * t + b

    @staticmethod
    def backward(ctx, g):
        x, t = ctx.saved_tensors
        need = (*ctx.needs_input_grad[1:], False)
        return g * t if need[0] else None, g * x if need[1] else None, g if need[2] else None


class Crossed(torch.autograd.Function):
    """x @ y of complex matrices. A factor is not conjugated."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x @ y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g @ y.mH, x.mT @ g


class Rounded(torch.autograd.Function):
    """x + sign(t). The gradient of t is zero, and None says so."""

    @staticmethod
    def forward(ctx, x, t):
        ctx.shape = t.shape
        return x + t.sign()

    @staticmethod
    def backward(ctx, g):
        return g.sum_to_size(ctx.shape), None


MISSING = "if it is meant to have no gradient, declare it constant: 'float[n] unit constant'"


def test_an_argument_without_gradient_is_named():
    faults = faults_of(Declaration(Targets, "float[n]", "float[n] unit"), "VJP-FD", profile="quick")
    likely = {line["failure"].get("likely", "") for line in printing.headlines(faults)}
    assert len(likely) == 1
    assert all("backward returned None for argument 1 (t)" in each and MISSING in each for each in likely)
    assert "surrogate" not in " ".join(v.guess for _, v in faults)


def test_an_argument_whose_flag_is_that_of_another_is_named():
    checked = Checked(Declaration(Shifted, "float[n]", "float[n]", "float[n]"), profile="quick", seed=0)
    (line,) = lines_of(checked, "VJP-FD")
    assert "backward returned None for argument 2 (b)" in line["failure"]["likely"]


def test_of_complex_numbers_alone_a_conjugate_is_named():
    checked = Checked(Declaration(Crossed, "complex[n,m]", "complex[m,k]"), profile="quick", seed=0)
    (line,) = lines_of(checked, "VJP-FD")
    assert "conjugated" in line["failure"]["likely"]


def test_an_argument_without_gradient_explains_no_other_fault():
    faults = faults_of(Declaration(TargetsDoubled, "float[n]", "float[n] unit"), "VJP-FD", profile="quick")
    assert faults
    assert not any("returned None" in line["failure"].get("likely", "") for line, _ in faults)


@pytest.mark.parametrize(
    "declaration",
    [Declaration(Rounded, "float[n]", "float[n] nonzero"), Declaration(Targets, "float[n]", "float[n] unit constant")],
    ids=["zero", "constant"],
)
def test_none_may_be_right(declaration):
    assert accuses(declaration, "VJP-FD") == []
