"""The product of two tensors by a kernel of Triton, which its interpreter runs without a GPU: set TRITON_INTERPRET=1.

What is commented is what `check` finds if it is missing.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch.autograd.function import once_differentiable

from autograd_conformance import Declaration

BLOCK = 64


@triton.jit
def multiply(x, y, out, n, size: tl.constexpr):
    offsets = tl.program_id(0) * size + tl.arange(0, size)
    # Otherwise the last block writes beyond the end of the memory.
    inside = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask=inside) * tl.load(y + offsets, mask=inside), mask=inside)


def product(x, y):
    # The kernel reads memory, where a tensor that torch negates lazily has other numbers.
    x, y = (tensor.contiguous().resolve_neg() for tensor in (x, y))
    out = torch.empty_like(x)
    if out.numel():
        multiply[(triton.cdiv(out.numel(), BLOCK),)](x, y, out, out.numel(), BLOCK)
    return out


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return product(x, y)

    # Autograd does not see what a kernel does: second derivatives would be zero, without an error.
    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return product(g, y), product(g, x)


# The share of the examples that `check` chooses is said here, so that every machine has the same ones.
declared = Declaration(Product, "float[...]", "float[...]", once=True, examples=0.25)
