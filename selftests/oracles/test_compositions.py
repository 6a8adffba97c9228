"""What is composed with a Function, before and after it: values, forwards and derivatives."""

from __future__ import annotations

import numpy as np
import pytest

from autograd_conformance.harness.testing.compare import same_bits
from autograd_conformance.strategies import compositions

ARRAYS = [
    np.array(0.5),
    np.array([0.5, -1.25, 2.0]),
    np.arange(6.0).reshape(2, 3) / 4,
    np.zeros((0, 2)),
    np.array([[0.5 - 1j, 2 + 0.25j]]),
]


class _NumPy:
    """NumPy under the names that compositions use."""

    copy, sum, permute_dims, broadcast_to, reshape = np.copy, np.sum, np.transpose, np.broadcast_to, np.reshape


TOOLS = compositions.Tools(_NumPy, lambda x: x * x)


@pytest.mark.parametrize("before", [compositions.SAME, *compositions.BEFORE], ids=repr)
def test_what_comes_before_hands_the_values_on(before: compositions.Before) -> None:
    for x in ARRAYS:
        assert same_bits(np.asarray(before.apply(_NumPy, x)), x)


@pytest.mark.parametrize("after", compositions.AFTER, ids=repr)
def test_what_comes_after_is_its_forward_and_its_pull_the_derivative(after: compositions.After) -> None:
    rng = np.random.default_rng(0)
    for y in ARRAYS:
        out = after.forward(y)
        assert np.array_equal(np.asarray(after.apply(TOOLS, y)), out)
        g = np.asarray(rng.standard_normal(np.shape(out)) + (1j if np.iscomplexobj(y) else 0))
        u = np.asarray(rng.standard_normal(y.shape) + (0.5j if np.iscomplexobj(y) else 0))
        pulled = np.asarray(after.pull(y, g))
        assert pulled.shape == y.shape
        # All are of second degree at most, for which a central difference is exact except for rounding.
        slope = (np.asarray(after.forward(y + u)) - np.asarray(after.forward(y - u))) / 2
        assert abs(np.vdot(g, slope).real - np.vdot(pulled, u).real) <= 1e-13 * (1 + np.sum(np.abs(g)) * 10)
