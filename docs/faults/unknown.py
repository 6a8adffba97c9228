"""forward computes in bfloat16: its steps are too coarse for finite differences."""

import torch

from autograd_conformance import Declaration


class Sine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sin(x.bfloat16()).to(x.dtype)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * torch.cos(x)


faulty = Declaration(Sine, "float[n]")
options = ["--properties", "VJP-FD"]
