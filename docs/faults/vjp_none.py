"""backward returns a gradient for an index tensor."""

import torch

from autograd_conformance import Declaration


class Pick(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, i):
        ctx.save_for_backward(i)
        ctx.shape = x.shape
        return x[i]

    @staticmethod
    def backward(ctx, g):
        (i,) = ctx.saved_tensors
        gx = g.new_zeros(ctx.shape).index_add(0, i, g)
        return gx, g.new_zeros(i.shape)


# Fixed:


class FixedPick(Pick):
    @staticmethod
    def backward(ctx, g):
        (i,) = ctx.saved_tensors
        return g.new_zeros(ctx.shape).index_add(0, i, g), None


faulty = Declaration(Pick, "float[n]", "int[b](0..n-1)")
fixed = Declaration(FixedPick, "float[n]", "int[b](0..n-1)")
