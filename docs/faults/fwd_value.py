"""A softplus with the wrong sign: the gradient fits the forward, so only the reference shows it."""

import torch

from autograd_conformance import Declaration


class Softplus(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.log1p(torch.exp(-x))

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return -g * torch.sigmoid(-x)


# Fixed:


class FixedSoftplus(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.nn.functional.softplus(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * torch.sigmoid(x)


faulty = Declaration(Softplus, "float[n]", reference=torch.nn.functional.softplus)
fixed = Declaration(FixedSoftplus, "float[n]", reference=torch.nn.functional.softplus)
