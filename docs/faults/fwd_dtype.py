"""A constant has the default dtype, so that half precision comes back as float32."""

import torch

from autograd_conformance import Declaration


class Halved(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * torch.full(x.shape, 0.5)

    @staticmethod
    def backward(ctx, g):
        return g / 2


# Fixed:


class FixedHalved(Halved):
    @staticmethod
    def forward(ctx, x):
        return x * torch.full_like(x, 0.5)


faulty = Declaration(Halved, "float[n]")
fixed = Declaration(FixedHalved, "float[n]")
