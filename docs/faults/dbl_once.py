"""It is declared that second derivatives are refused, and nothing refuses them."""

import torch
from torch.autograd.function import once_differentiable

from autograd_conformance import Declaration


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x


# Fixed:


class FixedSquare(Square):
    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x


faulty = Declaration(Square, "float[n]", once=True)
fixed = Declaration(FixedSquare, "float[n]", once=True)
