"""Sorting, selection and indices."""

from __future__ import annotations

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from autograd_conformance.harness.check import Declaration


class TopSum(Function):
    """The sum of the two largest elements."""

    @staticmethod
    def forward(ctx, x):
        values, index = x.topk(2, -1)
        ctx.save_for_backward(index)
        ctx.shape = x.shape
        return values.sum(-1)

    @staticmethod
    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        return g.new_zeros(ctx.shape).scatter(-1, index, g.unsqueeze(-1).expand(index.shape))


class Median(Function):
    """The lower median."""

    @staticmethod
    def forward(ctx, x):
        y, i = x.median(-1)
        ctx.save_for_backward(i)
        ctx.shape = x.shape
        return y

    @staticmethod
    def backward(ctx, g):
        (i,) = ctx.saved_tensors
        return torch.zeros(ctx.shape, dtype=g.dtype, device=g.device).scatter(-1, i.unsqueeze(-1), g.unsqueeze(-1))


class Permuted(Function):
    @staticmethod
    def forward(ctx, x, order):
        ctx.save_for_backward(order)
        return x[order]

    @staticmethod
    def backward(ctx, g):
        (order,) = ctx.saved_tensors
        return g[torch.argsort(order)], None


class SimplexProjection(Function):
    """Projects onto the probability simplex; the gradient is centred on the support."""

    @staticmethod
    def forward(ctx, x):
        u = x.sort(-1, descending=True).values
        k = torch.arange(1, x.shape[-1] + 1, dtype=x.dtype, device=x.device)
        excess = (u.cumsum(-1) - 1) / k
        count = (u > excess).sum(-1, keepdim=True)
        y = (x - excess.gather(-1, count - 1)).clamp(min=0)
        ctx.save_for_backward(y > 0)
        return y

    @staticmethod
    def backward(ctx, g):
        (support,) = ctx.saved_tensors
        s = support.to(g.dtype)
        return s * (g - (s * g).sum(-1, keepdim=True) / s.sum(-1, keepdim=True))


class TrimmedMean(Function):
    """Without the smallest and the largest."""

    @staticmethod
    def forward(ctx, x):
        y, i = x.sort(dim=-1, stable=True)
        kept = i[..., 1:-1]
        ctx.save_for_backward(kept)
        ctx.n = x.shape[-1]
        return y[..., 1:-1].mean(-1)

    @staticmethod
    def backward(ctx, g):
        (kept,) = ctx.saved_tensors
        part = (g / kept.shape[-1]).unsqueeze(-1).expand(kept.shape)
        return g.new_zeros((*g.shape, ctx.n)).scatter(-1, kept, part)


class SoftRank(Function):
    """Pairwise sigmoids; the pair of an element with itself counts one half and has no slope."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sigmoid(x.unsqueeze(-1) - x.unsqueeze(-2)).sum(-1)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x.unsqueeze(-1) - x.unsqueeze(-2))
        s = s * (1 - s)
        return g * s.sum(-1) - (s * g.unsqueeze(-1)).sum(-2)


class Winners(Function):
    """Keeps only the largest of each pair, with an index of bytes."""

    @staticmethod
    def forward(ctx, x):
        a, b = x[..., 0], x[..., 1]
        first = (a >= b).to(torch.uint8)
        ctx.save_for_backward(first)
        return torch.maximum(a, b)

    @staticmethod
    def backward(ctx, g):
        (first,) = ctx.saved_tensors
        return torch.stack((g * first, g * (1 - first)), -1)


class SoftSort(Function):
    """A convex combination for each rank, by a row softmax; differentiated by torch inside backward."""

    @staticmethod
    def _sorted(x):
        order = x.sort(-1, descending=True).values
        weights = (-(order.unsqueeze(-1) - x.unsqueeze(-2)).square()).softmax(-1)
        return (weights * x.unsqueeze(-2)).sum(-1)

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return SoftSort._sorted(x)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            return torch.autograd.grad(SoftSort._sorted(x), x, g)[0]


class Maxout(Function):
    """The mean over all ties has the gradient."""

    @staticmethod
    def forward(ctx, x):
        y = x.amax(-1)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        ties = (x == y.unsqueeze(-1)).to(g.dtype)
        return ties / ties.sum(-1, keepdim=True) * g.unsqueeze(-1)


class MaxPool(Function):
    """Pools pairs, and returns the indices as well."""

    @staticmethod
    def forward(ctx, x):
        y, i = torch.nn.functional.max_pool1d(x, 2, return_indices=True)
        ctx.save_for_backward(i)
        ctx.length = x.shape[-1]
        ctx.mark_non_differentiable(i)
        return y, i

    @staticmethod
    def backward(ctx, g, _):
        (i,) = ctx.saved_tensors
        return torch.zeros((*g.shape[:-1], ctx.length), dtype=g.dtype, device=g.device).scatter(-1, i, g)


_N = {"b": (1, 2), "n": (3, 4, 7)}

DECLARATIONS = (
    Declaration(TopSum, "float[b,n]", sizes=_N),
    Declaration(Median, "float[b,n]", sizes=_N, reference=lambda x: x.median(-1).values),
    Declaration(Permuted, "number[n,m]", "permutation[n]"),
    Declaration(SimplexProjection, "float[b,n]", sizes=_N),
    Declaration(TrimmedMean, "float[b,n]", sizes=_N),
    Declaration(SoftRank, "float[b,n]", sizes=_N),
    Declaration(Winners, "float[n,2]"),
    Declaration(SoftSort, "float[n]", once=True, sizes={"n": (1, 2, 4)}),
    Declaration(Maxout, "float[b,n]", sizes=_N, reference=lambda x: x.amax(-1)),
    Declaration(MaxPool, "float[b,c,t]", sizes={"b": (1, 2), "c": (1, 2), "t": (2, 4, 5)}),
)
