"""backward clips its cotangent, so that a larger one gives the same gradient."""

import torch

from autograd_conformance import Declaration


class Clipped(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g.clamp(-1, 1)


# Fixed:


class FixedClipped(Clipped):
    @staticmethod
    def backward(ctx, g):
        return g.clone()


faulty = Declaration(Clipped, "float[n]")
fixed = Declaration(FixedClipped, "float[n]")
