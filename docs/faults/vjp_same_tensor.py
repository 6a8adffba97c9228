"""Two arguments with the same memory are taken for a square, and both get its gradient."""

import torch

from autograd_conformance import Declaration


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.square = x.data_ptr() == y.data_ptr()
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        if ctx.square:
            return 2 * g * x, 2 * g * x
        return g * y, g * x


# Fixed:


class FixedProduct(Product):
    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y, g * x


faulty = Declaration(Product, "float[n]", "float[n]")
fixed = Declaration(FixedProduct, "float[n]", "float[n]")
