"""Derivatives of gradients, and forward mode, of functions with a custom gradient."""

import numpy as np
import tensorflow as tf
from hypothesis import strategies as st

from autograd_conformance.harness.checking.marks import keeps
from autograd_conformance.suites.dialects.tensorflow._custom_rules import (
    COMPILED,
    EAGER,
    drawn_rule,
    outputs_and_gradients,
)

# Functions run eagerly, or compiled together with their differentiation.
WHOLE = (EAGER, "under tf.function")
FACTORS = st.sampled_from((2.0, 3.0, 5.0, 7.0))


def _ran(mode, f, *args):
    return (tf.function(f, autograph=False) if mode != EAGER else f)(*args)


def _twice(f, x):
    """First and second derivative of the sum of the outputs."""
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        first = inner.gradient(y, x)
    return first, outer.gradient(first, x)


def _numbers(subject, data):
    """Distinct small integers as a tensor and an array."""
    drawn = subject.draw(data, st.permutations((-2.0, 1.0, 3.0)), "x")
    return subject.tensor(np.array(drawn)), np.array(drawn)


def _nested(rule):
    """A function whose grad_fn calls a second custom function, which has the gradient ``rule(x, cotangent)``."""

    @tf.custom_gradient
    def function(x):
        def first_order(dy):
            @tf.custom_gradient
            def first_order_custom(_):
                return 4 * x, lambda ddy: rule(x, ddy)

            return dy * first_order_custom(x)

        return x * x, first_order

    return function


@keeps("TENSORFLOW-NEST-01")
def test_second_derivatives_come_of_what_grad_fn_computes(subject, data):
    """The second derivative differentiates the operations of grad_fn."""
    power, factor = subject.draw(data, st.integers(2, 4), "power"), subject.draw(data, FACTORS, "factor")
    (x, values), mode = _numbers(subject, data), subject.draw(data, WHOLE, "mode")

    @tf.custom_gradient
    def function(x):
        return x, lambda g: g * factor * x**power

    got = _ran(mode, lambda x: _twice(function, x), x)
    expected = [factor * values**power, factor * power * values ** (power - 1)]
    subject.assert_all_same("first and second derivative", got=got, expected=expected)


@keeps("TENSORFLOW-NEST-02")
def test_an_inner_custom_gradient_determines_the_second_derivative(subject, data):
    """A custom gradient inside grad_fn decides the second derivative."""
    factor = subject.draw(data, FACTORS, "factor")
    (x, values), mode = _numbers(subject, data), subject.draw(data, WHOLE, "mode")
    got = _ran(mode, lambda x: _twice(_nested(lambda x, ddy: factor * ddy * x), x), x)
    subject.assert_all_same("first and second derivative", got=got, expected=[4 * values, factor * values])


@keeps("TENSORFLOW-NEST-03")
def test_the_printed_example_of_nesting(subject, data):
    """The nesting example of the documentation runs and has the right derivatives."""
    factor = subject.draw(data, FACTORS, "factor")
    x, values = _numbers(subject, data)
    function = _nested(lambda x, ddy: (factor * ddy * x, ddy))
    got = subject.assert_accepted(lambda: _twice(function, x), "the printed example")
    subject.assert_all_same("first and second derivative", got=got, expected=[4 * values, factor * values])


@keeps("TENSORFLOW-NEST-04")
def test_a_decorated_grad_fn_has_its_rule_for_the_cotangent(subject, data):
    """A decorated grad_fn has its rule's derivative by the cotangent, and None by the input."""
    factor = subject.draw(data, FACTORS, "factor")
    (x, values), mode = _numbers(subject, data), subject.draw(data, WHOLE, "mode")

    @tf.custom_gradient
    def function(x):
        @tf.custom_gradient
        def grad_fn(dy):
            return 4 * x * dy, lambda ddy: factor * ddy

        return x * x, grad_fn

    def both(x, dy):
        with tf.GradientTape() as outer:
            outer.watch((x, dy))
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = function(x)
            first = inner.gradient(y, x, output_gradients=dy)
        return first, outer.gradient(first, (x, dy))

    first, second = _ran(mode, both, x, subject.tensor(np.ones(3)))
    subject.assert_same("first derivative", got=first, expected=4 * values)
    subject.assert_all_same("its gradients for x and the cotangent", got=second, expected=[None, np.full(3, factor)])


def _check_tangents(subject, data, mode):
    rule = drawn_rule(subject, data, shape=(2,))
    primals, tangents = (subject.tensors(v, rule.dtype) for v in (rule.values, rule.values[::-1]))
    function = rule.function()
    call = tf.function(function, autograph=False) if mode == COMPILED else function
    with tf.autodiff.ForwardAccumulator(primals, tangents) as accumulator:
        outputs = call(*primals)
    expected = [np.asarray(sum(map(np.multiply, row, rule.values[::-1]))) for row in rule.backward]
    subject.assert_all_same("tangents", got=accumulator.jvp(outputs), expected=expected)


@keeps("TENSORFLOW-FWD-01")
def test_tangents_are_those_of_the_transposed_rule(subject, data):
    """Forward mode gives the transpose of grad_fn, eagerly."""
    _check_tangents(subject, data, EAGER)


@keeps("TENSORFLOW-FWD-01", variant="compiled", examples=0.6)
def test_tangents_of_a_compiled_function_are_those_of_the_transposed_rule(subject, data):
    """Forward mode gives the transpose of grad_fn, for a compiled function."""
    _check_tangents(subject, data, COMPILED)


@keeps("TENSORFLOW-FWD-02")
def test_tangents_can_be_asked_for_at_any_time(subject, data):
    """jvp gives the same within the context and after it, any number of times."""
    factor, times = subject.draw(data, FACTORS, "factor"), subject.draw(data, st.integers(1, 3), "calls")
    x, values = _numbers(subject, data)
    with tf.autodiff.ForwardAccumulator(x, x) as accumulator:
        y = factor * x
        within = [accumulator.jvp(y) for _ in range(times)]
    after = [accumulator.jvp(y) for _ in range(times)]
    subject.assert_all_same("tangents", got=[*within, *after], expected=[factor * values] * (2 * times))


@keeps("TENSORFLOW-FWD-03")
def test_what_does_not_depend_on_the_primal_has_no_tangent(subject, data):
    """Outputs of another input have no tangent, or zeros if asked for."""
    rule = drawn_rule(subject, data, shape=(3,), inputs=1)
    unconnected = subject.draw(data, tuple(tf.UnconnectedGradients), "unconnected gradients")
    x, other = subject.tensors([rule.values[0], np.ones(3)], rule.dtype)
    with tf.autodiff.ForwardAccumulator(x, x) as accumulator:
        outputs = rule.function()(other)
    zero = unconnected == tf.UnconnectedGradients.ZERO
    got = accumulator.jvp(outputs, unconnected_gradients=unconnected)
    subject.assert_all_same("tangents", got=got, expected=[np.zeros(3) if zero else None] * rule.outputs)


@keeps("TENSORFLOW-FWD-04")
def test_an_accumulator_around_a_tape_gives_hessian_vector_products(subject, data):
    """Forward mode over a tape gives the JVP of what grad_fn computes."""
    power, factor = subject.draw(data, st.integers(2, 4), "power"), subject.draw(data, FACTORS, "factor")
    (x, values), mode = _numbers(subject, data), subject.draw(data, (EAGER, COMPILED), "mode")

    @tf.custom_gradient
    def function(x):
        return x, lambda g: g * factor * x**power

    with tf.autodiff.ForwardAccumulator(x, 2 * x) as accumulator:
        _, (gradient,) = outputs_and_gradients(function, [x], mode=mode)
    subject.assert_same("gradient", got=gradient, expected=factor * values**power)
    expected = factor * power * values ** (power - 1) * 2 * values
    subject.assert_same("Hessian-vector product", got=accumulator.jvp(gradient), expected=expected)
