"""The square by a C++ extension, which is compiled when this is imported; it needs a compiler and ninja."""

from __future__ import annotations

import torch
from torch.autograd.function import once_differentiable
from torch.utils.cpp_extension import load_inline

from autograd_conformance import Declaration

CODE = """
torch::Tensor square(torch::Tensor x) {
    // A tensor that torch negates lazily has other numbers in its memory.
    x = x.contiguous().resolve_neg();
    auto out = torch::empty_like(x);
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "square", [&] {
        const scalar_t* from = x.data_ptr<scalar_t>();
        scalar_t* to = out.data_ptr<scalar_t>();
        for (int64_t i = 0; i < x.numel(); i++) to[i] = from[i] * from[i];
    });
    return out;
}

torch::Tensor slope(torch::Tensor x, torch::Tensor g) {
    x = x.contiguous().resolve_neg();
    g = g.contiguous().resolve_neg();
    auto out = torch::empty_like(x);
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "slope", [&] {
        const scalar_t* at = x.data_ptr<scalar_t>();
        const scalar_t* from = g.data_ptr<scalar_t>();
        scalar_t* to = out.data_ptr<scalar_t>();
        for (int64_t i = 0; i < x.numel(); i++) to[i] = 2 * at[i] * from[i];
    });
    return out;
}
"""

compiled = load_inline("squares", CODE, functions=["square", "slope"])


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return compiled.square(x)

    # Autograd does not see what a kernel does: second derivatives would be zero, without an error.
    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        return compiled.slope(*ctx.saved_tensors, g)


declared = Declaration(Square, "float[...]", once=True)
