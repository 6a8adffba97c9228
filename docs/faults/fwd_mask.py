"""The bias is added only while it is trained."""

import torch

from autograd_conformance import Declaration


class Shift(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, b):
        return x + b if ctx.needs_input_grad[1] else x.clone()

    @staticmethod
    def backward(ctx, g):
        return g, g.sum(0)


# Fixed:


class FixedShift(Shift):
    @staticmethod
    def forward(ctx, x, b):
        return x + b


faulty = Declaration(Shift, "float[n,m]", "float[m]")
fixed = Declaration(FixedShift, "float[n,m]", "float[m]")
