"""Another formula is used while the Function is compiled, and it is wrong."""

import torch

from autograd_conformance import Declaration


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 2 * x if torch.compiler.is_compiling() else x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x


# Fixed:


class FixedSquare(Square):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x


faulty = Declaration(Square, "float[n]", also=["compile"])
fixed = Declaration(FixedSquare, "float[n]", also=["compile"])
