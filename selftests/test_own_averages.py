"""Averages of errors in half precision: what chance may do, and second derivatives of what takes it alone."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.check.report.verdicts import judged
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.reference.averages import CALLS, systematic
from autograd_conformance.reference.rounding import PRECISION, round_to
from autograd_conformance.selftests.checking import lines_of
from autograd_conformance.selftests.specimens.averages import ONE, ROWS
from autograd_conformance.selftests.specimens.functions import HALF
from autograd_conformance.suites.declared import Checked


@pytest.mark.parametrize("dtype", HALF)
def test_chance_is_not_taken_for_a_fault(dtype):
    # The limit without what is allowed: chance alone must not come near its standard errors.
    rng, largest = np.random.default_rng(0), 0.0
    for _ in range(400):
        expected = rng.standard_normal((CALLS, 4))
        got = round_to(expected, dtype)
        for each in systematic(got, expected, PRECISION[dtype]):
            spread = each.limit - each.least
            largest = max(largest, abs(each.value) / spread)
    assert 0.3 < largest < 1


# Second derivatives of what takes half precision only, next to those of a reference.


def _half_only(forward, gradient):
    """A Function of half precision alone whose backward is ``gradient(g, x)``."""

    def run(ctx, x):
        if x.dtype not in HALF.values():
            raise TypeError("half precision alone")
        ctx.save_for_backward(x)
        return forward(x)

    methods = {"forward": run, "backward": lambda ctx, g: gradient(g, *ctx.saved_tensors)}
    return type("HalfOnly", (torch.autograd.Function,), {name: staticmethod(f) for name, f in methods.items()})


def _swish_slope(g, x):
    s = x.sigmoid()
    return g * (s + x * s * (1 - s))


class _Doubled(torch.autograd.Function):
    """The same gradient, twice as steep."""

    @staticmethod
    def forward(_, x):
        return x.clone()

    @staticmethod
    def backward(_, g):
        return 2 * g


def _softmax_slope(g, x):
    y = x.softmax(-1)
    return y * (g - (g * y).sum(-1, keepdim=True))


def swish(x):
    return x * x.sigmoid()


SECOND = {
    "swish": (swish, _swish_slope, ONE, {"pass"}),
    "softmax": (lambda x: x.softmax(-1), _softmax_slope, ROWS, {"pass"}),
    "exp, computed in single precision": (
        torch.exp, lambda g, x: (g.float() * x.float().exp()).to(x.dtype), ONE, {"pass"},
    ),
    "twice": (lambda x: x * 2, lambda g, _: g * 2, ONE, {"pass"}),
    "detached": (swish, lambda g, x: _swish_slope(g, x.detach()), ONE, {"silently detached"}),
    "partly detached": (swish, lambda g, x: g * (x.sigmoid() + (swish(x) * (-x).sigmoid()).detach()), ONE, {"wrong"}),
    "twice as steep": (swish, lambda g, x: _swish_slope(g, _Doubled.apply(x)), ONE, {"wrong"}),
}  # fmt: skip


@pytest.mark.parametrize("seed", range(2), ids="seed{}".format)
@pytest.mark.parametrize("name", SECOND)
def test_second_derivatives_in_half_precision_alone_are_compared_with_a_reference(name, seed):
    forward, gradient, argument, words = SECOND[name]
    declaration = Declaration(_half_only(forward, gradient), argument, reference=forward)
    checked = Checked(declaration, seed=seed, shrink=False)
    found = list(lines_of(checked, "DBL-CORRECT", "DBL-CORRECT/averages", "VJP-REF", "VJP-REF/averages", "VJP-FD"))
    verdicts = {v.word for _, v in judged(found, compared=True) if v}
    assert verdicts == words - {"pass"}
    assert "DBL-CORRECT/averages" in {ndjson.test_of(line) for line in found}


def test_without_a_reference_they_are_not_verified():
    found = list(Checked(Declaration(_half_only(swish, _swish_slope), ONE), seed=0).lines("DBL-CORRECT"))
    assert [v.word for _, v in judged(found, compared=False) if v is not None] == ["not verified"]
