"""The gradient of w is computed only if x needs one as well."""

import torch

from autograd_conformance import Declaration


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        if ctx.needs_input_grad[0]:
            return g * w, g * x
        return None, None


# Fixed:


class FixedProduct(Product):
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        gx = g * w if ctx.needs_input_grad[0] else None
        gw = g * x if ctx.needs_input_grad[1] else None
        return gx, gw


faulty = Declaration(Product, "float[n]", "float[n]")
fixed = Declaration(FixedProduct, "float[n]", "float[n]")
