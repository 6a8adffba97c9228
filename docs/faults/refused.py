"""Second derivatives raise, because backward is decorated. That is not a fault."""

import torch
from torch.autograd.function import once_differentiable

from autograd_conformance import Declaration


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x


faulty = Declaration(Square, "float[n]")
fixed = Declaration(Square, "float[n]", once=True, name="DeclaredSquare")
options = ["--properties", "DBL-CORRECT"]
