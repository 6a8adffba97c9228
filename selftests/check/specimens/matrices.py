"""Functions of matrices with equal eigenvalues: NaN where the derivative exists, and where it does not."""

from __future__ import annotations

import torch

from autograd_conformance.selftests.check.specimens import right, wrong


def divided(x, y, eigenvalues):
    """The divided differences of a function with values ``y`` and slopes ``x``; at equal eigenvalues, the slopes."""
    rows, columns = eigenvalues.unsqueeze(-1), eigenvalues.unsqueeze(-2)
    near = (rows - columns).abs() < 1e-9
    gap = torch.where(near, 1.0, rows - columns)
    return torch.where(near, x.unsqueeze(-1).expand_as(gap), (y.unsqueeze(-1) - y.unsqueeze(-2)) / gap)


class Exponential(torch.autograd.Function):
    """exp of a symmetric matrix. Right."""

    @staticmethod
    def forward(ctx, a):
        values, vectors = torch.linalg.eigh(a)
        ctx.save_for_backward(values, vectors)
        return (vectors * values.exp().unsqueeze(-2)) @ vectors.mT

    @classmethod
    def between(cls, values):
        return divided(values.exp(), values.exp(), values)

    @classmethod
    def pulled(cls, ctx, g):
        values, vectors = ctx.saved_tensors
        return vectors @ (cls.between(values) * (vectors.mT @ g @ vectors)) @ vectors.mT

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        return Exponential.pulled(ctx, g)


class Undefined(Exponential):
    """Divided differences are 0 / 0 at equal eigenvalues."""

    @classmethod
    def between(cls, values):
        gap = values.unsqueeze(-1) - values.unsqueeze(-2)
        off = (values.exp().unsqueeze(-1) - values.exp().unsqueeze(-2)) / gap
        return torch.where(torch.eye(len(values), dtype=torch.bool), values.exp().unsqueeze(-1), off)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        return Undefined.pulled(ctx, g)


class Root(torch.autograd.Function):
    """The root of a definite matrix. Its first derivative is right; the second one goes through eigh of torch."""

    @staticmethod
    def forward(ctx, a):
        values, vectors = torch.linalg.eigh(a)
        root = (vectors * values.sqrt().unsqueeze(-2)) @ vectors.mT
        ctx.save_for_backward(root)
        return root

    @staticmethod
    def backward(ctx, g):
        values, vectors = torch.linalg.eigh(ctx.saved_tensors[0])
        inner = (vectors.mT @ g @ vectors) / (values.unsqueeze(-1) + values.unsqueeze(-2))
        return vectors @ inner @ vectors.mT


def symmetrically(function):
    def of_symmetric(a):
        return function.apply((a + a.mT) / 2)

    return of_symmetric


class Repeated(Exponential):
    """NaN at equal eigenvalues next to others alone: not at a multiple of the identity."""

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        values, vectors = ctx.saved_tensors
        equal = values.diff().abs() < 1e-9
        wrong = (equal.any(-1) & ~equal.all(-1))[..., None, None]
        between = torch.where(wrong, torch.nan, Exponential.between(values))
        return vectors @ (between * (vectors.mT @ g @ vectors)) @ vectors.mT


class Squares(torch.autograd.Function):
    """The sum of squares. The gradient is NaN at the zero matrix."""

    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return a.square().sum((-2, -1))

    @classmethod
    def factor(cls, norm):
        return 2 * norm / norm

    @classmethod
    def backward(cls, ctx, g):
        (a,) = ctx.saved_tensors
        norm = a.square().sum((-2, -1), keepdim=True).sqrt()
        return g[..., None, None] * torch.where(norm == 0, cls.factor(norm), 2 * a)


class InfiniteSquares(Squares):
    """The gradient is infinite at the zero matrix."""

    @classmethod
    def factor(cls, norm):
        return torch.full_like(norm, torch.inf)


# Of three eigenvalues two are equal, or all.
FEW = {"n": (1, 2, 3)}


class Eigenvalues(torch.autograd.Function):
    """The eigenvalues, which have a kink where they are equal. The gradient is NaN there, on purpose."""

    @staticmethod
    def forward(ctx, a):
        values, vectors = torch.linalg.eigh(a)
        ctx.save_for_backward(values, vectors)
        return values

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        values, vectors = ctx.saved_tensors
        equal = torch.any(values.diff().abs() < 1e-9)
        return (vectors * (g * (torch.nan if equal else 1.0)).unsqueeze(-2)) @ vectors.mT


class Norm(torch.autograd.Function):
    """The Frobenius norm, which has a kink at the zero matrix, where its gradient is NaN."""

    @staticmethod
    def forward(ctx, a):
        norm = a.square().sum((-2, -1)).sqrt()
        ctx.save_for_backward(a, norm)
        return norm

    @staticmethod
    def backward(ctx, g):
        a, norm = ctx.saved_tensors
        return g[..., None, None] * a / norm[..., None, None]


class Inverse(torch.autograd.Function):
    """The inverse, which raises at the zero matrix. Right."""

    @staticmethod
    def forward(ctx, a):
        inverse = torch.linalg.inv(a)
        ctx.save_for_backward(inverse)
        return inverse

    @staticmethod
    def backward(ctx, g):
        (inverse,) = ctx.saved_tensors
        return -inverse.mT @ g @ inverse.mT


class Reciprocal(torch.autograd.Function):
    """One divided by the sum of squares, which is infinite at the zero matrix. Right."""

    @staticmethod
    def forward(ctx, a):
        result = 1 / a.square().sum((-2, -1))
        ctx.save_for_backward(a, result)
        return result

    @staticmethod
    def backward(ctx, g):
        a, result = ctx.saved_tensors
        return (-2 * g * result * result)[..., None, None] * a


_SYMMETRIC = "float[n,n] symmetric"
_NAN = {"tests": "VJP-FD* DBL-CORRECT*", "word": "not finite"}
_MATRICES = "VJP-FD/matrices DBL-CORRECT/matrices"
SPECIMENS = (
    wrong(
        "of a first derivative", "VJP-FD/matrices", symmetrically(Undefined), _SYMMETRIC, once=True, sizes=FEW, **_NAN
    ),
    wrong("of a second derivative", "DBL-CORRECT/matrices", symmetrically(Root), "float[n,n] spd", sizes=FEW, **_NAN),
    wrong(
        "at two equal ones of three",
        "VJP-FD/matrices",
        symmetrically(Repeated),
        _SYMMETRIC,
        once=True,
        sizes=FEW,
        **_NAN,
    ),
    right(
        "a limit at equal eigenvalues",
        _MATRICES,
        symmetrically(Exponential),
        _SYMMETRIC,
        once=True,
        sizes=FEW,
        decided=False,
    ),
    right(
        "two eigenvalues",
        _MATRICES,
        symmetrically(Eigenvalues),
        _SYMMETRIC,
        once=True,
        sizes={"n": (1, 2)},
        decided=False,
    ),
    right(
        "three eigenvalues",
        _MATRICES,
        symmetrically(Eigenvalues),
        _SYMMETRIC,
        once=True,
        sizes={"n": (3,)},
        decided=False,
    ),
    right("a norm", _MATRICES, Norm, "float[n,n]", sizes={"n": (2, 3)}, decided=False),
    right("an inverse", _MATRICES, symmetrically(Inverse), _SYMMETRIC, sizes=FEW, decided=False),
    right("a reciprocal", _MATRICES, Reciprocal, "float[n,n]", sizes=FEW, decided=False),
    right("of torch", _MATRICES, torch.linalg.eigvalsh, "float[n,n] spd", sizes=FEW, decided=False),
)
