"""forward takes half precision only: its steps are too coarse for finite differences."""

import torch

from autograd_conformance import Declaration


class Sine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        if x.dtype.itemsize > 2:
            raise TypeError("half precision only")
        ctx.save_for_backward(x)
        return torch.sin(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * g * torch.cos(x)


faulty = Declaration(Sine, "float[n]")
options = ["--properties", "VJP-FD"]
