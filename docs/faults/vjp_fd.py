"""backward forgets that k is a factor of the second gradient as well."""

import torch

from autograd_conformance import Declaration


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, k):
        ctx.save_for_backward(x, w)
        ctx.k = k
        return x * w * k

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * w * ctx.k, g * x, None


# Fixed:


class FixedScale(Scale):
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * w * ctx.k, g * x * ctx.k, None


faulty = Declaration(Scale, "float[n]", "float[n]", "int(0..3)")
fixed = Declaration(FixedScale, "float[n]", "float[n]", "int(0..3)")
