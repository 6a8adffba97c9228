"""Decompositions and linear algebra."""

from __future__ import annotations

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from autograd_conformance.harness.check import Declaration


class CholeskySolve(Function):
    """Saves the factor; the matrix is taken as symmetric, so its gradient is."""

    @staticmethod
    def forward(ctx, a, b):
        lower = torch.linalg.cholesky(a)
        x = torch.cholesky_solve(b, lower)
        ctx.save_for_backward(lower, x)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        lower, x = ctx.saved_tensors
        gb = torch.cholesky_solve(g, lower)
        ga = -gb @ x.mT
        return (ga + ga.mT) / 2, gb


class LogDet(Function):
    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return 2 * torch.linalg.cholesky(a).diagonal().log().sum()

    @staticmethod
    def backward(ctx, g):
        (a,) = ctx.saved_tensors
        return g * torch.linalg.inv(a).mT


class Inverse(Function):
    """It saves its output."""

    @staticmethod
    def forward(ctx, a):
        y = torch.linalg.inv(a)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return -y.mT @ g @ y.mT


class Solve(Function):
    """With a rule for forward mode, and setup_context."""

    @staticmethod
    def forward(a, b):
        return torch.linalg.solve(a, b)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0], output)
        ctx.save_for_forward(inputs[0], output)

    @staticmethod
    def backward(ctx, g):
        a, x = ctx.saved_tensors
        gb = torch.linalg.solve(a.mT, g)
        return -gb @ x.mT, gb

    @staticmethod
    def jvp(ctx, ta, tb):
        a, x = ctx.saved_tensors
        given = 0 if tb is None else tb
        return torch.linalg.solve(a, given - (0 if ta is None else ta @ x))


class Triangular(Function):
    @staticmethod
    def forward(ctx, a, b):
        x = torch.linalg.solve_triangular(a, b, upper=False)
        ctx.save_for_backward(a, x)
        return x

    @staticmethod
    def backward(ctx, g):
        a, x = ctx.saved_tensors
        gb = torch.linalg.solve_triangular(a.mT, g, upper=True)
        return -(gb @ x.mT).tril(), gb


class MatrixExponential(Function):
    """The gradient by a block matrix, which is the exponential again. That of torch overflows in half precision."""

    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return torch.linalg.matrix_exp(a)

    @staticmethod
    def backward(ctx, g):
        (a,) = ctx.saved_tensors
        n = a.shape[-1]
        top = torch.cat((a.mT, g), -1)
        block = torch.cat((top, torch.cat((torch.zeros_like(a), a.mT), -1)), -2)
        return MatrixExponential.apply(block)[..., :n, n:]


class SquareRoot(Function):
    """The root of a positive definite matrix; backward solves a Sylvester equation in the eigenbasis."""

    @staticmethod
    def forward(ctx, a):
        w, v = torch.linalg.eigh((a + a.mT) / 2)
        root = w.clamp(min=0).sqrt()
        ctx.save_for_backward(root, v)
        return (v * root) @ v.mT

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        root, v = ctx.saved_tensors
        inner = v.mT @ ((g + g.mT) / 2) @ v
        return v @ (inner / (root[:, None] + root[None])) @ v.mT


class LargestEigenvalue(Function):
    @staticmethod
    def forward(ctx, a):
        w, v = torch.linalg.eigh((a + a.mT) / 2)
        ctx.save_for_backward(v[:, -1])
        return w[-1].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        (v,) = ctx.saved_tensors
        return g * torch.outer(v, v)


class NuclearNorm(Function):
    """The polar factor is the gradient: unique where the matrix has full rank."""

    @staticmethod
    def forward(ctx, a):
        u, s, vh = torch.linalg.svd(a, full_matrices=False)
        ctx.save_for_backward(u @ vh)
        return s.sum()

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


class Determinant(Function):
    """By cofactors of a 2 by 2 matrix, so right where it is singular as well."""

    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return a[..., 0, 0] * a[..., 1, 1] - a[..., 0, 1] * a[..., 1, 0]

    @staticmethod
    def backward(ctx, g):
        a = ctx.saved_tensors[0].conj()
        top = torch.stack((a[..., 1, 1], -a[..., 1, 0]), -1)
        low = torch.stack((-a[..., 0, 1], a[..., 0, 0]), -1)
        return g[..., None, None] * torch.stack((top, low), -2)


class Quadratic(Function):
    """Half the squared norm in a metric: it uses the symmetric part, and gives a symmetric gradient."""

    @staticmethod
    def forward(ctx, x, a):
        ctx.save_for_backward(x, a)
        return 0.5 * (x @ a @ x)

    @staticmethod
    def backward(ctx, g):
        x, a = ctx.saved_tensors
        return 0.5 * g * ((a + a.mT) @ x), 0.5 * g * torch.outer(x, x)


class Whitened(Function):
    """Solves with a Cholesky factor in double precision, whatever comes in."""

    @staticmethod
    def forward(ctx, a, x):
        lower = torch.linalg.cholesky(a.double())
        y = torch.linalg.solve_triangular(lower, x.double()[:, None], upper=False)[:, 0]
        ctx.save_for_backward(lower, y)
        return y.to(x.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        lower, y = ctx.saved_tensors
        gx = torch.linalg.solve_triangular(lower.mT, g.double()[:, None], upper=True)
        gl = -(gx @ y[None]).tril()
        p = (lower.mT @ gl).tril()
        p = p - 0.5 * torch.diag(p.diagonal())
        p = torch.linalg.solve_triangular(lower.mT, p, upper=True)
        p = torch.linalg.solve_triangular(lower, p, upper=False, left=False)
        return ((p + p.mT) / 2).to(g.dtype), gx[:, 0].to(g.dtype)


_N = {"n": (1, 2, 3)}

DECLARATIONS = (
    Declaration(CholeskySolve, "float[n,n] spd", "float[n,m]", once=True, sizes=_N,
                reference=lambda a, b: torch.linalg.solve(a, b)),
    Declaration(LogDet, "float[n,n] spd", sizes=_N, reference=torch.logdet),
    Declaration(Inverse, "float[n,n] spd", sizes=_N),
    Declaration(Solve, "float[n,n] spd", "float[n,m]", sizes=_N),
    Declaration(Triangular, "float[n,n] lower", "float[n,m]", sizes=_N),
    Declaration(MatrixExponential, "float[n,n]", sizes=_N, dtypes=("float64", "float32")),
    Declaration(SquareRoot, "float[n,n] spd", once=True, sizes=_N),
    Declaration(LargestEigenvalue, "float[n,n] spd", once=True, sizes=_N),
    Declaration(NuclearNorm, "float[n,m]", once=True, sizes={"n": (1, 2, 3), "m": (2, 3)}),
    Declaration(Determinant, "number[...,2,2]", reference=torch.linalg.det, name="determinant"),
    Declaration(Quadratic, "float[n]", "float[n,n]"),
    Declaration(Whitened, "float[n,n] spd", "float[n]", once=True, sizes=_N),
)  # fmt: skip
