"""The default dtype is switched for a computation, and stays so."""

import torch

from autograd_conformance import Declaration


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        torch.set_default_dtype(torch.float64)
        ctx.factor = torch.tensor(0.1).item()
        return x * ctx.factor

    @staticmethod
    def backward(ctx, g):
        return g * ctx.factor


# Fixed:


class FixedScaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.factor = torch.tensor(0.1, dtype=torch.float64).item()
        return x * ctx.factor

    @staticmethod
    def backward(ctx, g):
        return g * ctx.factor


faulty = Declaration(Scaled, "float[n]")
fixed = Declaration(FixedScaled, "float[n]")
