"""The weight of the second argument is used where that of the first one belongs."""

import torch

from autograd_conformance import Declaration


class Overlap(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y / (1 + y * y)

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y / (1 + y * y), g * x * (1 - y * y) / (1 + y * y) ** 2


# Fixed:


class FixedOverlap(Overlap):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y / (1 + x * x + y * y)

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        size = 1 + x * x + y * y
        return g * y * (size - 2 * x * x) / size**2, g * x * (size - 2 * y * y) / size**2


faulty = Declaration(Overlap, "float[n]", "float[n]", symmetric=(0, 1))
fixed = Declaration(FixedOverlap, "float[n]", "float[n]", symmetric=(0, 1))
