"""Users' Functions whose backward leaves the range of float16 with finite numbers that are wrong."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch
from torch.nn import functional

from autograd_conformance.harness.check import Declaration
from autograd_conformance.selftests.checking import DRAWS, lines_of
from autograd_conformance.selftests.test_own_extremes import RIGHT, ROWS, TWO_ROWS, column, function
from autograd_conformance.suites.declared import Checked


def tried(declaration, seed=0, profile="gate"):
    """The results of the test of ranges."""
    return list(lines_of(Checked(declaration, profile=profile, seed=seed, shrink=False), "VJP-REF/range"))


def in_single(compute):
    """A forward that computes in single precision, whatever the inputs are."""

    def forward(*inputs):
        wide = [x.float() if x.dtype in (torch.float16, torch.bfloat16) else x for x in inputs]
        return compute(*wide).to(inputs[0].dtype)

    return forward


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
    **RIGHT,
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


@pytest.mark.parametrize("name", WRONG)
def test_what_leaves_the_range_of_float16_is_found(name):
    f, arguments = WRONG[name]
    (line,) = tried(Declaration(f, *arguments))
    assert line["outcome"] == "fail"
    assert "a term of backward leaves the range of float16" in line["failure"]["hint"]


@pytest.mark.parametrize(("profile", "seed"), DRAWS)
@pytest.mark.parametrize("name", ACCEPTED)
def test_what_built_in_operations_lose_as_well_is_accepted(name, profile, seed):
    f, arguments = ACCEPTED[name]
    outcomes = {line["outcome"] for line in tried(Declaration(f, *arguments), seed, profile)}
    # Where forward loses its range as well, nothing is compared.
    assert outcomes <= {"pass", "vacuous"}
