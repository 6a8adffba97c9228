"""forward changes its input in place, and does not say so with mark_dirty."""

import torch

from autograd_conformance import Declaration


class SquaredRelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x.clamp_(min=0)
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x


# Fixed:


class FixedSquaredRelu(SquaredRelu):
    @staticmethod
    def forward(ctx, x):
        x = x.clamp(min=0)
        ctx.save_for_backward(x)
        return x * x


faulty = Declaration(SquaredRelu, "float[n]")
fixed = Declaration(FixedSquaredRelu, "float[n]")
