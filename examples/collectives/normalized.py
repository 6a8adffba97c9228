"""A normalization by the mean square over all processes of a group, as tensor parallel layers have it."""

from __future__ import annotations

import torch
from torch import distributed
from torch.autograd.function import once_differentiable

from autograd_conformance import Declaration, in_processes


def over_all(value):
    """The sum over the processes."""
    value = value.clone()
    distributed.all_reduce(value)
    return value


class Normalized(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        scale = 1 / (1 + over_all((x * x).sum()))
        ctx.save_for_backward(x, scale)
        return x * scale

    # All outputs depend on the part of this process. Without the sum over the processes backward is right as long as
    # there is one of them.
    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, scale = ctx.saved_tensors
        return g * scale - 2 * x * scale**2 * over_all((g * x).sum())


# The first dimension has a part for each of the two processes.
declared = Declaration(in_processes(Normalized.apply, 2), "float[2,...]", once=True)
