"""Scans and cumulative operations."""

from __future__ import annotations

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from autograd_conformance.harness.check import Declaration


class CumulativeSum(Function):
    """Forward and backward are the same scan, so its backward is the Function itself turned around."""

    @staticmethod
    def forward(ctx, x, dim):
        ctx.dim = dim
        return x.cumsum(dim)

    @staticmethod
    def backward(ctx, g):
        return CumulativeSum.apply(g.flip(ctx.dim), ctx.dim).flip(ctx.dim), None


class CumulativeProduct(Function):
    """Without a division, so right at zeros as well."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.cumprod(-1)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        columns = []
        for i in range(x.shape[-1]):
            # The products without factor i.
            before = x[..., :i].prod(-1, keepdim=True)
            after = torch.cat((torch.ones_like(before), x[..., i + 1 :]), -1).cumprod(-1)
            columns.append((g[..., i:] * before * after).sum(-1))
        return torch.stack(columns, -1) if columns else g


class CumulativeMax(Function):
    @staticmethod
    def forward(ctx, x):
        y, i = x.cummax(-1)
        ctx.save_for_backward(i)
        ctx.mark_non_differentiable(i)
        return y, i

    @staticmethod
    def backward(ctx, g, _):
        (i,) = ctx.saved_tensors
        return torch.zeros_like(g).scatter_add(-1, i, g)


class LinearRecurrence(Function):
    """h = a h + x, the first gradient scan of state space models."""

    @staticmethod
    def forward(ctx, a, x):
        h, state = [], torch.zeros_like(x[..., 0]) if x.shape[-1] else None
        for t in range(x.shape[-1]):
            state = a[..., t] * state + x[..., t]
            h.append(state)
        y = torch.stack(h, -1) if h else torch.zeros_like(x)
        ctx.save_for_backward(a, y)
        return y

    @staticmethod
    def backward(ctx, g):
        a, y = ctx.saved_tensors
        steps, carry = [], torch.zeros_like(g[..., :1])
        for t in reversed(range(g.shape[-1])):
            carry = carry + g[..., t : t + 1]
            steps.append(carry)
            carry = carry * a[..., t : t + 1]
        gx = torch.cat(steps[::-1], -1) if steps else torch.zeros_like(g)
        shifted = torch.cat((torch.zeros_like(y[..., :1]), y[..., :-1]), -1)
        return gx * shifted, gx


class CumulativeLogSumExp(Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.logcumsumexp(x, -1)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        # Each term exp(x_i - y_j) for i <= j is at most 1.
        weights = torch.exp((x.unsqueeze(-1) - y.unsqueeze(-2)).triu().clamp(max=0)).triu()
        return (weights * g.unsqueeze(-2)).sum(-1)


class Smoothing(Function):
    """Exponential smoothing in NumPy, there and back."""

    @staticmethod
    def forward(ctx, x, alpha):
        ctx.alpha = alpha
        y = x.detach().resolve_neg().cpu().numpy().copy()
        for t in range(1, y.shape[-1]):
            y[..., t] = (1 - alpha) * y[..., t - 1] + alpha * y[..., t]
        return torch.as_tensor(y, dtype=x.dtype, device=x.device)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        a, out = ctx.alpha, g.resolve_neg().cpu().numpy().copy()
        for t in range(out.shape[-1] - 1, 0, -1):
            out[..., t - 1] += (1 - a) * out[..., t]
            out[..., t] *= a
        return torch.as_tensor(out, dtype=g.dtype, device=g.device), None


class Discounted(Function):
    """Discounted returns: the buffer of the gradient is its own, and changed in place."""

    @staticmethod
    def forward(ctx, r, gamma):
        ctx.gamma = gamma
        y = r.clone()
        for t in range(r.shape[-1] - 2, -1, -1):
            y[..., t] += gamma * y[..., t + 1]
        return y

    @staticmethod
    def backward(ctx, g):
        out = g.clone()
        for t in range(1, g.shape[-1]):
            out[..., t] += ctx.gamma * out[..., t - 1]
        return out, None


class Differences(Function):
    @staticmethod
    def forward(ctx, x):
        return x.diff(dim=-1)

    @staticmethod
    def backward(ctx, g):
        edge = torch.zeros_like(g[..., :1])
        return (
            torch.cat((edge, g), -1) - torch.cat((g, edge), -1) if g.shape[-1] else edge.new_zeros((*g.shape[:-1], 1))
        )


class WindowMean(Function):
    """Overlapping windows of three, made with unfold."""

    @staticmethod
    def forward(ctx, x):
        ctx.length = x.shape[-1]
        return x.unfold(-1, 3, 1).mean(-1)

    @staticmethod
    def backward(ctx, g):
        pieces = [torch.nn.functional.pad(g, (k, 2 - k)) for k in range(3)]
        return sum(pieces) / 3


_T = {"b": (1, 2), "t": (1, 2, 3, 6)}

DECLARATIONS = (
    Declaration(CumulativeSum, "number[n,m]", "0 | 1 | -1", reference=torch.cumsum),
    Declaration(CumulativeProduct, "float[b,t]", sizes=_T, reference=lambda x: x.cumprod(-1)),
    Declaration(CumulativeMax, "float[b,t]", sizes=_T),
    Declaration(LinearRecurrence, "float[b,t]", "float[b,t]", sizes=_T),
    Declaration(CumulativeLogSumExp, "float[b,t]", sizes=_T),
    Declaration(Smoothing, "float[b,t]", "0.25 | 0.5", once=True, sizes=_T),
    Declaration(Discounted, "float[b,t]", "0.5 | 1.0", sizes=_T),
    Declaration(Differences, "number[b,t]", sizes=_T),
    Declaration(WindowMean, "float[b,t]", sizes={"b": (1, 2), "t": (3, 5)}),
)
