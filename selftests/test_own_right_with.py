"""What `right with:` names, and where it says nothing."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch

from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.outcomes import named
from autograd_conformance.selftests.checking import lines_of
from autograd_conformance.selftests.test_own_further import LogSoftmax
from autograd_conformance.suites.declared import Checked


class Shift(torch.autograd.Function):
    """x, with its halves along an axis exchanged. Backward shifts odd lengths to the wrong side."""

    @staticmethod
    def forward(ctx, x, axis):
        ctx.axis = axis
        return torch.roll(x, x.shape[axis] // 2, axis)

    @staticmethod
    def backward(ctx, g):
        return torch.roll(g, g.shape[ctx.axis] // 2, ctx.axis), None


class Softmax(torch.autograd.Function):
    """Rows that sum to 1. Each backward halves what is saved, which shows wherever the gradient is not 0."""

    @staticmethod
    def forward(ctx, x):
        ctx.y = x.softmax(-1)
        return ctx.y.clone()

    @staticmethod
    def backward(ctx, g):
        y = ctx.y
        ctx.y = y / 2
        return y * (g - (g * y).sum(-1, keepdim=True))


class Blocks(torch.autograd.Function):
    """Running sums. Backward loses what it carries from one block of 64 to the one before."""

    @staticmethod
    def forward(ctx, x):
        ctx.length = 64
        return x.cumsum(-1)

    @staticmethod
    def backward(ctx, g):
        return torch.cat([part.flip(-1).cumsum(-1).flip(-1) for part in g.split(ctx.length, -1)], -1)


class AlongGiven(torch.autograd.Function):
    """Softmax along a dimension. The rule for batches does not move the dimension."""

    @staticmethod
    def forward(x, dim):
        return x.softmax(dim)

    @staticmethod
    def setup_context(ctx, inputs, y):
        ctx.dim = inputs[1]
        ctx.save_for_backward(y)

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return y * (g - (g * y).sum(ctx.dim, keepdim=True)), None

    @staticmethod
    def vmap(_, in_dims, x, dim):
        return AlongGiven.apply(x.movedim(in_dims[0], 0), dim), 0


class DrawnAgain(torch.autograd.Function):
    """Rows that are kept or left out by chance. Backward draws again."""

    @staticmethod
    def forward(ctx, x, p):
        ctx.p = p
        return x * (torch.rand(x.shape[0], 1, dtype=x.dtype) > p)

    @staticmethod
    def backward(ctx, g):
        return g * (torch.rand(g.shape[0], 1, dtype=g.dtype) > ctx.p), None


class Reduced(torch.autograd.Function):
    """Squares, reduced in one of three ways. Backward divides in each."""

    @staticmethod
    def forward(ctx, x, how):
        ctx.save_for_backward(x)
        return {"mean": torch.mean, "sum": torch.sum, "none": torch.clone}[how](x * x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x / max(1, x.numel()), None


class PowersOfTwo(torch.autograd.Function):
    """3 x, whose backward is right for lengths that are powers of two, as of a fast Fourier transform."""

    @staticmethod
    def forward(_, x):
        return 3 * x

    @staticmethod
    def backward(_, g):
        return (3 if g.shape[0].bit_count() == 1 else 4) * g


LED = {
    "one of three values": (
        Declaration(Reduced, "float[n]", "'mean' | 'sum' | 'none'"), "VJP-FD", "",
        "argument 1 (how) = 'mean'; wrong with 'sum', 'none'",
    ),
    "lengths": (
        Declaration(PowersOfTwo, "float[n,m]"), "VJP-FD", "",
        "lengths 1, 2, 4, 8 of argument 0 (x), dimension 0; wrong with 3, 5, 6, 7, 9",
    ),
    "a value that fails as well": (Declaration(AlongGiven, "float[n,m]", "0 | 1 | -1"), "BATCH-VMAP", "", None),
    "chance": (Declaration(DrawnAgain, "float[n,m]", "0.25 | 0.5", stochastic=True), "VJP-FD", "", None),
    "an odd length": (
        Declaration(Shift, "float[...]", "axis", once=True), "VJP-FD", "",
        "lengths 1, 2, 4, 6, 8 of argument 0 (x), dimension 0; wrong with 3, 5, 7, 9",
    ),
    "an entry alone": (Declaration(Softmax, "float[b,n]", once=True), "VJP-REPEAT", "", None),
    "a block": (Declaration(Blocks, "float[n]"), "VJP-FD", "long", "shapes (64,)"),
    "an axis that is moved": (Declaration(LogSoftmax, "float[...]", "axis"), "DECL-AXIS", "", None),
}  # fmt: skip


@pytest.mark.parametrize("name", LED)
def test_only_what_tells_something_is_named(name):
    declaration, about, variant, words = LED[name]
    (line,) = lines_of(Checked(declaration, seed=0), named(about, variant))
    assert line["failure"].get("right_with") == words
