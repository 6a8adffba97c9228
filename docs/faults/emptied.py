"""backward gives reshape a -1, which means nothing for a tensor without elements."""

import torch

from autograd_conformance import Declaration


class Strided(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x[:, ::2].clone()

    @staticmethod
    def backward(ctx, g):
        gradient = g.new_zeros(ctx.shape)
        gradient[:, ::2] = g
        return gradient.reshape(ctx.shape[0], -1)


# Fixed:


class FixedStrided(Strided):
    @staticmethod
    def backward(ctx, g):
        gradient = g.new_zeros(ctx.shape)
        gradient[:, ::2] = g
        return gradient


faulty = Declaration(Strided, "float[n,m]")
fixed = Declaration(FixedStrided, "float[n,m]")
options = ["--properties", "FWD-*"]
