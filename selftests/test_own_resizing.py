"""Users' Functions whose outputs have sizes that depend on the values are checked as any others."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch

from autograd_conformance import implementations
from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.check.discovery.discovery import discover
from autograd_conformance.reference import ladder
from autograd_conformance.selftests.specimens.resizing import Positive


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
