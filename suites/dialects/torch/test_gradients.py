"""How autograd.grad and .grad treat gradients that backward returns: None, sparse, on another device."""

import numpy as np
import torch
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.contract._grad_and_backward import (
    argument_gradients,
    drawn_way,
    replaced,
    with_changed_gradients,
    with_rule,
)
from autograd_conformance.suites.dialects.torch._leaves import new_leaves

# How many backward passes run, and from where: grad, Tensor.backward or autograd.backward.
PASSES = st.lists(st.sampled_from(("grad", "method", "function")), min_size=1, max_size=4)


@keeps("GRAD-06", variant="allow_unused")
def test_grad_raises_for_none_unless_unused_is_allowed(subject, data):
    """grad raises for an input whose gradient is None, and gives None with allow_unused."""
    polynomial = subject.polynomial(data, arguments=("tracked",), outputs=("float",))
    withheld = subject.draw(data, st.sets(st.sampled_from(polynomial.tensors), min_size=1), "inputs that get None")
    leaves, cotangents = new_leaves(subject, polynomial), polynomial.cotangents()
    cls = with_changed_gradients(
        subject, polynomial, lambda found: tuple(None if i in withheld else g for i, g in enumerate(found))
    )
    outputs = subject.call_of(polynomial, cls)(*leaves)
    given = subject.tensors(cotangents, polynomial.dtype)
    subject.assert_raises(
        RuntimeError,
        lambda: torch.autograd.grad(outputs, leaves, given, retain_graph=True),
        "grad with respect to inputs whose gradient is None",
        naming=["allow_unused"],
    )
    got = torch.autograd.grad(outputs, leaves, given, retain_graph=True, allow_unused=True)
    expected = [None if i in withheld else g for i, g in enumerate(polynomial.vjp(cotangents))]
    subject.assert_all_same("gradients with allow_unused", got=got, expected=expected)
    others = [x for i, x in enumerate(leaves) if i not in withheld]
    found = torch.autograd.grad(outputs, others, given) if others else ()
    subject.assert_all_same("gradients of the others", got=found, expected=[g for g in expected if g is not None])


@keeps("GRAD-13")
def test_a_gradient_on_another_device_raises(subject, data):
    """A gradient on another device raises, and the error names both devices and the position."""
    polynomial = subject.polynomial(data, separate=None, shapes=((1,), (3,), (2, 3)))
    position = subject.draw(data, polynomial.tracked, "position of the argument")
    other = subject.draw(data, sorted({"cpu", "meta"} - {subject.device}), "device of the gradient")
    way, cotangents = drawn_way(subject, data), polynomial.cotangents()
    value = torch.ones(polynomial.shape, dtype=getattr(torch, polynomial.dtype), device=other)
    cls = with_changed_gradients(subject, polynomial, lambda found: replaced(found, position, value))
    subject.assert_raises(
        RuntimeError,
        lambda: argument_gradients(subject, way, polynomial, cotangents, cls),
        f"a gradient on {other}",
        naming=[subject.device, other, (position, polynomial.tensors.index(position))],
    )
    right = argument_gradients(subject, way, polynomial, cotangents)
    subject.assert_all_same("gradients on the inputs' device", got=right, expected=polynomial.vjp(cotangents))


def _cotangents_after_passes(subject, data, passes, rule):
    """Run passes with the backward ``rule``; returns the cotangents, their values before, and .grad of the leaves."""
    polynomial = subject.polynomial(data, arguments=("tracked",), max_outputs=1, shapes=((1,), (3,), (2, 3)))
    count, leaves = len(polynomial.arguments), new_leaves(subject, polynomial)
    f = subject.call_of(
        polynomial, with_rule(subject, polynomial, lambda got: tuple(rule(got[0]) for _ in range(count)))
    )
    before = [polynomial.cotangents(salt=n)[0] for n in range(len(passes))]
    given = subject.tensors(before, polynomial.dtype)
    run = {
        "grad": lambda y, g: torch.autograd.grad(y, leaves, g),
        "method": lambda y, g: y.backward(g),
        "function": lambda y, g: torch.autograd.backward(y, g),
    }
    for name, cotangent in zip(passes, given, strict=True):
        run[name](f(*leaves)[0], cotangent)
    return given, before, [x.grad for x in leaves]


@keeps("GRAD-14", variant="passes")
def test_later_passes_leave_earlier_cotangents_alone(subject, data):
    """Several passes leave all cotangents as they were if backward returns what it got."""
    passes = subject.draw(data, PASSES, "passes")
    given, before, _ = _cotangents_after_passes(subject, data, passes, lambda g: g)
    subject.assert_all_same("cotangents of the passes", got=given, expected=before)
    versions = [g._version for g in given]
    subject.assert_equal("in-place changes of the cotangents", got=versions, expected=[0] * len(passes))


@keeps("GRAD-14", variant="views")
def test_later_passes_leave_cotangents_alone_of_which_backward_returned_views(subject, data):
    """Several passes leave all cotangents as they were if backward returns views of them."""
    passes = subject.draw(data, PASSES.filter(lambda names: sum(name != "grad" for name in names) > 1), "passes")
    given, before, _ = _cotangents_after_passes(subject, data, passes, lambda g: g.view_as(g))
    versions = [g._version for g in given]
    subject.assert_that(
        versions == [0] * len(passes), "whether a later pass changed a cotangent", got=True, expected=False
    )
    subject.assert_all_same("cotangents of the passes", got=given, expected=before)


@keeps("GRAD-15", variant="views")
def test_leaves_share_no_gradient_of_which_backward_returned_views(subject, data):
    """.grad fields share no memory with each other or the cotangent if backward returns views."""
    passes = ["function"]
    given, _, grads = _cotangents_after_passes(subject, data, passes, lambda g: g.view_as(g))
    pointers = [t.untyped_storage().data_ptr() for t in (*grads, *given)]
    shared = len(set(pointers)) < len(pointers)
    subject.assert_equal("whether .grad fields and the cotangent share memory", got=shared, expected=False)


@keeps("GRAD-17")
def test_a_sparse_gradient_stays_sparse(subject, data):
    """A sparse gradient of a dense input stays sparse and has the right values."""
    polynomial = subject.polynomial(data, arguments=("tracked", "number"), shapes=((3,), (2, 3), (3, 1, 2)))
    position = subject.draw(data, polynomial.tensors, "argument whose gradient is sparse")
    dense = subject.draw(data, range(len(polynomial.shape)), "dense dimensions")
    values = np.resize([0.0, 2.0, 0.0, -1.0, 3.0], polynomial.shape)
    sparse = subject.tensor(values, polynomial.dtype).to_sparse(len(polynomial.shape) - dense)
    way, cotangents = drawn_way(subject, data), polynomial.cotangents()
    cls = with_changed_gradients(subject, polynomial, lambda found: replaced(found, position, sparse))
    got = argument_gradients(subject, way, polynomial, cotangents, cls)
    layouts = [g.layout for g in got if g is not None]
    wanted = [torch.sparse_coo if i == position else torch.strided for i in polynomial.tensors]
    subject.assert_equal("layouts of the gradients", got=layouts, expected=wanted)
    found = [g.to_dense() if i == position else g for i, g in enumerate(got)]
    expected = replaced(polynomial.vjp(cotangents), position, values)
    subject.assert_all_same("gradients", got=found, expected=expected)


@keeps("GRAD-17", variant="accumulated")
def test_sparse_gradients_accumulate(subject, data):
    """.grad is sparse exactly if all gradients that it sums are."""
    passes = subject.draw(
        data, st.lists(st.booleans(), min_size=1, max_size=4), "whether each pass's gradient is sparse"
    )
    x = subject.tensor(np.zeros((2, 3)), "float32").requires_grad_()
    values = np.resize([0.0, 2.0, -1.0], (2, 3))
    rules = {True: lambda ctx, g: g.to_sparse(), False: lambda ctx, g: g}
    for sparse in passes:
        double = subject.custom(forward=lambda ctx, x: x * 2, backward=rules[sparse])
        double(x).backward(subject.tensor(values, "float32"))
    subject.assert_equal("whether .grad is sparse", got=x.grad.is_sparse, expected=all(passes))
    total = x.grad.to_dense() if x.grad.is_sparse else x.grad
    subject.assert_same(".grad", got=total, expected=values * len(passes))
