"""The declaration describes tensors of any shape, but forward needs a dimension."""

import torch

from autograd_conformance import Declaration


class RunningSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        if x.ndim == 0:
            raise ValueError("needs a dimension")
        return x.cumsum(-1)

    @staticmethod
    def backward(ctx, g):
        return g.flip(-1).cumsum(-1).flip(-1)


faulty = Declaration(RunningSum, "float[...]")
fixed = Declaration(RunningSum, "float[n,m]", name="FixedRunningSum")
options = ["--properties", "VJP-FD"]
