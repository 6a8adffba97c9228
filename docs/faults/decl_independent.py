"""The mean is taken over the batch as well, in forward and in backward."""

import torch

from autograd_conformance import Declaration


class Centred(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x - x.mean()

    @staticmethod
    def backward(ctx, g):
        return g - g.mean()


# Fixed:


class FixedCentred(Centred):
    @staticmethod
    def forward(ctx, x):
        return x - x.mean(1, keepdim=True)

    @staticmethod
    def backward(ctx, g):
        return g - g.mean(1, keepdim=True)


faulty = Declaration(Centred, "float[b,n]", independent="b", sizes={"n": (1, 2, 3)})
fixed = Declaration(FixedCentred, "float[b,n]", independent="b", sizes={"n": (1, 2, 3)})
