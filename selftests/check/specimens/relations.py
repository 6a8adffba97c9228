"""Functions of which a declaration promises something about other calls: right ones, and such that break the promise.

Most wrong ones have a backward that is the derivative of their forward: nothing except the promise shows the fault.
"""

from __future__ import annotations

import torch

from autograd_conformance.harness.check import Declaration
from autograd_conformance.selftests.check.specimens import right, whole, wrong

INDEPENDENT, AXIS, SYMMETRIC = "DECL-INDEPENDENT", "DECL-AXIS", "DECL-SYMMETRIC"


class Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dim):
        y = torch.softmax(x, dim)
        ctx.save_for_backward(y)
        ctx.dim = dim
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return y * (g - (g * y).sum(ctx.dim, keepdim=True)), None


class SoftmaxOfPositive(Softmax):
    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return y * (g - (g * y).sum(max(ctx.dim, 0), keepdim=True)), None


class SoftmaxLeaking(Softmax):
    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return y * (g - (g * y).sum()), None


class Cumsum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dim):
        ctx.dim = dim
        return x.cumsum(dim)

    @staticmethod
    def backward(ctx, g):
        return g.flip(ctx.dim).cumsum(ctx.dim).flip(ctx.dim), None


class CumsumOfLast(Cumsum):
    @staticmethod
    def backward(ctx, g):
        return g.flip(-1).cumsum(ctx.dim).flip(-1), None


class Weighted(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * w, (g * x).sum(0)


class WeightedByFirst(Weighted):
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * w, (g * x)[:1].sum(0)


class Rows(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        rows = [torch.tanh(row) for row in x]
        y = torch.stack(rows) if rows else x.clone()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * (1 - y * y)


class RowsInOneBuffer(Rows):
    @staticmethod
    def forward(ctx, x):
        buffer, y = torch.empty_like(x[:1].sum(0)), torch.empty_like(x)
        for n in range(len(x)):
            torch.tanh(x[n], out=buffer)
            y[n] = buffer
        ctx.save_for_backward(buffer)
        return y


def layer_norm(x, w, b):
    return torch.nn.functional.layer_norm(x, (x.shape[-1],), w, b)


def layer_norm_of_columns(x, w, b):
    centred = x - x.mean(0, keepdim=True)
    return centred / (centred.square().mean(0, keepdim=True) + 1e-5).sqrt() * w + b


def attention(q, k, v, lengths):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    padded = torch.arange(k.shape[1]) >= lengths[:, None]
    return torch.softmax(scores.masked_fill(padded[:, None], float("-inf")), -1) @ v


def attention_to_the_longest(q, k, v, lengths):
    return attention(q, k, v, lengths.amax().expand(len(lengths)) if len(lengths) else lengths)


def masked_mean(x, mask):
    return (x * mask).sum(-1) / mask.sum(-1).clamp(min=1)


def masked_mean_of_all(x, mask):
    return (x * mask).sum(-1) / mask.sum().clamp(min=1)


def scan(a, x, dim):
    h, found = torch.zeros_like(x.select(dim, 0)) if x.shape[dim] else None, []
    for u, y in zip(a.unbind(dim), x.unbind(dim), strict=True):
        h = torch.tanh(u) * h + y
        found.append(h)
    return torch.stack(found, dim) if found else x * a


def scan_of_positive(a, x, dim):
    return scan(a, x, max(dim, 0))


def pooled(x, lengths):
    kept = torch.arange(x.shape[1]) < lengths[:, None]
    return torch.where(kept, x, 0.0).sum(1) / lengths.clamp(min=1)


def pooled_one_more(x, lengths):
    kept = torch.arange(x.shape[1]) <= lengths[:, None]
    return torch.where(kept, x, 0.0).sum(1) / lengths.amax(0, keepdim=True).clamp(min=1)


def scaled(x):
    return torch.sin(x)


def scaled_without_last(x):
    return torch.cat((torch.sin(x[:-1]), x[-1:]))


def scaled_third_row(x):
    factor = torch.ones(len(x), 1, dtype=x.dtype)
    factor[2:3] = 1.01
    return torch.sin(x) * factor


def scaled_in_blocks(x):
    return torch.cat((torch.sin(x[:16]), 1.5 * torch.sin(x[16:])))


def scaled_after_others(x):
    return torch.sin(x) + 1e-4 * torch.cat((torch.zeros_like(x[:1]), x[:-1]))


def normalised(x, dim):
    return torch.logsumexp(x, dim) / x.shape[dim] ** 0.5


def normalised_of_last(x, dim):
    return torch.logsumexp(x, dim) / x.shape[-1] ** 0.5


def distance(a, b):
    return (1 + (a - b).square().sum(-1)).sqrt()


def distance_of_above(a, b):
    return (1 + (a - b).relu().square().sum(-1)).sqrt()


class Cross(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return torch.linalg.cross(a, b)

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return torch.linalg.cross(b, g), torch.linalg.cross(g, a)


class CrossOfSameSign(Cross):
    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return torch.linalg.cross(b, g), torch.linalg.cross(a, g)


def commutator(a, b):
    return a @ b - b @ a


def commutator_of_halves(a, b):
    return a @ b - 0.5 * (b @ a)


def triple(a, b, c):
    return (a * b * c).sum(-1) + a.sum(-1) + b.sum(-1) + c.sum(-1)


def triple_of_two(a, b, c):
    return (a * b * c).sum(-1) + a.sum(-1) + b.sum(-1) + 2 * c.sum(-1)


class MeanOfGroups(torch.autograd.Function):
    """The second output, how many members a group has, has no columns; the third is the same for each."""

    @staticmethod
    def forward(ctx, x, w, group):
        count = torch.bincount(group, minlength=len(w))
        share = 1 / count.clamp(min=1).to(x.dtype)
        ctx.save_for_backward(group, share, w)
        ctx.mark_non_differentiable(count)
        sums = torch.zeros(len(w), x.shape[1], dtype=x.dtype).index_add(0, group, x)
        return sums * share[:, None], count, torch.sin(w)

    @staticmethod
    def backward(ctx, g, _, h):
        group, share, w = ctx.saved_tensors
        return (g * share[:, None])[group], h * torch.cos(w), None


class MeanOfGroupsTwice(MeanOfGroups):
    """A backward that sees the columns of another output."""

    @staticmethod
    def backward(ctx, g, _, h):
        gx, gw, _ = MeanOfGroups.backward(ctx, g, _, h)
        return gx, gw * (1 + 0.5 * (g.shape[1] > 1)), None


class MeanOfColumns(MeanOfGroups):
    """An output without the columns that differs between them."""

    @staticmethod
    def forward(ctx, x, w, group):
        means, count, sine = MeanOfGroups.forward(ctx, x, w, group)
        return means, count + (x[:, 0] > x[:, -1]).sum(), sine


def rotated(z, w):
    return z * torch.tanh(w)


def rotated_to_the_mean(z, w):
    return z * torch.tanh(w) + 1e-3 * z.mean()


def multiplied(a, b):
    return a @ b


def multiplied_by_first(a, b):
    return a @ b[:1] + 0 * (a @ b)


def _declared(functions, described, **promised):
    return [Declaration(function, *described, **promised) for function in functions]


_SCALED = (scaled, scaled_without_last, scaled_third_row, scaled_in_blocks, scaled_after_others)
_ATTENTION = ("float[b,m,d]", "float[b,n,d]", "float[b,n,d]", "int[b](1..n)")
_MATRICES = ("number[...,n,n]", "number[...,n,n]")
_PRODUCT = ("float[b,n,m]", "float[b,m,k]")
_PAIR = ("float[b,n]", "float[b,n]")
_VECTORS = ("float[b,3]", "float[b,3]")
_NORM = ("float[b,n]", "float[n]", "float[n]")
_GROUPED = ("float[b,n]", "float[k]", "int[b](0..k-1)")
_GROUPINGS = (MeanOfGroups, MeanOfGroupsTwice, MeanOfColumns)
_SHORT = {"n": (1, 2), "m": (1, 3), "k": (2,)}

# The right Function first, then the wrong ones, by the property that these break.
_GROUPS = {
    AXIS: [
        _declared((Softmax, SoftmaxOfPositive), ("float[...]", "axis"), independent="..."),
        _declared((Cumsum, CumsumOfLast), ("float[n,m]", "axis")),
        _declared((scan, scan_of_positive), ("float[...]", "float[...]", "axis")),
        _declared((normalised, normalised_of_last), ("float[...,n]", "axis"), sizes={"n": (1, 2, 3)}),
    ],
    INDEPENDENT: [
        _declared((Softmax, SoftmaxLeaking), ("float[b,n]", "-1 | 1"), independent="b"),
        _declared((Weighted, WeightedByFirst), ("float[b,n]", "float[n]"), independent=("b", "n")),
        _declared((Rows, RowsInOneBuffer), ("float[b,n]",), independent="b", sizes={"n": (1, 3)}),
        _declared((layer_norm, layer_norm_of_columns), _NORM, independent="b", sizes={"n": (2, 5)}),
        _declared((attention, attention_to_the_longest), _ATTENTION, independent=("b", "m"), sizes={"d": (1, 3)}),
        _declared((masked_mean, masked_mean_of_all), ("float[b,n]", "float[b,n] binary"), independent="b"),
        _declared((pooled, pooled_one_more), ("float[b,n]", "int[b](0..n)"), independent="b"),
        _declared(_SCALED, ("float[b,n]",), independent="b"),
        _declared((rotated, rotated_to_the_mean), ("complex[n]", "float[n]"), independent="n"),
        _declared(_GROUPINGS, _GROUPED, independent="n"),
        _declared((multiplied, multiplied_by_first), _PRODUCT, independent="b", sizes=_SHORT),
    ],
    SYMMETRIC: [
        _declared((distance, distance_of_above), _PAIR, symmetric=(0, 1), independent="b"),
        _declared((Cross, CrossOfSameSign), _VECTORS, antisymmetric=(0, 1), independent="b"),
        _declared((commutator, commutator_of_halves), _MATRICES, antisymmetric=(0, 1), independent="..."),
        _declared((triple, triple_of_two), ("float[n]",) * 3, symmetric=(0, 1, 2)),
    ],
}

RIGHT = [declared[0] for groups in _GROUPS.values() for declared in groups]
WRONG = [
    (wrong, property_id, declared[0])
    for property_id, groups in _GROUPS.items()
    for declared in groups
    for wrong in declared[1:]
]

# With masks, lengths, complex numbers and an axis.
_OF_EACH_KIND = [d for d in RIGHT if d.name in ("masked_mean", "pooled", "rotated", "normalised")]
_OTHERS = "FWD-VALUE FWD-LAYOUT VJP-REF VJP-FD VJP-CHAIN DBL-CORRECT"
_SAME_SIGN = next(d for d, _, _ in WRONG if d.name == "CrossOfSameSign")


def _of_two_by_mistake(x):
    if len(x) > 1:
        sine = x.sin()
    return sine


SPECIMENS = (
    *(
        right(f"{d.name} as promised ({n})", " ".join(f"{name}*" for name in d.relations), d, taken=True)
        for n, d in enumerate(RIGHT)
    ),
    *(right(d.name, _OTHERS, d) for d in _OF_EACH_KIND),
    *map(whole, _OF_EACH_KIND),
    # A fault of the gradient is the cause.
    wrong("a gradient of the same sign", "DECL-SYMMETRIC", _SAME_SIGN, tests="DECL-SYMMETRIC*", shrink=True,
          exactly={"follows": "VJP-FD"}),
    # A mistake in a slice is no refusal.
    wrong("a mistake in a slice", "DECL-INDEPENDENT", _of_two_by_mistake, "float[b,n]", independent="b",
          sizes={"b": (2, 3), "n": (1, 2)}, word="raises", says="UnboundLocalError"),
)  # fmt: skip
