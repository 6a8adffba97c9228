"""backward calls view on its cotangent, and sum() sends one that is expanded."""

import torch

from autograd_conformance import Declaration


class Sine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return (g.view(-1) * x.cos().reshape(-1)).reshape(x.shape)


# Fixed:


class FixedSine(Sine):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return (g.reshape(-1) * x.cos().reshape(-1)).reshape(x.shape)


faulty = Declaration(Sine, "float[n,m]")
fixed = Declaration(FixedSine, "float[n,m]")
