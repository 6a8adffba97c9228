"""backward unpacks its saved tensors twice, which checkpointing does not allow."""

import torch

from autograd_conformance import Declaration


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, g):
        x = ctx.saved_tensors[0]
        y = ctx.saved_tensors[1]
        return g * y, g * x


# Fixed:


class FixedProduct(Product):
    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y, g * x


faulty = Declaration(Product, "float[n]", "float[n]", also=["checkpoint"])
fixed = Declaration(FixedProduct, "float[n]", "float[n]", also=["checkpoint"])
