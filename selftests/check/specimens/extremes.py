"""Functions at large and small values: what built-in operations of the same formula do is right."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional

from autograd_conformance.selftests.check.specimens import right, wrong
from autograd_conformance.selftests.check.specimens.functions import column, function, opaque

ONE, ROWS, POSITIVE = ("float[...]",), ("float[b,n]",), ("float[n] positive",)
TWO_ROWS = (*ROWS, *ROWS)


def _variance(x):
    return x.var(-1, unbiased=False, keepdim=True) + 0.1


def _normalizing(g, y, x):
    return (g - g.mean(-1, keepdim=True) - y * (g * y).mean(-1, keepdim=True)) / _variance(x).sqrt()


def _safe(y):
    return torch.where(y == 0, 1, y)


def naive(x):
    return 1 / (1 + torch.exp(-x))


def _cosine(x, y):
    return (x * y).sum(-1) / ((x * x).sum(-1).sqrt() * (y * y).sum(-1).sqrt() + 1e-3)


def _product_of_sums(g, _, x, y):
    return column(g * y.sum(-1)).expand_as(x), column(g * x.sum(-1)).expand_as(y)


# Values inside overflow or underflow, and autograd of built-in operations gives NaN for some of them.
RIGHT = {
    "product of sums": (function(lambda x, y: x.sum(-1) * y.sum(-1), _product_of_sums), TWO_ROWS),
    "ratio of products of sums": (
        lambda x, y: x.sum(-1) * y.sum(-1) / (1 + (x * x).sum(-1) * (y * y).sum(-1)),
        TWO_ROWS,
    ),
    "sigmoid, written out": (naive, ONE),
    "sigmoid from its output": (function(naive, lambda g, y, _: g * y * (1 - y)), ONE),
    "gelu, written out": (lambda x: 0.5 * x * (1 + torch.tanh(0.79788456 * (x + 0.044715 * x**3))), ONE),
    "time step": (lambda x: torch.exp(-x * (1 / (1 + x * x)) ** 2), ONE),
    "time step and its derivative": (
        function(lambda x: x / (1 + x * x) ** 2, lambda g, _, x: g * (1 - 3 * x * x) / (1 + x * x) ** 3),
        ONE,
    ),
    "norm, written out": (lambda x: (x * x).sum(-1).sqrt(), ROWS),
    "norm with NumPy": (
        function(opaque(lambda x: np.sqrt((x * x).sum(-1))), lambda g, y, x: column(g / _safe(y)) * x),
        ROWS,
    ),
    "rational": (function(lambda x: x * x / (1 + x * x), lambda g, _, x: 2 * g * x / (1 + x * x) ** 2), ONE),
    "softplus, written out": (lambda x: torch.log(1 + torch.exp(x)), ONE),
    "softmax, written out": (lambda x: x.exp() / x.exp().sum(-1, keepdim=True), ROWS),
    "cosine": (_cosine, TWO_ROWS),
    "normalize": (function(lambda x: (x - x.mean(-1, keepdim=True)) / _variance(x).sqrt(), _normalizing), ROWS),
    "bell": (function(lambda x: torch.exp(-x * x / 2), lambda g, y, x: -g * x * y), ONE),
    "tenth power": (function(lambda x: x**10, lambda g, _, x: 10 * g * x**9), ONE),
    "root": (function(torch.sqrt, lambda g, y, _: g / (2 * y)), POSITIVE),
    "inverse cube": (function(lambda x: x**-3.0, lambda g, y, x: -3 * g * y / x), POSITIVE),
}


def _of_exponentials(g, _, x):
    return column(g) * x.exp() / x.exp().sum(-1, keepdim=True)


def _of_shares(g, _, x):
    y = x.exp() / x.exp().sum(-1, keepdim=True)
    return y * (g - (g * y).sum(-1, keepdim=True))


def of_sigmoid(g, _, x):
    return g * torch.exp(-x) / (1 + torch.exp(-x)) ** 2


def _log_cosh(x):
    return functional.softplus(-2 * x) + x - 0.6931471805599453


WRONG = {
    "logsumexp": (function(lambda x: torch.logsumexp(x, -1), _of_exponentials), ROWS),
    "softmax": (function(lambda x: torch.softmax(x, -1), _of_shares), ROWS),
    "sigmoid": (function(torch.sigmoid, of_sigmoid), ONE),
    "sigmoid with NumPy": (function(opaque(lambda x: 1 / (1 + np.exp(-x))), of_sigmoid), ONE),
    "softplus": (function(functional.softplus, lambda g, _, x: g * x.exp() / (1 + x.exp())), ONE),
    "silu": (
        function(functional.silu, lambda g, _, x: g * (1 + (1 + x) * (-x).exp()) / (1 + (-x).exp()) ** 2),
        ONE,
    ),
    "log cosh": (function(_log_cosh, lambda g, _, x: g * torch.sinh(x) / torch.cosh(x)), ONE),
    "three times, with NumPy": (function(opaque(lambda x: 3 * x), lambda g, _, x: 3 * g * x / x), ONE),
    "tanh": (function(torch.tanh, lambda g, _, x: g * 4 * (2 * x).exp() / ((2 * x).exp() + 1) ** 2), ONE),
}


class WithContext(torch.autograd.Function):
    """A sigmoid with setup_context, whose gradient is NaN far from 0."""

    @staticmethod
    def forward(x):
        return torch.sigmoid(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output, *inputs)

    @staticmethod
    def backward(ctx, g):
        return of_sigmoid(g, *ctx.saved_tensors)


# The formula is the reference, if there is one.
_SIGMOID = function(naive, of_sigmoid)

TESTS = "VJP-FINITE*"
SPECIMENS = (
    *(right(name, TESTS, f, *arguments, decided=False) for name, (f, arguments) in RIGHT.items()),
    right("a sigmoid by its formula", TESTS, _SIGMOID, *ONE, decided=False),
    wrong("a sigmoid with a reference", "VJP-FINITE", _SIGMOID, *ONE, reference=torch.sigmoid, exactly={"got": "nan"}),
    # What a callable wraps is no built-in operation.
    *(
        wrong(name, "VJP-FINITE", f, *ONE, tests=TESTS)
        for name, f in (
            ("a Function with setup_context", WithContext),
            ("a callable of one", lambda x: 2 * WithContext.apply(x)),
        )
    ),
    *(
        wrong(name, "VJP-FINITE", f, *arguments, tests=TESTS, says="gradient of argument 0")
        for name, (f, arguments) in WRONG.items()
    ),
)
