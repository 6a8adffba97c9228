"""The likely cause of a wrong gradient, such as a factor or equal indices, and only where it explains it."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch

from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.check.report import grouping
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


class Products(torch.autograd.Function):
    """The product of the numbers with the same index. Backward leaves out the other factors."""

    @staticmethod
    def forward(ctx, x, index):
        ctx.save_for_backward(index)
        return x.new_ones(4).scatter_reduce(0, index, x, "prod")

    @staticmethod
    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        return g[index], None


class SumOfProducts(torch.autograd.Function):
    """Sums over the first dimension. Backward takes the mean for one argument."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return (x * w).sum(0)

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * w.expand_as(x), (g * x).mean(0)


class Squares(torch.autograd.Function):
    """A right square, whose backward the faults override."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x


class FirstForAll(Squares):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * (g[0] if len(g) else 1)


class MeanForAll(Squares):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g.mean()


class Backwards(Squares):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g.flip(0)


class SignLost(Squares):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x.abs() * g


EQUAL = "right where all entries of argument 1 (index) are different, and wrong where some are equal"
ADDING = "index_add_, scatter_add_, or accumulate=True"
MEAN = "the length of a dimension (a mean for a sum, or the other way round)"
CONSTANT = "right where all entries of grad_output are equal, and wrong where they are not: backward "


CONJUGATED = (
    "right in real numbers: a factor of backward is not conjugated (g * x.conj() for x * y), or its real part, or a "
    "factor of 2, is missing or too many"
)


@pytest.mark.parametrize(
    ("function", "arguments", "words"),
    [
        (Assigned, INDEXED, f"{EQUAL}: one gradient is kept, where all have to be added: {ADDING}"),
        (Products, ("float[n]", "int[n](0..3)"), EQUAL),
        (AddedAndDoubled, INDEXED, "right would be the gradient of argument 0 (x) times 0.5"),
        (OneUnconjugated, COMPLEX, CONJUGATED),
        (Halved, COMPLEX, "right would be the gradient of argument 1 (y) times 2"),
        (SumOfProducts, ("float[n,m]", "float[m]"), f"right would be the gradient of argument 1 (w) times {MEAN}"),
        (FirstForAll, ("float[n]",), f"{CONSTANT}uses one entry of it for all"),
        (MeanForAll, ("float[n]",), f"{CONSTANT}uses the mean of grad_output for all"),
        (Backwards, ("float[n]",), f"{CONSTANT}puts its entries in each other's places, or adds them up"),
        (SignLost, ("float[n]",), ""),
    ],
)
def test_what_the_probes_show_is_said(function, arguments, words):
    (head,) = lines_of(Checked(Declaration(function, *arguments), profile="quick", seed=0), "VJP-FD")
    assert head["failure"].get("likely", "") == words


class Seldom(torch.autograd.Function):
    """One number of twenty is kept. Backward draws again."""

    @staticmethod
    def forward(_, x):
        return x * (torch.rand_like(x) > 0.95)

    @staticmethod
    def backward(_, g):
        return g * (torch.rand_like(g) > 0.95)


def test_another_draw_is_named_where_other_seeds_seldom_show_it():
    faults = faults_of(Declaration(Seldom, "float[n]", stochastic=True), "VJP-FD")
    assert "backward seems to use another draw than forward" in grouping.headlines(faults)[0]["failure"]["likely"]


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
    faults = faults_of(Declaration(LossOfShapes, "float[n,m]"), "VJP-FD", profile="quick", shrink=False)
    assert [line["property"] for line in grouping.headlines(faults)] == ["VJP-FD"]


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
    likely = {line["failure"].get("likely", "") for line in grouping.headlines(faults)}
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
