"""backward deletes what a second backward through the same graph needs."""

import torch

from autograd_conformance import Declaration


class Power(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.k = 2
        return x**2

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        k = ctx.k
        del ctx.k
        return k * g * x


# Fixed:


class FixedPower(Power):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return ctx.k * g * x


faulty = Declaration(Power, "float[n]")
fixed = Declaration(FixedPower, "float[n]")
