"""Habits that look like faults and are none."""

from __future__ import annotations

import numpy as np
import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from autograd_conformance.harness.check import Declaration


class Frugal(Function):
    """Saves only what the gradients that are needed need."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(y if ctx.needs_input_grad[0] else None, x if ctx.needs_input_grad[1] else None)
        return x * y

    @staticmethod
    def backward(ctx, g):
        y, x = ctx.saved_tensors
        return None if y is None else g * y, None if x is None else g * x


class Tabled(Function):
    """Keeps a table for each length, dtype and device, for good."""

    TABLES = {}  # noqa: RUF012

    @staticmethod
    def _table(like):
        key = like.shape[-1], like.dtype, like.device
        if key not in Tabled.TABLES:
            n = torch.arange(like.shape[-1], dtype=torch.float64)
            Tabled.TABLES[key] = torch.cos(n[:, None] * n).to(like)
        return Tabled.TABLES[key]

    @staticmethod
    def forward(ctx, x):
        return x @ Tabled._table(x)

    @staticmethod
    def backward(ctx, g):
        return g @ Tabled._table(g).mT


class InnerGraph(Function):
    """Keeps a graph of its own from forward to backward."""

    @staticmethod
    def forward(ctx, x):
        with torch.enable_grad():
            ctx.inner = x.detach().requires_grad_()
            ctx.outer = torch.sin(ctx.inner) * ctx.inner
        return ctx.outer.detach().clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        return torch.autograd.grad(ctx.outer, ctx.inner, g, retain_graph=True)[0]


class PassedOn(Function):
    """Returns its argument itself, and the product."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x, x * y

    @staticmethod
    def backward(ctx, a, b):
        x, y = ctx.saved_tensors
        return a + b * y, b * x


class ExpandedResult(Function):
    """Its result is one number, expanded."""

    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x.mean().expand(3)

    @staticmethod
    def backward(ctx, g):
        return (g.sum() / max(ctx.shape.numel(), 1)).expand(ctx.shape)


class PartOfBuffer(Function):
    """Its result is a part of a buffer that it saves."""

    @staticmethod
    def forward(ctx, x):
        buffer = torch.cat((torch.zeros_like(x[:1]), x.cumsum(0).tanh()))
        ctx.save_for_backward(buffer)
        return buffer[1:]

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        y = ctx.saved_tensors[0][1:]
        return (g * (1 - y * y)).flip(0).cumsum(0).flip(0)


class Chosen(Function):
    """The shape of its result depends on a mask."""

    @staticmethod
    def forward(ctx, x, mask):
        ctx.save_for_backward(mask)
        return x[mask]

    @staticmethod
    def backward(ctx, g):
        (mask,) = ctx.saved_tensors
        return g.new_zeros(mask.shape).masked_scatter(mask, g), None


class Floor(Function):
    """Its gradient is zero."""

    @staticmethod
    def forward(ctx, x):
        return x.floor()

    @staticmethod
    def backward(ctx, g):
        return torch.zeros_like(g)


class Fraction(Function):
    """Jumps at whole numbers."""

    @staticmethod
    def forward(ctx, x):
        return x - x.floor()

    @staticmethod
    def backward(ctx, g):
        return g


class CubeBackward(Function):
    @staticmethod
    def forward(ctx, x, g):
        ctx.save_for_backward(x, g)
        return 3 * x * x * g

    @staticmethod
    def backward(ctx, h):
        x, g = ctx.saved_tensors
        return 6 * x * g * h, 3 * x * x * h


class CubeInPair(Function):
    """Its backward is a Function with a backward of its own."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        return CubeBackward.apply(*ctx.saved_tensors, g)


class Trailing(Function):
    """Returns more Nones than it has arguments."""

    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g, None, None


class Summed(Function):
    """Any number of arguments."""

    @staticmethod
    def forward(ctx, *xs):
        ctx.count = len(xs)
        return sum((k + 1) * x for k, x in enumerate(xs))

    @staticmethod
    def backward(ctx, g):
        return tuple((k + 1) * g for k in range(ctx.count))


class LeftToTheEngine(Function):
    """Returns a gradient in single precision at least, and of the broadcast shape: the engine casts and sums."""

    @staticmethod
    def forward(ctx, x, b):
        return 2 * x + b

    @staticmethod
    def backward(ctx, g):
        wide = g if g.dtype == torch.float64 else g.float()
        return 2 * wide, wide


class WithoutTensor(Function):
    """One of its results is a number, and one None."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.square(), x.ndim, None

    @staticmethod
    def backward(ctx, g, *_):
        (x,) = ctx.saved_tensors
        return 2 * g * x


class PackedBits(Function):
    """Keeps a mask in NumPy, eight bits to a byte."""

    @staticmethod
    def forward(ctx, x):
        ctx.bits, ctx.shape = np.packbits((x > 0).cpu().numpy()), x.shape
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx, g):
        mask = np.unpackbits(ctx.bits, count=ctx.shape.numel()).reshape(ctx.shape).astype(bool)
        return g * torch.from_numpy(mask).to(g.device)


class Lasting(Function):
    """Keeps a closure on ctx."""

    @staticmethod
    def forward(ctx, x, k):
        ctx.pull = lambda g: g * k
        return x * k

    @staticmethod
    def backward(ctx, g):
        return ctx.pull(g), None


class Constant(Function):
    """Does not depend on its second argument, and says zeros."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.shape = y.shape
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g, g.new_zeros(ctx.shape)


class LastInMemory(Function):
    """Gives its result with the channels last."""

    @staticmethod
    def forward(ctx, x):
        return (2 * x).contiguous(memory_format=torch.channels_last)

    @staticmethod
    def backward(ctx, g):
        return (2 * g).contiguous(memory_format=torch.channels_last)


class Steep(Function):
    """A slope of a million, and another of a millionth."""

    @staticmethod
    def forward(ctx, x):
        return 1e6 * x, 1e-6 * x

    @staticmethod
    def backward(ctx, a, b):
        return 1e6 * a + 1e-6 * b


class Guarded(Function):
    """Refuses what it does not take, with its own words."""

    @staticmethod
    def forward(ctx, x):
        assert x.dtype in (torch.float32, torch.float64), "single or double precision only"
        if not x.is_contiguous() or x.is_neg():
            raise ValueError("contiguous tensors only")
        ctx.save_for_backward(x)
        return x.sinh()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x.cosh()


class RootOfAny(Function):
    """NaN for negative numbers."""

    @staticmethod
    def forward(ctx, x):
        y = x.sqrt()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g / (2 * y)


class Quotient(Function):
    """Any denominator, 0 too."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x / y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g / y, -g * (x / y) / y


DECLARATIONS = (
    Declaration(Frugal, "float[n,m]", "float[n,m]"),
    Declaration(Tabled, "float[b,n]", sizes={"n": (1, 2, 4)}),
    Declaration(InnerGraph, "float[n]", once=True),
    Declaration(PassedOn, "float[n]", "float[n]"),
    Declaration(ExpandedResult, "float[n,m]"),
    Declaration(PartOfBuffer, "float[n,m]", once=True, sizes={"n": (1, 2, 4)}),
    Declaration(Chosen, "float[n,m]", "bool[n,m]"),
    Declaration(Floor, "float[...]", reference=torch.floor),
    Declaration(Fraction, "float[...]", reference=lambda x: x - x.floor()),
    Declaration(CubeInPair, "float[...]"),
    Declaration(Trailing, "float[...]"),
    Declaration(Summed, "float[n]", "float[n]", "float[n]"),
    Declaration(LeftToTheEngine, "float[n,m]", "float[m]"),
    Declaration(WithoutTensor, "float[n]"),
    Declaration(PackedBits, "float[n,m]"),
    Declaration(Lasting, "float[...]", "float(0..1)"),
    Declaration(Constant, "float[n]", "float[m]"),
    Declaration(LastInMemory, "float[n,c,h,w]"),
    Declaration(Steep, "float[n]"),
    Declaration(Guarded, "float[n,m]"),
    Declaration(RootOfAny, "float[n]"),
    Declaration(Quotient, "float[n]", "float[n]"),
)
