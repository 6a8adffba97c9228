"""Derivatives of gradients, and forward mode, of functions with a custom gradient."""

import numpy as np
import tensorflow as tf
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.shared import sentences
from autograd_conformance.suites.dialects.shared.sentences import row
from autograd_conformance.suites.dialects.tensorflow._functions import (
    COMPILED,
    EAGER,
    EAGERLY,
    UNCONNECTED,
    TensorFlowCase,
    compiled,
    custom,
    outputs_and_gradients,
    permuted,
    taped,
)

# Functions run eagerly, or compiled together with their differentiation.
WHOLE = {"eager": lambda f: f, "under tf.function": compiled}
FACTORS = st.sampled_from((2.0, 3.0, 5.0, 7.0))


def _twice(f, x):
    """First and second derivative of the sum of the outputs."""
    outer, first = taped(lambda x: outputs_and_gradients(f, [x])[1][0], [x])
    return first, outer.gradient(first, x)


def _nested(rule):
    """A function whose grad_fn calls a second custom function, which has the gradient ``rule(x, cotangent)``."""

    def first_order(xs, gs):
        (x,), (g,) = xs, gs
        return g * custom(lambda _: 4 * x, lambda _, more: rule(x, *more))(x)

    return custom(lambda x: x * x, first_order)


test_second_derivatives = row(
    "TENSORFLOW-NEST-01",
    sentences.the_rule_is_differentiated,
    EAGERLY,
    shape=(3,),
    ways={name: lambda f, x, run=run: run(lambda x: _twice(f, x))(x) for name, run in WHOLE.items()},
)


@keeps("TENSORFLOW-NEST-02")
def test_an_inner_custom_gradient_determines_the_second_derivative(subject, data):
    """A custom gradient inside grad_fn decides the second derivative."""
    factor, run = subject.draw(data, FACTORS, "factor"), WHOLE[subject.draw(data, WHOLE, "mode")]
    x, values = permuted(subject, data)
    function = _nested(lambda x, ddy: factor * ddy * x)
    got = run(lambda x: _twice(function, x))(x)
    subject.assert_all_same("first and second derivative", got=got, expected=[4 * values, factor * values])


@keeps("TENSORFLOW-NEST-03")
def test_the_printed_example_of_nesting(subject, data):
    """The nesting example of the documentation runs and has the right derivatives."""
    factor = subject.draw(data, FACTORS, "factor")
    x, values = permuted(subject, data)
    function = _nested(lambda x, ddy: (factor * ddy * x, ddy))
    got = subject.assert_accepted(lambda: _twice(function, x), "the printed example")
    subject.assert_all_same("first and second derivative", got=got, expected=[4 * values, factor * values])


@keeps("TENSORFLOW-NEST-04")
def test_a_decorated_grad_fn_has_its_rule_for_the_cotangent(subject, data):
    """A decorated grad_fn has its rule's derivative by the cotangent, and None by the input."""
    factor, run = subject.draw(data, FACTORS, "factor"), WHOLE[subject.draw(data, WHOLE, "mode")]
    x, values = permuted(subject, data)

    @tf.custom_gradient
    def function(x):
        return x * x, tf.custom_gradient(lambda dy: (4 * x * dy, lambda ddy: factor * ddy))

    def both(x, dy):
        outer, first = taped(lambda x, dy: outputs_and_gradients(function, [x], dy)[1][0], [x, dy])
        return first, outer.gradient(first, [x, dy])

    first, second = run(both)(x, subject.tensor(np.ones(3)))
    subject.assert_same("first derivative", got=first, expected=4 * values)
    subject.assert_all_same("its gradients for x and the cotangent", got=second, expected=[None, np.full(3, factor)])


def _check_tangents(subject, data, run):
    case = TensorFlowCase(subject, data, shapes=((2,),))
    with tf.autodiff.ForwardAccumulator(case.points, case.tensors(case.linear.tangents)) as accumulator:
        outputs = run(case.custom())(*case.points)
    expected = case.linear.pushed(*case.linear.tangents)
    subject.assert_all_same("tangents", got=accumulator.jvp(outputs), expected=expected)


@keeps("TENSORFLOW-FWD-01")
def test_tangents_are_those_of_the_transposed_rule(subject, data):
    """Forward mode gives the transpose of grad_fn, eagerly."""
    _check_tangents(subject, data, lambda f: f)


@keeps("TENSORFLOW-FWD-01", variant="compiled", examples=0.6)
def test_tangents_of_a_compiled_function_are_those_of_the_transposed_rule(subject, data):
    """Forward mode gives the transpose of grad_fn, for a compiled function."""
    _check_tangents(subject, data, compiled)


@keeps("TENSORFLOW-FWD-02")
def test_tangents_can_be_asked_for_at_any_time(subject, data):
    """jvp gives the same within the context and after it, any number of times."""
    factor, times = subject.draw(data, FACTORS, "factor"), subject.draw(data, st.integers(1, 3), "calls")
    x, values = permuted(subject, data)
    with tf.autodiff.ForwardAccumulator(x, x) as accumulator:
        y = factor * x
        within = [accumulator.jvp(y) for _ in range(times)]
    after = [accumulator.jvp(y) for _ in range(times)]
    subject.assert_all_same("tangents", got=[*within, *after], expected=[factor * values] * (2 * times))


@keeps("TENSORFLOW-FWD-03")
def test_what_does_not_depend_on_the_primal_has_no_tangent(subject, data):
    """Outputs of another input have no tangent, or zeros if asked for."""
    case = TensorFlowCase(subject, data, arguments=1)
    unconnected = subject.draw(data, UNCONNECTED, "unconnected gradients")
    (x,), (other,) = case.points, case.tensors(case.linear.points)
    with tf.autodiff.ForwardAccumulator(x, x) as accumulator:
        outputs = case.custom()(other)
    nothing = case.linear.zeros if unconnected == tf.UnconnectedGradients.ZERO else None
    got = accumulator.jvp(outputs, unconnected_gradients=unconnected)
    subject.assert_all_same("tangents", got=got, expected=[nothing] * case.linear.outputs)


@keeps("TENSORFLOW-FWD-04")
def test_an_accumulator_around_a_tape_gives_hessian_vector_products(subject, data):
    """Forward mode over a tape gives the JVP of what grad_fn computes."""
    power, factor = subject.draw(data, st.integers(2, 4), "power"), subject.draw(data, FACTORS, "factor")
    (x, values), mode = permuted(subject, data), subject.draw(data, (EAGER, COMPILED), "mode")
    function = custom(lambda x: x, lambda xs, gs: gs[0] * factor * xs[0] ** power)
    with tf.autodiff.ForwardAccumulator(x, 2 * x) as accumulator:
        _, (gradient,) = outputs_and_gradients(function, [x], mode=mode)
    subject.assert_same("gradient", got=gradient, expected=factor * values**power)
    expected = factor * power * values ** (power - 1) * 2 * values
    subject.assert_same("Hessian-vector product", got=accumulator.jvp(gradient), expected=expected)
