"""Derivatives at matrices with equal eigenvalues: NaN is a fault where the derivative exists, and nothing else is."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("torch")

import torch

from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.selftests import tiers
from autograd_conformance.selftests.checking import accuses, faults_in, lines_of
from autograd_conformance.suites.declared import Checked


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


def found(declaration):
    return {(ndjson.test_of(line), v.word) for line, v in accuses(declaration, "VJP-FD", "DBL-CORRECT")}


@pytest.mark.parametrize(
    ("declaration", "test"),
    [
        (Declaration(symmetrically(Undefined), "float[n,n] symmetric", once=True, sizes=FEW), "VJP-FD/matrices"),
        (Declaration(symmetrically(Root), "float[n,n] spd", sizes=FEW), "DBL-CORRECT/matrices"),
        (Declaration(symmetrically(Repeated), "float[n,n] symmetric", once=True, sizes=FEW), "VJP-FD/matrices"),
    ],
    ids=["first", "second", "repeated"],
)
def test_nan_where_the_derivative_exists_is_a_fault(declaration, test):
    assert found(declaration) == {(test, "not finite")}


@pytest.mark.parametrize(
    ("declaration", "got", "hint"),
    [
        (Declaration(symmetrically(Undefined), "float[n,n] symmetric", once=True), "nan", "difference of eigenvalues"),
        (Declaration(Squares, "float[n,n]"), "nan", "division by 0"),
        (Declaration(symmetrically(InfiniteSquares), "float[n,n] symmetric"), "inf", "division by 0"),
    ],
    ids=["eigenvalues", "norm", "infinite"],
)
def test_a_finding_says_what_was_got_and_how_well_the_slope_is_known(declaration, got, hint):
    (line,) = lines_of(Checked(declaration, seed=0), "VJP-FD/matrices")
    failure = line["failure"]
    assert failure["got"] == got
    assert re.fullmatch(r"a number within \S{1,6} of -?\S{1,8}", failure["expected"])
    assert hint in failure["hint"]


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


RIGHT = {
    "a limit at equal eigenvalues": Declaration(
        symmetrically(Exponential), "float[n,n] symmetric", once=True, sizes=FEW
    ),
    "eigenvalues": Declaration(symmetrically(Eigenvalues), "float[n,n] symmetric", once=True, sizes={"n": (1, 2)}),
    "three eigenvalues": Declaration(symmetrically(Eigenvalues), "float[n,n] symmetric", once=True, sizes={"n": (3,)}),
    "a norm": Declaration(Norm, "float[n,n]", sizes={"n": (2, 3)}),
    "an inverse": Declaration(symmetrically(Inverse), "float[n,n] symmetric", sizes=FEW),
    "a reciprocal": Declaration(Reciprocal, "float[n,n]", sizes=FEW),
    "of torch": Declaration(torch.linalg.eigvalsh, "float[n,n] spd", sizes=FEW),
}


@pytest.mark.parametrize("name", RIGHT)
def test_nothing_is_claimed_elsewhere(name):
    checked = Checked(RIGHT[name], profile="gate" if tiers.NIGHT else "quick", seed=0, shrink=False)
    assert list(faults_in(lines_of(checked, "VJP-FD/matrices", "DBL-CORRECT/matrices"))) == []
