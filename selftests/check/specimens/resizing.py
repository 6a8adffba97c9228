"""Functions whose outputs have sizes that depend on the values are checked as any others."""

from __future__ import annotations

import torch
from torch.autograd import Function

from autograd_conformance.selftests.check.specimens import right, wrong


class Above(Function):
    """Twice the entries above the mean, on which rounding decides where all are equal."""

    @staticmethod
    def forward(ctx, x):
        mask = x > x.mean()
        ctx.save_for_backward(mask)
        return 2 * x[mask]

    @staticmethod
    def backward(ctx, g):
        (mask,) = ctx.saved_tensors
        return 2 * torch.zeros(mask.shape, dtype=g.dtype).masked_scatter(mask, g)


class Positive(Function):
    """The squares of the positive entries."""

    @staticmethod
    def forward(ctx, x):
        mask = x > 0
        ctx.save_for_backward(x, mask)
        return x[mask] ** 2

    @staticmethod
    def backward(ctx, g):
        x, mask = ctx.saved_tensors
        return 2 * x * torch.zeros_like(x).masked_scatter(mask, g)


class Reversed(Positive):
    """One whose gradients come in the opposite order."""

    @staticmethod
    def backward(ctx, g):
        return Positive.backward(ctx, g.flip(0))


COMPARED = "VJP-FD VJP-FD/kinks VJP-FD/long VJP-FD/small VJP-REF FWD-VALUE VJP-FIT DBL-CORRECT"
SPECIMENS = (
    right("above the mean", COMPARED, Above, "float[n]"),
    right("squares of positive ones", COMPARED, Positive, "float[n]"),
    wrong("gradients in the opposite order", "VJP-FD", Reversed, "float[n]", word="wrong"),
)
