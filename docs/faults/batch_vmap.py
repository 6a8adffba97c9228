"""The rule for vmap takes the last dimension for the one that is not batched."""

import torch

from autograd_conformance import Declaration


class Center(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x - x.mean()

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, g):
        return g - g.mean()

    @staticmethod
    def vmap(info, in_dims, x):
        return x - x.mean(-1, keepdim=True), in_dims[0]


# Fixed:


class FixedCenter(Center):
    generate_vmap_rule = False

    @staticmethod
    def vmap(info, in_dims, x):
        x = x.movedim(in_dims[0], 0)
        return x - x.mean(-1, keepdim=True), 0


faulty = Declaration(Center, "float[n]", sizes={"n": (1, 4)})
fixed = Declaration(FixedCenter, "float[n]", sizes={"n": (1, 4)})
