"""Unused outputs have the cotangent None here, and backward calculates with it."""

import torch

from autograd_conformance import Declaration


class SineAndCosine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        s, c = x.sin(), x.cos()
        ctx.save_for_backward(s, c)
        return s, c

    @staticmethod
    def backward(ctx, gs, gc):
        s, c = ctx.saved_tensors
        return gs * c - gc * s


# Fixed:


class FixedSineAndCosine(SineAndCosine):
    @staticmethod
    def backward(ctx, gs, gc):
        s, c = ctx.saved_tensors
        by_s = None if gs is None else gs * c
        by_c = None if gc is None else -gc * s
        if by_s is None or by_c is None:
            return by_c if by_s is None else by_s
        return by_s + by_c


faulty = Declaration(SineAndCosine, "float[n]")
fixed = Declaration(FixedSineAndCosine, "float[n]")
