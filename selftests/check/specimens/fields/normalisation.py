"""Normalisation."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - as everybody has it
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from autograd_conformance.harness.check import Declaration


class RmsNorm(Function):
    """It saves the inverse root, an intermediate, and refuses second derivatives."""

    @staticmethod
    def forward(ctx, x, w):
        r = torch.rsqrt(x.square().mean(-1, keepdim=True) + 0.125)
        ctx.save_for_backward(x, w, r)
        return x * r * w

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, w, r = ctx.saved_tensors
        y = x * r
        gw = g * w
        return r * (gw - y * (gw * y).mean(-1, keepdim=True)), (g * y).sum_to_size(w.shape)


def _rms(x, w):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 0.125) * w


class LayerNorm(Function):
    """It computes its statistics again, so that it can be differentiated twice."""

    @staticmethod
    def forward(ctx, x, w, b):
        ctx.save_for_backward(x, w)
        return F.layer_norm(x, x.shape[-1:], w, b, 0.125)

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        c = x - x.mean(-1, keepdim=True)
        r = torch.rsqrt(c.square().mean(-1, keepdim=True) + 0.125)
        y, h = c * r, g * w
        gx = r * (h - h.mean(-1, keepdim=True) - y * (h * y).mean(-1, keepdim=True))
        return gx, (g * y).sum_to_size(w.shape), g.sum_to_size(w.shape)


class GroupNorm(Function):
    """Two groups of channels."""

    @staticmethod
    def forward(ctx, x, w):
        grouped = x.reshape(x.shape[0], 2, -1)
        var, mean = torch.var_mean(grouped, -1, correction=0, keepdim=True)
        r = torch.rsqrt(var + 0.125)
        y = ((grouped - mean) * r).reshape(x.shape)
        ctx.save_for_backward(y, r, w)
        return y * w[:, None]

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        y, r, w = ctx.saved_tensors
        h = (g * w[:, None]).reshape(len(y), 2, -1)
        z = y.reshape(len(y), 2, -1)
        gx = r * (h - h.mean(-1, keepdim=True) - z * (h * z).mean(-1, keepdim=True))
        return gx.reshape(y.shape), (g * y).sum((0, 2))


def _grouped(x, w):
    return F.group_norm(x, 2, w, None, 0.125)


class InstanceNorm(Function):
    """Without a gradient that is certain to be zero: that of the mean."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x - x.mean(-1, keepdim=True)) / (x.var(-1, correction=0, keepdim=True) + 0.5).sqrt()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        c = x - x.mean(-1, keepdim=True)
        v = c.square().mean(-1, keepdim=True) + 0.5
        return (g - g.mean(-1, keepdim=True) - c / v * (g * c).mean(-1, keepdim=True)) / v.sqrt()


class BatchNormOfEvaluation(Function):
    """Running statistics are constants."""

    @staticmethod
    def forward(ctx, x, mean, var, w, b):
        scale = torch.rsqrt(var + 0.125)
        ctx.save_for_backward(x, mean, scale, w)
        return (x - mean) * scale * w + b

    @staticmethod
    def backward(ctx, g):
        x, mean, scale, w = ctx.saved_tensors
        return g * scale * w, None, None, (g * (x - mean) * scale).sum(0), g.sum(0)


class UnitVector(Function):
    """It saves its output."""

    @staticmethod
    def forward(ctx, x):
        n = x.norm(dim=-1, keepdim=True)
        y = x / n
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return (g - y * (g * y).sum(-1, keepdim=True)) / x.norm(dim=-1, keepdim=True)


class WeightNorm(Function):
    @staticmethod
    def forward(ctx, v, s):
        ctx.save_for_backward(v, s)
        return s[:, None] * v / v.norm(dim=1, keepdim=True)

    @staticmethod
    def backward(ctx, g):
        v, s = ctx.saved_tensors
        n = v.norm(dim=1, keepdim=True)
        u = v / n
        along = (g * u).sum(1, keepdim=True)
        return s[:, None] / n * (g - along * u), along.squeeze(1)


class Standardized(Function):
    """It scales by a detached factor of the layout only: the number of rows."""

    @staticmethod
    def forward(ctx, x):
        ctx.rows = max(len(x), 1)
        return (x - x.mean(0)) * ctx.rows**-0.5

    @staticmethod
    def backward(ctx, g):
        return (g - g.mean(0)) * ctx.rows**-0.5


class LocalResponse(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x / (1 + x.square().sum(1, keepdim=True))

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        s = 1 + x.square().sum(1, keepdim=True)
        # Divided twice: the square of s overflows in float16 where the output does not.
        return g / s - 2 * (x / s) * ((g * x).sum(1, keepdim=True) / s)


_B = {"b": (1, 2), "c": (2, 4), "n": (1, 2, 3)}

DECLARATIONS = (
    Declaration(RmsNorm, "float[b,n]", "float[n]", once=True, reference=_rms),
    Declaration(LayerNorm, "float[b,n]", "float[n]", "float[n]", sizes={"n": (1, 2, 5)}),
    Declaration(GroupNorm, "float[b,c,n]", "float[c]", once=True, sizes=_B, reference=_grouped),
    Declaration(InstanceNorm, "float[b,c,n]", sizes=_B),
    Declaration(BatchNormOfEvaluation, "float[b,c]", "float[c] constant", "float[c] positive constant", "float[c]",
                "float[c]"),
    Declaration(UnitVector, "float[b,n] nonzero", sizes={"n": (1, 2, 3)}),
    Declaration(WeightNorm, "float[n,m] nonzero", "float[n]", sizes={"m": (1, 2, 3)}),
    Declaration(Standardized, "float[n,m]", sizes={"n": (1, 2, 5)}),
    Declaration(LocalResponse, "float[b,c]"),
)  # fmt: skip
