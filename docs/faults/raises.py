"""backward returns one gradient too many, so every call raises."""

import torch

from autograd_conformance import Declaration


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g, g


# Fixed:


class FixedDouble(Double):
    @staticmethod
    def backward(ctx, g):
        return 2 * g


faulty = Declaration(Double, "float[n]")
fixed = Declaration(FixedDouble, "float[n]")
options = ["--properties", "VJP-FD"]
