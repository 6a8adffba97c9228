"""jvp and backward are those of two derivatives: their signs differ."""

import torch

from autograd_conformance import Declaration


class Square(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        (x,) = inputs
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x

    @staticmethod
    def jvp(ctx, dx):
        (x,) = ctx.saved_tensors
        return -2 * x * dx


# Fixed:


class FixedSquare(Square):
    @staticmethod
    def jvp(ctx, dx):
        (x,) = ctx.saved_tensors
        return 2 * x * dx


faulty = Declaration(Square, "float[n]")
fixed = Declaration(FixedSquare, "float[n]")
