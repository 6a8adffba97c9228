"""An intermediate is saved, so that autograd cannot see that it depends on x."""

import torch

from autograd_conformance import Declaration


class ExpPlusOne(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.exp(x)
        ctx.save_for_backward(y)
        return y + 1

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y


# Fixed:


class FixedExpPlusOne(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.exp(x) + 1

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * torch.exp(x)


faulty = Declaration(ExpPlusOne, "float[n]")
fixed = Declaration(FixedExpPlusOne, "float[n]")
