"""One backward pass for a batch of cotangents."""

import numpy as np
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.strategies.generated_functions import DTYPES
from autograd_conformance.suites.contract._grad_and_backward import with_changed_gradients

IN_NUMPY = [dtype for dtype in DTYPES if dtype != "bfloat16"]


@keeps("VMAP-07")
def test_a_batch_of_cotangents_gives_a_batch_of_gradients(subject, data):
    """Each cotangent of a batch gives the gradients that it gives alone."""
    polynomial = subject.polynomial(data, separate=None, materialize=None)
    size, used = _drawn_batch(subject, data, polynomial)
    each = [polynomial.cotangents(used, salt=100 * m) for m in range(size)]
    got = _gradients(subject, polynomial, each)
    expected = zip(*(polynomial.vjp(cotangents) for cotangents in each), strict=True)
    wanted = [None if g[0] is None else np.stack(g) for g in expected]
    subject.assert_all_same("gradients", got=got, expected=[wanted[i] for i in polynomial.tensors])


@keeps("VMAP-07", variant="numpy")
def test_a_backward_in_numpy_refuses_a_batch_of_cotangents(subject, data):
    """A backward that computes with NumPy raises for a batch of cotangents and works for a single one."""
    dtypes = [d for d in subject.dtypes if d in IN_NUMPY] or IN_NUMPY[:1]
    polynomial = subject.polynomial(data, dtypes=dtypes, separate=None, materialize=None, max_arguments=3)
    size, used = _drawn_batch(subject, data, polynomial)
    xp = subject.implementation.xp

    def through_numpy(g):
        return None if g is None else xp.from_numpy(1 * xp.to_numpy(g), like=g)

    cls = with_changed_gradients(subject, polynomial, lambda found: tuple(map(through_numpy, found)))
    each = [polynomial.cotangents(used, salt=100 * m) for m in range(size)]
    what = "a batch of cotangents for a backward that computes with NumPy"
    action = lambda: _gradients(subject, polynomial, each, cls)  # noqa: E731
    subject.assert_raises(subject.implementation.refusals, action, what)
    alone = subject.run(polynomial, cls=cls).gradients(each[0])
    subject.assert_all_same("gradients of one cotangent", got=alone, expected=polynomial.vjp(each[0]))


def _drawn_batch(subject, data, polynomial):
    """Draw the size of the batch, and which outputs have cotangents: at least one."""
    floats = [kind == "float" for kind in polynomial.outputs]
    some = st.tuples(*[st.booleans() if kind else st.just(False) for kind in floats]).filter(any)
    return subject.draw(data, (1, 2, 3), "number of cotangents"), subject.draw(data, some, "outputs that are used")


def _gradients(subject, polynomial, each, cls=None):
    """The gradients of the tensors, for a batch of cotangents."""
    stacked = [None if g[0] is None else np.stack(g) for g in zip(*each, strict=True)]
    given = subject.tensors(stacked, polynomial.dtype)
    f = subject.call_of(polynomial, cls)
    return subject.implementation.batched_vjp(f, subject.primals(polynomial), given, track=polynomial.track)
