"""What simple calls show: a surrogate gradient is recognised, and no steep or saturated Function is taken for one."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch

from autograd_conformance import implementations
from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.drafting.trying import fits
from autograd_conformance.selftests.check.specimens.functions import function

TORCH = implementations.load("torch")


@pytest.mark.parametrize(
    ("forward", "gradient", "surrogate"),
    [
        (torch.round, lambda g, *_: g, True),
        (lambda x: (x > 0).to(x.dtype), lambda g, _, x: g / (1 + x.abs()) ** 2, True),
        # The slope of what is saturated is small, and not 0.
        (lambda x: torch.tanh(200 * x), lambda g, _, x: 200 * g / torch.cosh(200 * x) ** 2, False),
        # Constant at most numbers, with kinks at round ones.
        (lambda x: x.clamp(0, 0.25), lambda g, _, x: g * ((x > 0) & (x < 0.25)), False),
        (lambda x: 2 * x, lambda g, *_: g, False),
    ],
)
def test_what_is_a_surrogate(forward, gradient, surrogate):
    assert bool(fits(Declaration(function(forward, gradient), "float[n,m]"), TORCH).surrogate) is surrogate
