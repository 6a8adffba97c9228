"""A gated activation of half precision alone, as kernels for tensor cores are, next to a reference in any precision."""

from __future__ import annotations

import torch
from torch.autograd.function import once_differentiable

from autograd_conformance import Declaration


def reference(x, gate):
    return x * gate * gate.sigmoid()


class GatedSwish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gate):
        if x.dtype not in (torch.float16, torch.bfloat16):
            raise TypeError(f"x is {x.dtype}; this takes float16 and bfloat16 only")
        ctx.save_for_backward(x, gate)
        return reference(x.float(), gate.float()).to(x.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, gate = (tensor.float() for tensor in ctx.saved_tensors)
        s = gate.sigmoid()
        return (g * gate * s).to(g.dtype), (g * x * (s + gate * s * (1 - s))).to(g.dtype)


# `check` calls the reference in float64, of which averages over many calls are known to far more digits than any call
# in half precision has.
declared = Declaration(GatedSwish, "float[...]", "float[...]", once=True, reference=reference)
