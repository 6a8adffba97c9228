"""Users' Functions whose outputs have sizes that depend on the values are checked as any others."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch
from torch.autograd import Function

from autograd_conformance import implementations
from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.check.discovery import discover
from autograd_conformance.reference import ladder
from autograd_conformance.selftests import tiers
from autograd_conformance.selftests.checking import faults_in, lines_of
from autograd_conformance.suites.declared import Checked

COMPARED = ("VJP-FD", "VJP-FD/kinks", "VJP-FD/long", "VJP-FD/small", "VJP-REF", "FWD-VALUE", "VJP-FIT", "DBL-CORRECT")


class Above(Function):
    """Twice the entries above the mean, on which rounding decides where all are equal."""

    @staticmethod
    def forward(ctx, x):
        mask = x > x.mean()
        ctx.save_for_backward(mask)
        return 2 * x[mask]

    @staticmethod
    def backward(ctx, g):
        (mask,) = ctx.saved_tensors
        return 2 * torch.zeros(mask.shape, dtype=g.dtype).masked_scatter(mask, g)


class Positive(Function):
    """The squares of the positive entries."""

    @staticmethod
    def forward(ctx, x):
        mask = x > 0
        ctx.save_for_backward(x, mask)
        return x[mask] ** 2

    @staticmethod
    def backward(ctx, g):
        x, mask = ctx.saved_tensors
        return 2 * x * torch.zeros_like(x).masked_scatter(mask, g)


class Reversed(Positive):
    """One whose gradients come in the opposite order."""

    @staticmethod
    def backward(ctx, g):
        return Positive.backward(ctx, g.flip(0))


def _lines(function, *tests, profile="gate"):
    checked = Checked(Declaration(function, "float[n]"), profile=profile, seed=0, shrink=False)
    return list(lines_of(checked, *tests))


@pytest.mark.parametrize("function", [Above, Positive])
def test_a_right_one_is_verified(function):
    profile = "gate" if tiers.NIGHT else "quick"
    assert {line["outcome"] for line in _lines(function, *COMPARED, profile=profile)} == {"pass"}


def test_a_wrong_one_is_found():
    ((line, verdict),) = faults_in(_lines(Reversed, "VJP-FD"))
    assert (line["outcome"], verdict.word) == ("fail", "wrong")


@pytest.mark.parametrize(("function", "known"), [(Positive, True), (torch.exp, False)])
def test_it_is_known_which_they_are(function, known):
    assert discover(Declaration(function, "float[n]"), implementations.load("torch")).resizes == known


def test_steps_with_another_size_are_left_out():
    def above(points):
        (x,) = points
        return (3 * x[x > 1],)

    def found(*start):
        ones = [ladder.np.ones(n) for n in (len(start), sum(x > 1 for x in start))]
        return ladder.slope(above, (ladder.np.array(start),), (ones[0],), (ones[1],))

    # The two largest steps make the second entry larger than 1.
    between = found(2.0, 0.98)
    assert between.reason is None
    assert abs(between.value - 3) <= between.bound
    assert found(2.0, 1.0).reason == ladder.TOO_FEW
