"""Attention."""

from __future__ import annotations

import math

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from autograd_conformance.harness.check import Declaration


def _plain(q, k, v):
    return torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1) @ v


class Attention(Function):
    @staticmethod
    def forward(ctx, q, k, v):
        ctx.save_for_backward(q, k, v)
        return _plain(q, k, v)

    @staticmethod
    def backward(ctx, g):
        q, k, v = ctx.saved_tensors
        scale = 1 / math.sqrt(q.shape[-1])
        p = torch.softmax(q @ k.mT * scale, -1)
        dp = g @ v.mT
        ds = p * (dp - (p * dp).sum(-1, keepdim=True)) * scale
        return ds @ k, ds.mT @ q, p.mT @ g


class Flash(Function):
    """Blocks of keys with an online softmax; the normalisers are an output without a gradient."""

    @staticmethod
    def forward(ctx, q, k, v):
        scale = 1 / math.sqrt(q.shape[-1])
        top = q.new_full((len(q), 1), -math.inf)
        total, out = q.new_zeros(len(q), 1), q.new_zeros(len(q), v.shape[-1])
        for start in range(0, len(k), 2):
            scores = q @ k[start : start + 2].mT * scale
            larger = torch.maximum(top, scores.amax(-1, keepdim=True))
            p, shrink = torch.exp(scores - larger), torch.exp(top - larger)
            total, out, top = total * shrink + p.sum(-1, keepdim=True), out * shrink + p @ v[start : start + 2], larger
        y, lse = out / total, (top + total.log()).squeeze(-1)
        ctx.save_for_backward(q, k, v, y, lse)
        ctx.mark_non_differentiable(lse)
        ctx.scale = scale
        return y, lse

    @staticmethod
    @once_differentiable
    def backward(ctx, g, _):
        q, k, v, y, lse = ctx.saved_tensors
        delta = (g * y).sum(-1, keepdim=True)
        gq, gk, gv = torch.zeros_like(q), torch.empty_like(k), torch.empty_like(v)
        for start in range(0, len(k), 2):
            at = slice(start, start + 2)
            p = torch.exp(q @ k[at].mT * ctx.scale - lse[:, None])
            gv[at] = p.mT @ g
            ds = p * (g @ v[at].mT - delta) * ctx.scale
            gq += ds @ k[at]
            gk[at] = ds.mT @ q
        return gq, gk, gv


class Causal(Function):
    """The mask is made inside; what it hides has no gradient."""

    @staticmethod
    def forward(ctx, s):
        hidden = torch.ones(s.shape[-2:], dtype=torch.bool, device=s.device).triu(1)
        p = s.masked_fill(hidden, -math.inf).softmax(-1)
        ctx.save_for_backward(p)
        return p

    @staticmethod
    def backward(ctx, g):
        (p,) = ctx.saved_tensors
        return p * (g - (p * g).sum(-1, keepdim=True))


class MaskedSoftmax(Function):
    """Rows of which everything is hidden are zero."""

    @staticmethod
    def forward(ctx, x, mask):
        p = torch.nan_to_num(x.masked_fill(~mask, -math.inf).softmax(-1), nan=0.0)
        ctx.save_for_backward(p)
        return p

    @staticmethod
    def backward(ctx, g):
        (p,) = ctx.saved_tensors
        return p * (g - (p * g).sum(-1, keepdim=True)), None


class Rotary(Function):
    """Rotates pairs; backward turns the other way, with the same Function."""

    @staticmethod
    def forward(ctx, x, angle):
        ctx.save_for_backward(x, angle)
        c, s = angle.cos(), angle.sin()
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack((a * c - b * s, a * s + b * c), -1).flatten(-2)

    @staticmethod
    def backward(ctx, g):
        x, angle = ctx.saved_tensors
        gx = Rotary.apply(g, -angle) if ctx.needs_input_grad[0] else None
        if not ctx.needs_input_grad[1]:
            return gx, None
        y = Rotary.apply(x, angle)
        return gx, (g[..., 1::2] * y[..., 0::2] - g[..., 0::2] * y[..., 1::2]).sum_to_size(angle.shape)


class LinearAttention(Function):
    """Positive features, and a sum over all keys."""

    @staticmethod
    def forward(ctx, q, k, v):
        ctx.save_for_backward(q, k, v)
        return q @ (k.mT @ v)

    @staticmethod
    def backward(ctx, g):
        q, k, v = ctx.saved_tensors
        state, back = k.mT @ v, q.mT @ g
        return g @ state.mT, v @ back.mT, k @ back


class Alibi(Function):
    """Adds a bias by distance with a slope for each head."""

    @staticmethod
    def forward(ctx, s, slope):
        i = torch.arange(s.shape[-1], device=s.device, dtype=s.dtype)
        ctx.save_for_backward((i[None] - i[:, None]).abs())
        return s - slope[:, None, None] * (i[None] - i[:, None]).abs()

    @staticmethod
    def backward(ctx, g):
        (distance,) = ctx.saved_tensors
        return g, -(g * distance).sum((-1, -2))


class Multihead(Function):
    """Heads by reshape and transpose: results and gradients are not contiguous."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return (x @ w).reshape(*x.shape[:-1], 2, -1).transpose(-2, -3)

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        g = g.transpose(-2, -3).flatten(-2)
        return g @ w.mT, torch.einsum("bni,bno->io", x, g)


class SoftCap(Function):
    @staticmethod
    def forward(ctx, x, cap):
        ctx.save_for_backward(x)
        ctx.cap = cap
        return cap * torch.tanh(x / cap)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g / torch.cosh(x / ctx.cap) ** 2, None


_N = {"n": (1, 2, 3), "m": (1, 2, 5), "d": (1, 2, 4), "e": (1, 2)}
_QKV = ("float[n,d]", "float[m,d]", "float[m,e]")

DECLARATIONS = (
    Declaration(Attention, *_QKV, sizes=_N, reference=_plain),
    Declaration(Flash, *_QKV, sizes=_N, once=True),
    Declaration(Causal, "float[b,n,n]"),
    Declaration(MaskedSoftmax, "float[b,n]", "bool[b,n]"),
    Declaration(Rotary, "float[b,2]", "float[b,1]"),
    Declaration(LinearAttention, "float[n,d] positive", "float[m,d] positive", "float[m,e]"),
    Declaration(Alibi, "float[h,n,n]", "float[h]"),
    Declaration(Multihead, "float[b,n,d]", "float[d,4]", sizes={"b": (1, 2), "n": (1, 3), "d": (1, 2)}),
    Declaration(SoftCap, "float[...]", "3.0 | 5.0"),
)
