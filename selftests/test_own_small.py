"""Users' Functions at small values: a wrong series or guard is found, and right ones are accepted."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch
from torch.nn import functional

from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.check.printing import headlines
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.selftests.checking import DRAWS, faults_of
from autograd_conformance.selftests.test_own_extremes import ROWS, column, function

ANY = ("float[...]",)


def _apart(x, least):
    return torch.where(x.abs() < least, 1.0, x)


def _sinc(x, least=1e-3, sign=-1.0):
    return torch.where(x.abs() < least, 1 + sign * x * x / 6, torch.sin(x) / _apart(x, least))


def _of_sinc(sign, least=1e-3):
    def gradient(g, _, x):
        z = _apart(x, least)
        return g * torch.where(x.abs() < least, sign * x / 3, (torch.cos(z) - torch.sin(z) / z) / z)

    return gradient


def _size(x):
    return x.square().sum(-1).sqrt()


def _clamped(x):
    return x / column(_size(x).clamp(min=1e-3))


def _of_clamped(g, _, x):
    n = column(_size(x).clamp(min=1e-3))
    y = x / n
    return (g - y * (g * y).sum(-1, keepdim=True) * (column(_size(x)) > 1e-3)) / n


def _of_unclamped(g, _, x):
    n = column(_size(x).clamp(min=1e-3))
    y = x / n
    return (g - y * (g * y).sum(-1, keepdim=True)) / n


WRONG = {
    "the sign of a series": (function(_sinc, _of_sinc(+1.0)), ROWS),
    "a norm that is clamped in forward alone": (function(_clamped, _of_unclamped), ROWS),
    "a guard in backward alone": (
        function(lambda x: x.abs().sqrt(), lambda g, y, x: g * x.sign() / (2 * y.clamp(min=2e-2))),
        ANY,
    ),
}
RIGHT = {
    "a series": (function(_sinc, _of_sinc(-1.0)), ANY),
    "a norm that is clamped": (function(_clamped, _of_clamped), ROWS),
    "a Huber loss with a narrow middle": (
        lambda x: functional.huber_loss(x, torch.zeros_like(x), delta=2.0**-10, reduction="none"),
        ANY,
    ),
    "soft shrinkage": (lambda x: functional.softshrink(x, 2.0**-9), ANY),
    "expm1 over x": (
        lambda x: torch.where(x.abs() < 1e-5, 1 + x / 2, torch.expm1(x) / _apart(x, 1e-5)),
        ANY,
    ),
    "a square root of a sum": (lambda x: (x.square().sum(-1) + 1e-12).sqrt(), ROWS),
    "rounding to halves": (lambda x: x + 0 * torch.round(2 * x).detach(), ANY),
    "1 - cos": (lambda x: 1 - torch.cos(x), ANY),
    "a difference of large numbers": (lambda x: (x + 1e4) - 1e4 * (1 + x * x), ANY),
    "log of 1 + x": (lambda x: torch.log(1 + x.abs()), ANY),
    "a ratio of norms": (lambda x: x.norm(dim=-1) / (1e-3 + x.abs().sum(-1)), ROWS),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_fault_at_small_values_alone_is_found(name):
    f, arguments = WRONG[name]
    # Among many values there are small ones: then the plain test finds it, too.
    few = {"b": (1, 2), "n": (1, 2, 3)} if arguments is ROWS else {}
    faults = faults_of(Declaration(f, *arguments, dtypes="float64", sizes=few), "VJP-FD", shrink=False)
    assert [ndjson.test_of(line) for line in headlines(faults)] == ["VJP-FD/small"]
    (guess,) = (v.guess for line, v in faults if ndjson.test_of(line) == "VJP-FD/small")
    assert guess.startswith("ordinary values are right, and small ones are not")


@pytest.mark.parametrize(("profile", "seed"), DRAWS)
@pytest.mark.parametrize("name", RIGHT)
def test_small_values_accuse_nothing_right(name, profile, seed):
    f, arguments = RIGHT[name]
    assert faults_of(Declaration(f, *arguments), "VJP-FD", "DBL-CORRECT", profile=profile, seed=seed) == []


def test_a_wrong_second_derivative_at_small_values_is_found():
    class Series(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return _sinc(x)

        @staticmethod
        def backward(ctx, g):
            return OfSeries.apply(g, *ctx.saved_tensors)

    class OfSeries(torch.autograd.Function):
        @staticmethod
        def forward(ctx, g, x):
            ctx.save_for_backward(g, x)
            return _of_sinc(-1.0)(g, None, x)

        @staticmethod
        def backward(ctx, h):
            g, x = ctx.saved_tensors
            z = _apart(x, 1e-3)
            far = -torch.sin(z) / z - 2 * torch.cos(z) / z**2 + 2 * torch.sin(z) / z**3
            return _of_sinc(-1.0)(h, None, x), h * g * torch.where(x.abs() < 1e-3, 1 / 3, far)

    faults = faults_of(Declaration(Series, *ANY, dtypes="float64"), "VJP-FD", "DBL-CORRECT", shrink=False)
    assert {ndjson.test_of(line) for line, _ in faults} == {"DBL-CORRECT/small"}
