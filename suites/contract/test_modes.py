"""Calls under no_grad."""

import numpy as np
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.contract._derivatives import ENTRIES
from autograd_conformance.suites.contract._inplace_and_views import drawn_preparation


@keeps("MODE-01")
def test_a_call_under_no_grad_is_not_recorded(subject, data):
    """A call under no_grad runs forward once; its outputs have no node and do not require grad."""
    polynomial = subject.polynomial(data, separate=None)
    run = subject.run(polynomial, under=subject.implementation.no_grad, prepare=drawn_preparation(subject, data))
    subject.assert_equal("number of forwards under no_grad", got=run.seen.forwards, expected=1)
    subject.assert_all_same("outputs", got=run.outputs, expected=polynomial.forward())
    tensors = [y for y in run.outputs if subject.implementation.is_tensor(y)]
    got = [(subject.implementation.requires_grad(y), subject.implementation.node(y) is not None) for y in tensors]
    what = "requires_grad of the outputs, and whether they have a node,"
    subject.assert_equal(what, got=got, expected=[(False, False)] * len(tensors))


@keeps("MODE-04", variant="no_grad")
def test_forward_mode_works_under_no_grad(subject, data):
    """Under no_grad the outputs have the tangents that jvp returns."""
    moving = subject.draw(data, st.lists(st.booleans(), min_size=1, max_size=3).filter(any), "inputs with a tangent")
    x = np.array(subject.draw(data, ENTRIES, "each input"))

    def weighted(ctx, *xs):
        return sum((n * x for n, x in enumerate(xs[1:], 2)), xs[0] * 1)

    apply = subject.custom(forward=weighted, jvp=weighted)

    def f(*duals):
        with subject.implementation.no_grad():
            return apply(*duals)

    tangents = subject.tensors([3 + 0 * x if flag else None for flag in moving])
    outputs, got = subject.implementation.jvp(f, subject.tensors([x] * len(moving)), tangents)
    subject.assert_all_same("outputs", got=outputs, expected=[x * sum(range(1, len(moving) + 1))])
    expected = 3 * sum(n for n, flag in enumerate(moving, 1) if flag) + 0 * x
    subject.assert_all_same("tangents under no_grad", got=got, expected=[expected])
