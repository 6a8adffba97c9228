"""forward reads memory that is not there, where there are no elements."""

import ctypes

import torch

from autograd_conformance import Declaration


class Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        if x.numel() == 0:
            ctypes.string_at(0)
        return x.sum()

    @staticmethod
    def backward(ctx, g):
        return g.expand(ctx.shape)


# Fixed:


class FixedSum(Sum):
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x.sum()


faulty = Declaration(Sum, "float[n]")
fixed = Declaration(FixedSum, "float[n]")
options = ["--properties", "FWD-EMPTY"]
