"""Recurrent cells and units."""

from __future__ import annotations

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from autograd_conformance.harness.check import Declaration, Factory


class LstmCell(Function):
    """Four gates, two outputs."""

    @staticmethod
    def forward(ctx, gates, c):
        i, f, o, n = gates.chunk(4, -1)
        i, f, o, n = i.sigmoid(), f.sigmoid(), o.sigmoid(), n.tanh()
        new = f * c + i * n
        ctx.save_for_backward(i, f, o, n, c, new)
        return o * new.tanh(), new

    @staticmethod
    @once_differentiable
    def backward(ctx, gh, gc):
        i, f, o, n, c, new = ctx.saved_tensors
        t = new.tanh()
        gc = gc + gh * o * (1 - t * t)
        gates = (gc * n * i * (1 - i), gc * c * f * (1 - f), gh * t * o * (1 - o), gc * i * (1 - n * n))
        return torch.cat(gates, -1), gc * f


class GruMix(Function):
    @staticmethod
    def forward(ctx, z, n, h):
        ctx.save_for_backward(z, n, h)
        s = torch.sigmoid(z)
        return s * h + (1 - s) * n

    @staticmethod
    def backward(ctx, g):
        z, n, h = ctx.saved_tensors
        s = torch.sigmoid(z)
        return g * (h - n) * s * (1 - s), g * (1 - s), g * s


class Elman(Function):
    """Backpropagation through time, with states in one saved buffer."""

    @staticmethod
    def forward(ctx, x, w):
        states = x.new_zeros(len(x) + 1, *x.shape[1:])
        for t in range(len(x)):
            states[t + 1] = torch.tanh(x[t] + states[t] @ w)
        ctx.save_for_backward(states, w)
        return states[1:].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        states, w = ctx.saved_tensors
        gx, gw, carry = torch.empty_like(g), torch.zeros_like(w), torch.zeros_like(states[0])
        for t in range(len(g) - 1, -1, -1):
            inner = (g[t] + carry) * (1 - states[t + 1] ** 2)
            gx[t] = inner
            gw += states[t].mT @ inner
            carry = inner @ w.mT
        return gx, gw


class Glu(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        a, b = x.chunk(2, -1)
        return a * b.sigmoid()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        a, b = x.chunk(2, -1)
        s = b.sigmoid()
        return torch.cat((g * s, g * a * s * (1 - s)), -1)


class Linear(Function):
    """With a weight, a bias that may be missing, and gradients only where they are needed."""

    @staticmethod
    def forward(ctx, x, w, b):
        ctx.save_for_backward(x, w)
        y = x @ w.mT
        return y if b is None else y + b

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        need = ctx.needs_input_grad
        return g @ w if need[0] else None, g.mT @ x if need[1] else None, g.sum(0) if need[2] else None


class Scale(torch.nn.Module):
    """A layer with a weight, which calls a Function."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(3, dtype=torch.float64))

    def forward(self, x):
        return Linear.apply(x, self.weight[None], None)


def _layer(module, x):
    return module(x)


class Moving(Function):
    """An exponential moving average of a given state; the state is a constant."""

    @staticmethod
    def forward(ctx, x, state):
        return 0.75 * state + 0.25 * x

    @staticmethod
    def backward(ctx, g):
        return 0.25 * g, None


class Highway(Function):
    @staticmethod
    def forward(ctx, x, t):
        ctx.save_for_backward(x, t)
        return x + t.sigmoid() * (x.tanh() - x)

    @staticmethod
    def backward(ctx, g):
        x, t = ctx.saved_tensors
        s, y = t.sigmoid(), x.tanh()
        return g * (1 - s * y * y), g * (y - x) * s * (1 - s)


_T = {"t": (1, 2, 3), "b": (1, 2), "n": (1, 2)}

DECLARATIONS = (
    Declaration(LstmCell, "float[b,8]", "float[b,2]", once=True),
    Declaration(GruMix, "float[b,n]", "float[b,n]", "float[b,n]"),
    Declaration(Elman, "float[t,b,n]", "float[n,n]", once=True, sizes=_T),
    Declaration(Glu, "float[...,4]", reference=torch.nn.functional.glu),
    Declaration(Linear, "float[b,n]", "float[m,n]", "float[m]?", name="Affine"),
    Declaration(_layer, Factory(lambda _: Scale()), "float[b,3]", dtypes=["float64"], name="Layer"),
    Declaration(Moving, "float[...]", "float[...] constant"),
    Declaration(Highway, "float[n]", "float[n]"),
)
