"""exp(-x) overflows for large negative x, and inf / inf is NaN."""

import torch

from autograd_conformance import Declaration


class Sigmoid(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sigmoid(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * torch.exp(-x) / (1 + torch.exp(-x)) ** 2


# Fixed:


class FixedSigmoid(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.sigmoid(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y * (1 - y)


faulty = Declaration(Sigmoid, "float[n]")
fixed = Declaration(FixedSigmoid, "float[n]")
