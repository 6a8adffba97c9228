"""Derivatives of derivatives: grad mode in backward, and which tensors have a history there."""

from contextlib import nullcontext

import numpy as np
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.strategies.generated_functions import flags
from autograd_conformance.suites.contract._derivatives import (
    ENTRIES,
    FACTORS,
    derivative_function,
    gradient_function,
)
from autograd_conformance.suites.contract._grad_and_backward import with_changed_gradients

STEPS = ("square of an input", "cube of an input", "reciprocal by its output", "square by input and output")
EXPONENTS = dict(zip(STEPS, (2, 3, -1, 2), strict=True))


def _wide(subject):
    """The dtypes in which high powers of small integers are exact."""
    return tuple(d for d in subject.dtypes if d in ("float64", "float32")) or ("float64",)


def _falling(exponent, order):
    """The coefficient of the derivative of that order of x ** exponent."""
    return np.prod([exponent - n for n in range(order)], dtype=float)


def _function(subject, forward, backward, save, separate=False):
    """A Function that saves what ``save`` picks of its input and its outputs."""

    def setup_context(ctx, inputs, outputs):
        ctx.save_for_backward(*save(*inputs, outputs))

    return subject.custom(forward=forward, setup_context=setup_context, backward=backward, separate=separate)


@keeps("DBL-01")
def test_grad_mode_in_backward_follows_create_graph(subject, data):
    """For grad: backward records exactly under create_graph, whatever the caller's grad mode."""
    polynomial = subject.polynomial(data)
    create_graph = subject.draw(data, (True, False), "create_graph")
    recording = subject.draw(data, (True, False), "grad mode of the caller")
    seen = []
    run = subject.run(polynomial, cls=_probed(subject, polynomial, seen))
    with nullcontext() if recording else subject.implementation.no_grad():
        found = run.gradients(polynomial.cotangents(), differentiable=create_graph)
    _assert_recorded(subject, polynomial, create_graph, seen, found)


@keeps("DBL-01", variant="backward", needs="accumulate")
def test_grad_mode_in_backward_follows_create_graph_where_gradients_accumulate(subject, data):
    """For backward(): the backward of the Function records exactly under create_graph."""
    polynomial = subject.polynomial(data)
    create_graph = subject.draw(data, (True, False), "create_graph")
    seen = []
    found = subject.implementation.backward(
        subject.call_of(polynomial, _probed(subject, polynomial, seen)),
        subject.primals(polynomial),
        subject.tensors(polynomial.cotangents(), polynomial.dtype),
        track=polynomial.track,
        differentiable=create_graph,
    )
    _assert_recorded(subject, polynomial, create_graph, seen, found)


def _probed(subject, polynomial, seen):
    """The generated Function; its backward notes for each tracked input whether an operation on it is recorded."""
    cls = subject.body(polynomial)

    def backward(ctx, *cotangents):
        pairs = zip(ctx.saved_tensors, polynomial.floating, strict=True)
        seen.extend(subject.implementation.requires_grad(x * 2) for x, i in pairs if polynomial.needs[i])
        return cls.backward(ctx, *cotangents)

    return subject.define(cls, backward=backward)


def _assert_recorded(subject, polynomial, create_graph, seen, gradients):
    """backward is recorded if it builds a graph, and then the gradients that depend on inputs require grad."""
    subject.assert_equal("recording in backward", got=seen, expected=[create_graph] * sum(polynomial.needs))
    got = [subject.implementation.requires_grad(g) for g in gradients if g is not None]
    expected = [create_graph and polynomial.power == 2] * sum(polynomial.needs)
    subject.assert_equal("requires_grad of the gradients", got=got, expected=expected)


def _step(subject, name, separate):
    bodies = {
        "square of an input": (lambda x: x * x, lambda g, x: g * 2 * x, lambda x, y: (x,)),
        "cube of an input": (lambda x: x * x * x, lambda g, x: g * 3 * x * x, lambda x, y: (x,)),
        "reciprocal by its output": (lambda x: 1 / x, lambda g, y: -g * y * y, lambda x, y: (y,)),
        "square by input and output": (lambda x: x * x, lambda g, x, y: 2 * g * y / x, lambda x, y: (x, y)),
    }
    forward, rule, save = bodies[name]
    return _function(subject, forward, lambda ctx, g: rule(g, *ctx.saved_tensors), save, separate)


@keeps("DBL-02")
def test_saved_inputs_and_outputs_give_derivatives_of_any_order(subject, data):
    """First to fourth derivatives are right if backward uses saved inputs or outputs."""
    names = subject.draw(data, st.lists(st.sampled_from(STEPS), min_size=1, max_size=2), "steps")
    order, weight = subject.draw(data, (1, 2, 3, 4), "order"), subject.draw(data, FACTORS, "cotangents")
    x, dtype = np.array(subject.draw(data, ENTRIES, "x")), subject.draw(data, _wide(subject), "dtype")
    separate = subject.draw(data, st.booleans(), "separate style")
    steps = [_step(subject, name, separate) for name in names]

    def f(x):
        for step in steps:
            x = step(x)
        return x

    got = derivative_function(subject, f, order, subject.tensor(weight + 0 * x, dtype))(subject.tensor(x, dtype))
    exponent = np.prod([EXPONENTS[name] for name in names])
    expected = weight**order * _falling(exponent, order) * x ** float(exponent - order)
    subject.assert_all_same("derivative", got=got, expected=[expected])


@keeps("DBL-03")
def test_a_saved_intermediate_has_no_history(subject, data):
    """The second derivative lacks exactly the part that goes through a saved intermediate."""
    a, b = subject.draw(data, FACTORS, "a"), subject.draw(data, FACTORS, "b")
    share = subject.draw(data, (0, 1, 2, 3), "share of backward that the intermediate has")
    x, dtype = np.array(subject.draw(data, ENTRIES, "x")), subject.draw(data, subject.dtypes, "dtype")

    def forward(ctx, x):
        t = a * x * x
        ctx.save_for_backward(x, t)
        return b * t * x

    def backward(ctx, g):
        x, t = ctx.saved_tensors
        return g * b * (share * t + (3 - share) * a * x * x)

    cube = subject.custom(forward=forward, backward=backward)
    first = gradient_function(subject, cube, [subject.tensor(2 + 0 * x, dtype)])
    second = gradient_function(subject, first, [subject.tensor(1 + 0 * x, dtype)])
    got = [*first(subject.tensor(x, dtype)), *second(subject.tensor(x, dtype))]
    expected = [6 * a * b * x * x, 4 * (3 - share) * a * b * x]
    subject.assert_all_same("first and second derivative", got=got, expected=expected)


@keeps("DBL-04", needs="tuples")
def test_returned_intermediates_make_second_derivatives_right(subject, data):
    """If forward returns the intermediates as outputs, derivatives of higher order are right."""
    last = subject.draw(data, (3, 4, 5), "highest power")
    order, weight = subject.draw(data, (1, 2, 3), "order"), subject.draw(data, FACTORS, "cotangents")
    output = subject.draw(data, range(last - 1), "output differentiated")
    squared = subject.draw(data, (False, True), "squared")
    x, dtype = np.array(subject.draw(data, ENTRIES, "x")), subject.draw(data, _wide(subject), "dtype")

    def forward(x):
        powers = [x * x]
        for _ in range(last - 2):
            powers.insert(0, powers[0] * x)
        return tuple(powers)

    def backward(ctx, *cotangents):
        x, *powers = ctx.saved_tensors
        terms = zip(range(last, 1, -1), cotangents, (*powers[1:], x), strict=True)
        return sum(n * g * lower for n, g, lower in terms)

    separate = subject.draw(data, st.booleans(), "separate style")
    apply = _function(subject, forward, backward, lambda x, outputs: (x, *outputs), separate)

    def f(x):
        y = apply(x)[output]
        return y * y if squared else y

    exponent = (last - output) * (2 if squared else 1)
    expected = weight**order * _falling(exponent, order) * x ** float(max(exponent - order, 0))
    got = derivative_function(subject, f, order, subject.tensor(weight + 0 * x, dtype))(subject.tensor(x, dtype))
    subject.assert_all_same("derivative", got=got, expected=[expected])


@keeps("DBL-06", needs="numpy")
def test_a_function_called_in_backward_is_differentiated(subject, data):
    """A backward that calls another Function takes higher derivatives from that Function's backward."""
    order, weight = subject.draw(data, (1, 2, 3, 4), "order"), subject.draw(data, FACTORS, "cotangents")
    x, dtype = np.array(subject.draw(data, ENTRIES, "x")), subject.draw(data, _wide(subject), "dtype")
    numpy = subject.implementation.numpy

    def forward(ctx, g, x):
        ctx.save_for_backward(g, x)
        return subject.tensor(numpy(g) * 3 * numpy(x) ** 2, dtype)

    def backward(ctx, gg):
        g, x = ctx.saved_tensors
        return gg * 3 * x * x, gg * g * 6 * x

    inner = subject.custom(forward=forward, backward=backward)
    cube = _function(subject, lambda x: x * x * x, lambda ctx, g: inner(g, *ctx.saved_tensors), lambda x, y: (x,))
    got = derivative_function(subject, cube, order, subject.tensor(weight + 0 * x, dtype))(subject.tensor(x, dtype))
    expected = weight**order * _falling(3, order) * x ** float(max(3 - order, 0))
    subject.assert_all_same("derivative", got=got, expected=[expected])


@keeps("DBL-07")
def test_what_backward_computes_outside_the_framework_does_not_require_grad(subject, data):
    """Only the gradients that are computed with the framework require grad."""
    polynomial = subject.polynomial(data, powers=(2,))
    outside = subject.draw(data, flags(len(polynomial.arguments)), "computed with NumPy")
    numpy = subject.implementation.numpy

    def mixed(gradients):
        pairs = zip(gradients, outside, strict=True)
        return tuple(subject.tensor(numpy(g), polynomial.dtype) if away and g is not None else g for g, away in pairs)

    cls, cotangents = with_changed_gradients(subject, polynomial, mixed), polynomial.cotangents()
    found = subject.run(polynomial, cls=cls).gradients(cotangents, differentiable=True)
    subject.assert_all_same("gradients", got=found, expected=polynomial.vjp(cotangents))
    got = [subject.implementation.requires_grad(g) for g in found if g is not None]
    expected = [not away for away, need in zip(outside, polynomial.needs, strict=True) if need]
    subject.assert_equal("requires_grad of the gradients", got=got, expected=expected)
