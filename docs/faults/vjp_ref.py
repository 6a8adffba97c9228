"""backward forgets a factor; `reference=` says what the Function should be."""

import torch

from autograd_conformance import Declaration


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return 2 * x * w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return 2 * g * w, g * x


# Fixed:


class FixedScale(Scale):
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return 2 * g * w, 2 * g * x


faulty = Declaration(Scale, "float[n]", "float[n]", reference=lambda x, w: 2 * x * w)
fixed = Declaration(FixedScale, "float[n]", "float[n]", reference=lambda x, w: 2 * x * w)
