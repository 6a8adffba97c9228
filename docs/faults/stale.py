"""It is declared that a graph can be used once, and it can be used again."""

import torch

from autograd_conformance import Declaration


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g


faulty = Declaration(Double, "float[n]", single_backward=True)
fixed = Declaration(Double, "float[n]", name="DeclaredDouble")
options = ["--properties", "VJP-REPEAT"]
