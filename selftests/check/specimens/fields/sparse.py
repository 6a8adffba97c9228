"""Gathering, scattering, segments, and sparse matrices given by their parts."""

from __future__ import annotations

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from autograd_conformance.harness.check import Declaration


class EmbeddingBag(Function):
    """Sums the rows of each bag; an index of padding has no gradient."""

    @staticmethod
    def forward(ctx, index, table):
        ctx.save_for_backward(index)
        ctx.shape = table.shape
        keep = (index != 0).to(table.dtype)
        return (table[index] * keep[..., None]).sum(1)

    @staticmethod
    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        rows = (g[:, None] * (index != 0).to(g.dtype)[..., None]).flatten(0, 1)
        return None, g.new_zeros(ctx.shape).index_add(0, index.flatten(), rows)


class Gathered(Function):
    @staticmethod
    def forward(ctx, x, index):
        ctx.save_for_backward(index)
        ctx.shape = x.shape
        return x.gather(-1, index)

    @staticmethod
    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        return g.new_zeros(ctx.shape).scatter_add(-1, index, g), None


class SegmentSum(Function):
    """Into three segments."""

    @staticmethod
    def forward(ctx, x, segment):
        ctx.save_for_backward(segment)
        return x.new_zeros(3, x.shape[1]).index_add(0, segment, x)

    @staticmethod
    def backward(ctx, g):
        (segment,) = ctx.saved_tensors
        return g[segment], None


class SegmentMean(Function):
    """Empty segments are 0."""

    @staticmethod
    def forward(ctx, x, segment):
        count = torch.bincount(segment, minlength=3).clamp(min=1)
        ctx.save_for_backward(segment, count)
        return x.new_zeros(3).index_add(0, segment, x) / count

    @staticmethod
    def backward(ctx, g):
        segment, count = ctx.saved_tensors
        return (g / count)[segment], None


class SegmentMax(Function):
    """The first of the largest has the gradient; empty segments are 0."""

    @staticmethod
    def forward(ctx, x, segment):
        top = x.new_full((3,), -torch.inf).scatter_reduce(0, segment, x, "amax")
        place = torch.arange(len(x), device=x.device)
        none = torch.full((3,), len(x), device=x.device)
        first = none.scatter_reduce(0, segment, torch.where(x == top[segment], place, len(x)), "amin")
        ctx.save_for_backward(first)
        ctx.n = len(x)
        return torch.where(first < len(x), top, 0)

    @staticmethod
    def backward(ctx, g):
        (first,) = ctx.saved_tensors
        return g.new_zeros(ctx.n + 1).index_add(0, first, g)[:-1], None


class SegmentSoftmax(Function):
    """As in attention on graphs."""

    @staticmethod
    def forward(ctx, x, segment):
        top = x.new_full((3,), -torch.inf).scatter_reduce(0, segment, x, "amax")
        e = torch.exp(x - top[segment])
        y = e / x.new_zeros(3).index_add(0, segment, e)[segment]
        ctx.save_for_backward(y, segment)
        return y

    @staticmethod
    def backward(ctx, g):
        y, segment = ctx.saved_tensors
        inner = torch.zeros(3, dtype=g.dtype, device=g.device).index_add(0, segment, g * y)
        return y * (g - inner[segment]), None


class Coordinate(Function):
    """A sparse matrix by rows, columns and values, times a matrix."""

    @staticmethod
    def forward(ctx, row, col, value, x):
        ctx.save_for_backward(row, col, value, x)
        return x.new_zeros(3, x.shape[1]).index_add(0, row, value[:, None] * x[col])

    @staticmethod
    def backward(ctx, g):
        row, col, value, x = ctx.saved_tensors
        gx = torch.zeros_like(x).index_add(0, col, value[:, None] * g[row])
        return None, None, (g[row] * x[col]).sum(-1), gx


class GraphConvolution(Function):
    """Normalised by degrees, which are constants."""

    @staticmethod
    def forward(ctx, x, adjacency):
        a = adjacency | adjacency.mT | torch.eye(len(x), dtype=torch.bool, device=x.device)
        d = a.sum(1).to(x.dtype).rsqrt()
        a = a * d[:, None] * d
        ctx.save_for_backward(a)
        return a @ x

    @staticmethod
    def backward(ctx, g):
        (a,) = ctx.saved_tensors
        return a @ g, None


class Scattered(Function):
    """Puts values into a copy; the last of equal indices is not defined, so they are a permutation."""

    @staticmethod
    def forward(ctx, x, order, values):
        ctx.save_for_backward(order)
        ctx.split = x.shape
        return x.clone().index_copy(0, order, values)

    @staticmethod
    def backward(ctx, g):
        (order,) = ctx.saved_tensors
        return None, None, g[order]


class Masked(Function):
    """What a mask chooses, in a result of the same shape."""

    @staticmethod
    def forward(ctx, x, mask, fill):
        ctx.save_for_backward(mask)
        return torch.where(mask, x, fill)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        (mask,) = ctx.saved_tensors
        return g.masked_fill(~mask, 0), None, g.masked_fill(mask, 0).sum()


DECLARATIONS = (
    Declaration(EmbeddingBag, "int[b,k](0..n-1)", "float[n,d]"),
    Declaration(Gathered, "number[b,n]", "int[b,k](0..n-1)"),
    Declaration(SegmentSum, "number[n,d]", "int[n](0..2)"),
    Declaration(SegmentMean, "float[n]", "int[n](0..2)"),
    Declaration(SegmentMax, "float[n]", "int[n](0..2)"),
    Declaration(SegmentSoftmax, "float[n]", "int[n](0..2)"),
    Declaration(Coordinate, "int[k](0..2)", "int[k](0..m-1)", "float[k]", "float[m,d]"),
    Declaration(GraphConvolution, "float[n,d]", "bool[n,n]"),
    Declaration(Scattered, "float[n,d]", "permutation[n]", "float[n,d]"),
    Declaration(Masked, "float[n,m]", "bool[n,m]", "float[]", once=True),
)
