"""Functions whose backward leaves the range of float16 with finite numbers that are wrong."""

from __future__ import annotations

import torch
from torch.nn import functional

from autograd_conformance.selftests.check.specimens import right, wrong
from autograd_conformance.selftests.check.specimens.extremes import RIGHT, ROWS, TWO_ROWS
from autograd_conformance.selftests.check.specimens.functions import column, function, in_single


def _normalized(x):
    return x / (x.square().sum(-1, keepdim=True) + 1e-3).sqrt()


def _of_cube(g, _, x):
    size = (x.square().sum(-1, keepdim=True) + 1e-3).sqrt()
    return g / size - x * (x * g).sum(-1, keepdim=True) / size**3


def _of_size(g, y, x):
    squares = x.square().sum(-1) + 1e-3
    return column(g) * x * column(squares.rsqrt().pow(4) * squares * y)


def _of_mean_square(g, _, x):
    total = x.square().sum(-1)
    return column(g * (total / x.shape[-1]).rsqrt()) * x / x.shape[-1]


# Finite and wrong in float16 alone.
WRONG = {
    "root mean square, by a sum of squares of large rows": (
        function(in_single(lambda x: x.square().mean(-1).sqrt()), _of_mean_square),
        ["float[b,n] nonzero"],
    ),
    "rows of length one, by a cube": (function(in_single(_normalized), _of_cube), ROWS),
    "a norm, by a fourth power that underflows": (
        function(in_single(lambda x: (x.square().sum(-1) + 1e-3).sqrt()), _of_size),
        ROWS,
    ),
    "atan, by a square that overflows": (
        function(in_single(lambda x: 64 * torch.atan(x / 64)), lambda g, _, x: g * (16384 / (16384 + x * x * 4))),
        ROWS,
    ),
}


def _of_root_mean_square(g, _, x):
    rate = (x.square().mean(-1, keepdim=True) + 1e-3).rsqrt()
    return g * rate - x * rate**3 * (g * x).mean(-1, keepdim=True)


ACCEPTED = {
    # The test does not apply to this one.
    **{name: row for name, row in RIGHT.items() if name != "norm with NumPy"},
    "rows of length one, all in half precision": (function(_normalized, _of_cube), ROWS),
    "rows of length one, all in single precision": (function(in_single(_normalized), in_single(_of_cube)), ROWS),
    "root mean square, all in half precision": (
        function(lambda x: x * (x.square().mean(-1, keepdim=True) + 1e-3).rsqrt(), _of_root_mean_square),
        ROWS,
    ),
    "the largest entry": (
        function(lambda x: x.amax(-1), lambda g, y, x: column(g) * (x == column(y)) / (x == column(y)).sum(-1, True)),
        ROWS,
    ),
    "a threshold of a sum": (
        function(
            lambda x, y: functional.relu((x * y).sum(-1)),
            lambda g, z, x, y: (column(g * (z > 0)) * y, column(g * (z > 0)) * x),
        ),
        TWO_ROWS,
    ),
    "a remainder of a sum": (
        function(lambda x: x.sum(-1) % 1.0, lambda g, _, x: column(g).expand_as(x)),
        ROWS,
    ),
}


SPECIMENS = (
    *(
        wrong(name, "VJP-REF/range", f, *arguments, says="a term of backward leaves the range of float16")
        for name, (f, arguments) in WRONG.items()
    ),
    # Where forward loses its range as well, nothing is compared.
    *(right(name, "VJP-REF/range", f, *arguments, decided=False) for name, (f, arguments) in ACCEPTED.items()),
)
