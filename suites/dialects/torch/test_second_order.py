"""Backward is differentiated: tensors kept as attributes of ctx, and a batch of gradients."""

import numpy as np
import torch
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.torch._powers import power_function

ENTRIES = st.lists(st.sampled_from((1.0, -1.0, 2.0, -2.0)), min_size=1, max_size=3)


# What is kept on ctx: the Function that it belongs to, and how backward uses it.
KEPT = {
    "input": (lambda x: x * x, lambda g, x: g * 2 * x),
    "output": (lambda x: 1 / x, lambda g, y: -g * y * y),
    "intermediate": (lambda x: x * x, lambda g, t: g * 2 * t),
}


def _check_no_second_derivative(subject, data, kinds):
    kept, xs = subject.draw(data, kinds, "kept on ctx"), subject.draw(data, ENTRIES, "x")
    compute, rule = KEPT[kept]

    def forward(ctx, x):
        y = compute(x)
        ctx.kept = {"input": x, "output": y, "intermediate": x * 1}[kept]
        return y

    apply = subject.custom(forward=forward, backward=lambda ctx, g: rule(g, ctx.kept))
    x, g = subject.tensor(xs).requires_grad_(), subject.tensor(np.full(len(xs), 3.0))
    (first,) = torch.autograd.grad(apply(x), x, g.requires_grad_(), create_graph=True)
    slope = rule(1, {"output": 1 / x}.get(kept, x)).detach()
    subject.assert_same("first derivative", got=first, expected=3 * slope)
    second = torch.autograd.grad(first.sum(), (x, g), allow_unused=True)
    subject.assert_same("second derivative with respect to the cotangent", got=second[1], expected=slope)
    subject.assert_same("second derivative through what is kept on ctx", got=second[0], expected=None)


@keeps("DBL-05")
def test_no_gradient_flows_through_inputs_and_outputs_kept_on_ctx(subject, data):
    """No second derivative flows through an input or output kept as an attribute."""
    _check_no_second_derivative(subject, data, ("input", "output"))


@keeps("DBL-05", variant="intermediate")
def test_no_gradient_flows_through_intermediates_kept_on_ctx(subject, data):
    """No second derivative flows through an intermediate kept as an attribute."""
    _check_no_second_derivative(subject, data, ("intermediate",))


@keeps("VMAP-07", variant="create_graph")
def test_a_batch_of_gradients_can_be_differentiated(subject, data):
    """With create_graph a pass over a batch of cotangents is recorded, by x and by the cotangents."""
    _check_batch(subject, data, calling=False)


@keeps("VMAP-07", variant="calling")
def test_a_batch_of_gradients_of_a_function_that_calls_another_can_be_differentiated(subject, data):
    """With create_graph a pass over a batch of cotangents is recorded where backward calls another Function."""
    _check_batch(subject, data, calling=True)


def _check_batch(subject, data, calling):
    exponent, factor = subject.draw(data, (2, 3), "power"), subject.draw(data, (1, -1, 2), "factor")
    size = subject.draw(data, (1, 2, 3), "number of cotangents")
    x, gs = np.array([2.0, -3.0]), np.arange(1.0, 1 + 2 * size).reshape(size, 2)
    leaf, given = (subject.tensor(a).requires_grad_() for a in (x, gs))
    y = power_function(subject, exponent, factor, calling=calling).apply(leaf)
    (got,) = torch.autograd.grad(y, leaf, given, create_graph=True, is_grads_batched=True)
    slope = factor * exponent * x ** (exponent - 1)
    subject.assert_same("gradients of a batch", got=got, expected=slope * gs)
    derivatives = lambda: torch.autograd.grad(got.sum(), (leaf, given))  # noqa: E731
    found = subject.assert_accepted(derivatives, "second derivatives of a batch")
    second = (exponent - 1) * slope / x * gs.sum(axis=0)
    subject.assert_all_same("second derivatives of a batch", got=found, expected=[second, slope + 0 * gs])


@keeps("VMAP-07", variant="unused")
def test_an_unused_input_of_a_batch_of_cotangents_is_left_out(subject, data):
    """For a batch of cotangents, too, an unused input gets None with allow_unused, and zeros if they are asked for."""
    options = subject.draw(data, ({"allow_unused": True}, {"materialize_grads": True}), "options")
    first = subject.draw(data, (False, True), "the unused input first")
    factor = subject.draw(data, (1, -1, 2), "factor")
    x, other = (subject.tensor([2.0, -3.0]).requires_grad_() for _ in range(2))
    y, given = power_function(subject, 2, factor).apply(x), subject.tensor(np.arange(6.0).reshape(3, 2))
    inputs = [other, x] if first else [x, other]
    batched = lambda: torch.autograd.grad(y, inputs, given, is_grads_batched=True, **options)  # noqa: E731
    got = subject.assert_accepted(batched, "a batch of cotangents with an unused input")
    used, unused = reversed(got) if first else got
    subject.assert_same("gradients of a batch", got=used, expected=2 * factor * x.detach() * given)
    what = "gradient of the unused input"
    subject.assert_same(what, got=unused, expected=None if "allow_unused" in options else np.zeros(2))
