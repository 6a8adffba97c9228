"""forward reads memory as if it were contiguous."""

import torch

from autograd_conformance import Declaration


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        flat = torch.as_strided(x, (x.numel(),), (1,))
        return (flat**3).reshape(x.shape)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * g * x * x


# Fixed:


class FixedCube(Cube):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x.reshape(-1) ** 3).reshape(x.shape)


faulty = Declaration(Cube, "float[n,m]")
fixed = Declaration(FixedCube, "float[n,m]")
