"""Functions at small values: a wrong series or guard, and right ones."""

from __future__ import annotations

import torch
from torch.nn import functional

from autograd_conformance.selftests.check.specimens import right, wrong
from autograd_conformance.selftests.check.specimens.extremes import ROWS
from autograd_conformance.selftests.check.specimens.functions import column, function

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


# Among many values there are small ones: then the plain test finds a fault of rows, too.
FEW = {"b": (1, 2), "n": (1, 2, 3)}

TESTS = "VJP-FD* DBL-CORRECT*"
SPECIMENS = (
    *(
        wrong(
            name, "VJP-FD/small", f, *arguments, tests="VJP-FD*", dtypes="float64",
            sizes=FEW if arguments is ROWS else {}, says="ordinary values are right, and small ones are not",
        )
        for name, (f, arguments) in WRONG.items()
    ),
    wrong(
        "a wrong second derivative of a series", "DBL-CORRECT/small", Series, *ANY, dtypes="float64", tests=TESTS
    ),
    *(right(name, TESTS, f, *arguments) for name, (f, arguments) in RIGHT.items()),
)  # fmt: skip
