"""Implicit functions and iterations."""

from __future__ import annotations

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from autograd_conformance.harness.check import Declaration


class Kepler(Function):
    """E - e sin E = M by Newton steps, and the gradient of the implicit function."""

    @staticmethod
    def forward(ctx, m, e):
        x = m.clone()
        for _ in range(30):
            x = x - (x - e * torch.sin(x) - m) / (1 - e * torch.cos(x))
        ctx.save_for_backward(x, e)
        return x

    @staticmethod
    def backward(ctx, g):
        x, e = ctx.saved_tensors
        s = g / (1 - e * torch.cos(x))
        return s, s * torch.sin(x)


class CubeRoot(Function):
    """The real root of y**3 + y = x, saved as its output, so that it can be differentiated twice."""

    @staticmethod
    def forward(ctx, x):
        y = torch.sign(x) * torch.minimum(x.abs(), x.abs() ** (1 / 3))
        for _ in range(25):
            y = y - (y**3 + y - x) / (3 * y * y + 1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g / (3 * y * y + 1)


class ConjugateGradients(Function):
    """Solves until the residual vanishes; backward solves again with the same matrix."""

    @staticmethod
    def _solve(a, b):
        x, r = torch.zeros_like(b), b.clone()
        p, size = r, r @ r
        for _ in range(4 * len(b)):
            if size == 0:
                break
            ap = a @ p
            curve = p @ ap
            if curve <= 0:
                break
            x, r = x + size / curve * p, r - size / curve * ap
            size, before = r @ r, size
            p = r + size / before * p
        return x

    @staticmethod
    def forward(ctx, a, b):
        x = ConjugateGradients._solve(a, b)
        ctx.save_for_backward(a, x)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        a, x = ctx.saved_tensors
        gb = ConjugateGradients._solve(a, g)
        outer = torch.outer(gb, x)
        return -(outer + outer.mT) / 2, gb


class FixedPoint(Function):
    """z = tanh(z / 2 + x), a contraction; backward by the implicit function."""

    @staticmethod
    def forward(ctx, x):
        z = torch.zeros_like(x)
        for _ in range(80):
            z = torch.tanh(z / 2 + x)
        ctx.save_for_backward(z)
        return z

    @staticmethod
    def backward(ctx, g):
        (z,) = ctx.saved_tensors
        slope = 1 - z * z
        return g * slope / (1 - slope / 2)


class Lambert(Function):
    """w exp(w) = x for positive x, by Halley steps."""

    @staticmethod
    def forward(ctx, x):
        w = torch.log1p(x)
        for _ in range(20):
            e = torch.exp(w)
            f = w * e - x
            w = w - f / (e * (w + 1) - (w + 2) * f / (2 * w + 2))
        ctx.save_for_backward(w)
        return w

    @staticmethod
    def backward(ctx, g):
        (w,) = ctx.saved_tensors
        return g * torch.exp(-w) / (1 + w)


class Entropic(Function):
    """Entropic weights: x_i = softmax, found by bisection of the multiplier."""

    @staticmethod
    def forward(ctx, c):
        low, high = c.amin(-1, keepdim=True) - 10, c.amax(-1, keepdim=True) + 10
        for _ in range(80):
            middle = (low + high) / 2
            over = torch.exp(c - middle).sum(-1, keepdim=True) > 1
            low, high = torch.where(over, middle, low), torch.where(over, high, middle)
        p = torch.exp(c - (low + high) / 2)
        ctx.save_for_backward(p)
        return p

    @staticmethod
    def backward(ctx, g):
        (p,) = ctx.saved_tensors
        return p * (g - (p * g).sum(-1, keepdim=True) / p.sum(-1, keepdim=True))


class Sinkhorn(Function):
    """The cost of entropic transport between uniform weights: the gradient is the plan."""

    @staticmethod
    def forward(ctx, cost):
        n, m = cost.shape
        f, g = cost.new_zeros(n), cost.new_zeros(m)
        for _ in range(300):
            f = -torch.logsumexp(g - cost, 1) - torch.log(cost.new_tensor(float(n)))
            g = -torch.logsumexp(f[:, None] - cost, 0) - torch.log(cost.new_tensor(float(m)))
        ctx.save_for_backward(torch.exp(f[:, None] + g - cost))
        # The dual value: its slope in the potentials is zero.
        return f.mean() + g.mean()

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


class Ridge(Function):
    """The weights of least squares with a penalty."""

    @staticmethod
    def forward(ctx, x, y):
        gram = x.mT @ x + torch.eye(x.shape[1], dtype=x.dtype, device=x.device)
        w = torch.linalg.solve(gram, x.mT @ y)
        ctx.save_for_backward(x, y, w)
        return w

    @staticmethod
    def backward(ctx, g):
        x, y, w = ctx.saved_tensors
        gram = x.mT @ x + torch.eye(x.shape[1], dtype=x.dtype, device=x.device)
        u = torch.linalg.solve(gram, g)
        xu = x @ u
        return torch.outer(y - x @ w, u) - torch.outer(xu, w), xu


class Euler(Function):
    """The adjoint of explicit Euler steps, recomputed backwards from the saved start."""

    @staticmethod
    def forward(ctx, x, a):
        ctx.save_for_backward(x, a)
        for _ in range(4):
            x = x + 0.25 * torch.tanh(a * x)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, a = ctx.saved_tensors
        states = [x]
        for _ in range(3):
            states.append(states[-1] + 0.25 * torch.tanh(a * states[-1]))
        ga = torch.zeros_like(g)
        for s in reversed(states):
            slope = 0.25 * (1 - torch.tanh(a * s) ** 2)
            ga, g = ga + g * slope * s, g + g * slope * a
        return g, ga


class Envelope(Function):
    """The least value of a quadratic over a box: Danskin's theorem, the minimiser is a constant."""

    @staticmethod
    def forward(ctx, c):
        best = (-c).clamp(-1, 1)
        ctx.save_for_backward(best)
        return (0.5 * best * best + c * best).sum(-1)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        return g.unsqueeze(-1) * ctx.saved_tensors[0]


_DOUBLE = ("float64", "float32")

DECLARATIONS = (
    Declaration(Kepler, "float[n]", "float[n](0.0..0.5)", dtypes=_DOUBLE),
    Declaration(CubeRoot, "float[...]"),
    Declaration(ConjugateGradients, "float[n,n] spd", "float[n]", once=True, sizes={"n": (1, 2, 3)}, dtypes=_DOUBLE,
                conditioning=10, nonlinear=False),
    Declaration(FixedPoint, "float[n]"),
    Declaration(Lambert, "float[n] positive"),
    Declaration(Entropic, "float[b,n]", sizes={"b": (1, 2), "n": (1, 2, 4)}, dtypes=_DOUBLE),
    Declaration(Sinkhorn, "float[n,m]", sizes={"n": (1, 2, 3), "m": (1, 2)}, once=True, dtypes=_DOUBLE,
                conditioning=10),
    Declaration(Ridge, "float[n,d]", "float[n]", sizes={"n": (1, 3), "d": (1, 2)}),
    Declaration(Euler, "float[n]", "float[n]", once=True),
    Declaration(Envelope, "float[b,n]", once=True),
)  # fmt: skip
