"""The output is kept on ctx. Output and ctx then keep each other alive."""

import torch

from autograd_conformance import Declaration


class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.y = torch.exp(x)
        return ctx.y

    @staticmethod
    def backward(ctx, g):
        return g * ctx.y


# Fixed:


class FixedExp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.exp(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y


faulty = Declaration(Exp, "float[n]")
fixed = Declaration(FixedExp, "float[n]")
