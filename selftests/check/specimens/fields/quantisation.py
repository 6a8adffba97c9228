"""Surrogate gradients."""

from __future__ import annotations

import torch
from torch.autograd import Function

from autograd_conformance.harness.check import Declaration


class RoundThrough(Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, g):
        return g


class FakeQuantized(Function):
    """Passes where nothing was clipped."""

    @staticmethod
    def forward(ctx, x, scale):
        q = torch.round(x / scale)
        ctx.save_for_backward(q.abs() <= 7)
        return q.clamp(-7, 7) * scale

    @staticmethod
    def backward(ctx, g):
        (kept,) = ctx.saved_tensors
        return g * kept, None


class Binarized(Function):
    """The sign, with the gradient of hardtanh."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.where(x >= 0, 1.0, -1.0).to(x.dtype)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (x.abs() < 1)


class Spike(Function):
    """A step with the gradient of a sigmoid."""

    @staticmethod
    def forward(ctx, u, slope):
        ctx.save_for_backward(u)
        ctx.slope = slope
        return (u > 0).to(u.dtype)

    @staticmethod
    def backward(ctx, g):
        (u,) = ctx.saved_tensors
        s = torch.sigmoid(ctx.slope * u)
        return g * ctx.slope * s * (1 - s), None


class OneHot(Function):
    """The largest as one hot, with the gradient of softmax."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.nn.functional.one_hot(x.argmax(-1), x.shape[-1]).to(x.dtype)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        p = x.softmax(-1)
        return p * (g - (p * g).sum(-1, keepdim=True))


class ClippedGradient(Function):
    """Limits its gradient, so backward is not linear."""

    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return g.clamp(-1, 1)


class VectorQuantized(Function):
    """The nearest code; passes the gradient on, and the codes get theirs."""

    @staticmethod
    def forward(ctx, x, codes):
        index = (x[:, None] - codes).square().sum(-1).argmin(1)
        ctx.save_for_backward(index)
        ctx.shape = codes.shape
        return codes[index]

    @staticmethod
    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        return g, g.new_zeros(ctx.shape).index_add(0, index, g)


DECLARATIONS = (
    Declaration(RoundThrough, "float[...]", surrogate=True, reference=torch.round),
    Declaration(FakeQuantized, "float[n,m]", "0.25 | 0.5", surrogate=True),
    Declaration(Binarized, "float[n]", soft=torch.nn.functional.hardtanh),
    Declaration(Spike, "float[...]", "4.0", soft=lambda u, k: torch.sigmoid(k * u)),
    Declaration(OneHot, "float[b,c]", soft=lambda x: x.softmax(-1), sizes={"c": (1, 2, 4)}),
    Declaration(ClippedGradient, "float[...]", surrogate=True, nonlinear=True),
    Declaration(VectorQuantized, "float[n,d]", "float[k,d]", surrogate=True, sizes={"k": (1, 3), "d": (1, 2)}),
)
