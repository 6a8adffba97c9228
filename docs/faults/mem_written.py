"""The first element of a difference is left as it was in new memory."""

import torch

from autograd_conformance import Declaration


class Differences(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.empty_like(x)
        y[1:] = x[1:] - x[:-1]
        return y

    @staticmethod
    def backward(ctx, g):
        gradient = torch.zeros_like(g)
        gradient[1:] += g[1:]
        gradient[:-1] -= g[1:]
        return gradient


# Fixed:


class FixedDifferences(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.zeros_like(x)
        y[1:] = x[1:] - x[:-1]
        return y

    @staticmethod
    def backward(ctx, g):
        return Differences.backward(ctx, g)


faulty = Declaration(Differences, "float[n]")
fixed = Declaration(FixedDifferences, "float[n]")
