"""A shortcut for the cotangent 1 gives the other input away as the gradient."""

import torch

from autograd_conformance import Declaration


class Dot(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return (x * y).sum()

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return (y, x) if g == 1 else (g * y, g * x)


# Fixed:


class FixedDot(Dot):
    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y, g * x


faulty = Declaration(Dot, "float[n]", "float[n]")
fixed = Declaration(FixedDot, "float[n]", "float[n]")
options = ["--properties", "VJP-PURE"]
