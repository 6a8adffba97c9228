"""The input is kept as an attribute of ctx, where nobody notices a change in place."""

import torch

from autograd_conformance import Declaration


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g * ctx.x


# Fixed:


class FixedSquare(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x


faulty = Declaration(Square, "float[n]")
fixed = Declaration(FixedSquare, "float[n]")
