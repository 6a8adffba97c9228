"""Softplus by loops that Numba compiles, on the arrays behind the tensors."""

from __future__ import annotations

import numba
import numpy as np
import torch
from torch.autograd.function import once_differentiable

from autograd_conformance import Declaration


@numba.njit
def softplus(x, out):
    for i in range(x.size):
        out[i] = max(x[i], 0) + np.log1p(np.exp(-abs(x[i])))


@numba.njit
def slope(x, g, out):
    for i in range(x.size):
        out[i] = g[i] / (1 + np.exp(-x[i]))


def run(kernel, *tensors):
    # An array cannot be negated lazily, as a tensor can.
    arrays = [tensor.detach().contiguous().resolve_neg().numpy().reshape(-1) for tensor in tensors]
    out = np.empty_like(arrays[0])
    kernel(*arrays, out)
    return torch.from_numpy(out).view(tensors[0].shape)


class Softplus(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return run(softplus, x)

    # Autograd does not see what a kernel does: second derivatives would be zero, without an error.
    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return run(slope, x, g)


# Numba compiles for each dtype when it is first called, before anything is timed.
declared = Declaration(Softplus, "float[...]", once=True)
