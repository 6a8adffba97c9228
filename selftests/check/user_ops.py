"""Functions as users write them, right and wrong in one way each, for what checks users' Functions."""

from __future__ import annotations

import os
import signal
import time

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from autograd_conformance.harness.check import Declaration, Factory


class Scaled(Function):
    """Right."""

    @staticmethod
    def forward(ctx, x, w, k):
        ctx.save_for_backward(x, w)
        ctx.k = k
        return x * w * (k + 1)

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        gx = g * w * (ctx.k + 1) if ctx.needs_input_grad[0] else None
        gw = (g * x).sum(0) * (ctx.k + 1) if ctx.needs_input_grad[1] else None
        return gx, gw, None


class Wrong(Scaled):
    """The factor is missing in one gradient."""

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * w * (ctx.k + 1), (g * x).sum(0), None


class Rows(Function):
    """Returns each row."""

    @staticmethod
    def forward(ctx, x):
        return tuple(2 * x)

    @staticmethod
    def backward(ctx, *gs):
        return 2 * torch.stack(gs)


class Kept(Function):
    """Keeps its input as an attribute of ctx."""

    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g * ctx.x


class Leaking(Function):
    """Keeps its output as an attribute of ctx."""

    @staticmethod
    def forward(ctx, x):
        ctx.y = torch.exp(x)
        return ctx.y

    @staticmethod
    def backward(ctx, g):
        return g * ctx.y


class Detached(Function):
    """Saves an intermediate, so that second derivatives lack a term."""

    @staticmethod
    def forward(ctx, x):
        y = torch.exp(x)
        ctx.save_for_backward(y)
        return y + 1

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y


class Single(Function):
    """Refuses second derivatives."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x


class ManyGradients(Function):
    """Returns a gradient too many, so that backward always raises."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2, g


class Rounded(Function):
    """A straight-through estimator."""

    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, g):
        return g.clone()


class Overflowing(Function):
    """A sigmoid whose gradient is NaN far from 0."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sigmoid(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * torch.exp(-x) / (1 + torch.exp(-x)) ** 2


class Viewing(Function):
    """Takes contiguous inputs only, and says so."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.view(-1).sin()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return (g * x.reshape(-1).cos()).reshape(x.shape)


class Squared(Function):
    """Squares its input in place."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x.clone())
        ctx.mark_dirty(x)
        return x.mul_(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x


def crashing(x):
    """Dies of a signal, always."""
    os.kill(os.getpid(), signal.SIGSEGV)
    return x


def crashing_when_empty(x):
    """Dies of a signal where there are no elements."""
    return x * 2 if x.numel() else crashing(x)


def endless(x):
    """Never returns."""
    while True:
        time.sleep(0.1)
    return x


def nothing(x):
    """Returns nothing that could be differentiated."""
    return x.detach()


def no_tensor(x):
    """Returns no tensor."""
    return {"x": x}


def _linear(_):
    return torch.nn.Linear(3, 2, dtype=torch.float64)


scaled = Declaration(Scaled, "float[n,m]", "float[m]", "int(0..3)")
rounded = Declaration(Rounded, "float[...]", surrogate=True)
rounded_softly = Declaration(Rounded, "float[...]", soft=lambda x: x, name="RoundedSoftly")
single = Declaration(Single, "float[...]", once=True)
module = Declaration(lambda m, x: m(x), Factory(_linear), "float[n,3]", dtypes=["float64"], name="module")
dropout = Declaration(torch.nn.functional.dropout, "float[...]", "0.5", stochastic=True)
