"""The length of the last dimension is taken for that of the axis."""

import torch

from autograd_conformance import Declaration


class Mean(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dim):
        ctx.shape, ctx.dim = x.shape, dim
        return x.sum(dim, keepdim=True) / x.shape[-1]

    @staticmethod
    def backward(ctx, g):
        return g.expand(ctx.shape) / ctx.shape[-1], None


# Fixed:


class FixedMean(Mean):
    @staticmethod
    def forward(ctx, x, dim):
        ctx.shape, ctx.dim = x.shape, dim
        return x.sum(dim, keepdim=True) / x.shape[dim]

    @staticmethod
    def backward(ctx, g):
        return g.expand(ctx.shape) / ctx.shape[ctx.dim], None


faulty = Declaration(Mean, "float[...]", "axis")
fixed = Declaration(FixedMean, "float[...]", "axis")
