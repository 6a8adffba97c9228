"""Dropout, which is not declared to draw random numbers."""

import torch

from autograd_conformance import Declaration


class Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        mask = 2.0 * (torch.rand_like(x) < 0.5)
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx, g):
        (mask,) = ctx.saved_tensors
        return g * mask


# Fixed:


faulty = Declaration(Dropout, "float[n]")
fixed = Declaration(Dropout, "float[n]", name="FixedDropout", stochastic=True)
