"""backward writes into its cotangent, which belongs to the caller."""

import torch

from autograd_conformance import Declaration


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return g.mul_(2)


# Fixed:


class FixedDouble(Double):
    @staticmethod
    def backward(ctx, g):
        return 2 * g


faulty = Declaration(Double, "float[n]")
fixed = Declaration(FixedDouble, "float[n]")
