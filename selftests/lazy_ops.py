"""Functions that do not take tensors which are negated or conjugated lazily, some of them rightly."""

from __future__ import annotations

import numpy as np
import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class Sine(Function):
    """Right."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0].conj().cos()


# What forward refuses.


class ThroughNumPy(Sine):
    """forward refuses them by an exception of the framework. Right."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.as_tensor(np.sin(x.detach().numpy()))


class RefusedInWords(Sine):
    """forward refuses them in its own words. Right."""

    @staticmethod
    def forward(ctx, x):
        if x.is_neg() or x.is_conj():
            raise RuntimeError("neither negated nor conjugated tensors")
        return Sine.forward(ctx, x)


class NewInForward(Sine):
    """forward calls a method of the framework that knows no such tensors. Right."""

    @staticmethod
    def forward(ctx, x):
        return Sine.forward(ctx, x) * x.new_tensor(1.0)


# What forward accepted.


class ThroughNumPyInBackward(Sine):
    """backward takes no such cotangent."""

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x = ctx.saved_tensors[0].conj().resolve_conj().resolve_neg()
        return torch.from_numpy(g.numpy() * np.cos(x.numpy()))


class NewInBackward(Sine):
    """backward takes no such saved tensor."""

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        return Sine.backward(ctx, g) * ctx.saved_tensors[0].new_tensor(1.0)


class _SineSlope(Function):
    """x.cos() * g, whose backward takes no x that is negated lazily."""

    @staticmethod
    def forward(ctx, x, g):
        ctx.save_for_backward(x, g)
        return x.cos() * g

    @staticmethod
    def backward(ctx, h):
        x, g = ctx.saved_tensors
        return -torch.from_numpy(np.sin(x.detach().numpy())) * g * h, x.cos() * h


class ThroughNumPyTwice(Sine):
    """The second derivative takes no such tensor, the first one does."""

    @staticmethod
    def backward(ctx, g):
        return _SineSlope.apply(ctx.saved_tensors[0], g)


class RefusesOneReadsTheOther(Function):
    """x.sin() * w. forward refuses such an x, and takes the memory of such a w for its numbers."""

    @staticmethod
    def forward(ctx, x, w):
        sine = torch.as_tensor(np.sin(x.detach().numpy()), dtype=x.dtype)
        w = -w if w.is_neg() else w
        ctx.save_for_backward(x, w)
        return sine * w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * x.cos() * w, g * x.sin()


# What is read wrongly.


class ReadAsStored(Sine):
    """The memory of a contiguous tensor is read, as a kernel does through data_ptr()."""

    @staticmethod
    def forward(ctx, x):
        x = _stored(x.contiguous())
        ctx.save_for_backward(x)
        return x.sin()


class CotangentReadAsStored(Sine):
    """backward alone does so, with the cotangent."""

    @staticmethod
    def backward(ctx, g):
        return Sine.backward(ctx, _stored(g.contiguous()))


class ReadInOneOrder(Sine):
    """The memory is read in one order, whatever the layout."""

    @staticmethod
    def forward(ctx, x):
        x = _stored(x).as_strided(x.shape, x.contiguous().stride())
        ctx.save_for_backward(x)
        return x.sin()


def _stored(x):
    """The tensor without the bits that negate and conjugate it."""
    x = -x if x.is_neg() else x
    return x.conj().resolve_conj() if x.is_conj() else x
