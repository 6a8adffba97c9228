"""Gradients where a Function is not differentiable, or not a number."""

import math

import numpy as np
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps

POINTS = (-2.0, -1.0, 1.0, 2.0, math.nan)
COTANGENTS = st.sampled_from((1.0, -2.0, 3.0, math.nan))


def _positive_part(subject, separate):
    """A Function that sets negative elements to zero, and returns the result twice."""
    where = subject.implementation.xp.where
    return subject.custom(
        forward=lambda x: (where(x > 0, x, 0), where(x > 0, x, 0)),
        setup_context=lambda ctx, inputs, _: ctx.save_for_backward(*inputs),
        backward=lambda ctx, g, h: where(ctx.saved_tensors[0] > 0, g + h, 0),
        separate=separate,
    )


@keeps("KINK-02", needs="tuples")
def test_a_nan_cotangent_reaches_what_uses_it_alone(subject, data):
    """NaN in a cotangent shows up in the entries that use it and nowhere else."""
    entries = st.lists(st.tuples(st.sampled_from(POINTS), COTANGENTS, COTANGENTS), min_size=1, max_size=4)
    x, g, h = np.transpose(subject.draw(data, entries, "input and two cotangents of each entry"))
    dtype = subject.draw(data, subject.dtypes, "dtype")
    f = _positive_part(subject, subject.draw(data, st.booleans(), "separate style"))
    _, pullback = subject.implementation.vjp(f, subject.tensors([x], dtype))
    (found,) = pullback(subject.tensors([g, h], dtype))
    expected = np.where(x > 0, g + h, 0.0)
    free = np.isnan(x)
    got = np.where(free, 0.0, subject.implementation.numpy(found))
    subject.assert_same("gradient where the input is a number", got=got, expected=np.where(free, 0.0, expected))
