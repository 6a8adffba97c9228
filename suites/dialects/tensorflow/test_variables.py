"""tf.custom_gradient of functions that read variables."""

import numpy as np
import tensorflow as tf
from hypothesis import strategies as st

from autograd_conformance.harness.checking.marks import keeps
from autograd_conformance.suites.dialects.tensorflow._custom_rules import (
    COMPILED,
    EAGER,
    MODES,
    drawn_rule,
    outputs_and_gradients,
    taped,
)


def _drawn(subject, data):
    """A rule, its first input as a tensor, and its other inputs as variables."""
    rule = drawn_rule(subject, data, inputs=subject.draw(data, (2, 3, 4), "inputs"), shape=(2,))
    first, *others = subject.tensors(rule.values, rule.dtype)
    return rule, first, [tf.Variable(x) for x in others]


def _reading(rule, variables, change=lambda found: found):
    """A function of the first input that reads the variables; ``change`` is applied to their gradients."""

    @tf.custom_gradient
    def function(x):
        def grad_fn(*cotangents, variables=None):
            first, *others = rule.pull(cotangents)
            found = {id(v): g for v, g in zip(known, others, strict=True)}
            return first, change([found[id(v)] for v in variables])

        known = variables
        return rule.compute([x, *variables]), grad_fn

    return function


@keeps("TENSORFLOW-VAR-01", examples=0.6)
def test_variables_get_their_gradients(subject, data):
    """Variables that the function reads get the gradients that grad_fn returns for them."""
    (rule, x, variables), mode = _drawn(subject, data), subject.draw(data, (EAGER, COMPILED), "mode")
    f = _reading(rule, variables)
    call = tf.function(f, autograph=False) if mode == COMPILED else f
    tape, outputs = taped(call, [x])
    found = tape.gradient(outputs, [x, *variables])
    subject.assert_all_same("outputs", got=outputs, expected=rule.expected_outputs())
    subject.assert_all_same("gradients", got=found, expected=rule.expected_gradients(rule.ones))


@keeps("TENSORFLOW-VAR-02", examples=0.6)
def test_variables_need_the_keyword(subject, data):
    """A grad_fn without the keyword variables raises TypeError if the function reads variables."""
    (rule, x, variables), mode = _drawn(subject, data), subject.draw(data, MODES, "mode")

    @tf.custom_gradient
    def function(x):
        return rule.compute([x, *variables]), lambda *gs: rule.pull(gs)[0]

    subject.assert_raises(
        TypeError,
        lambda: outputs_and_gradients(function, [x], mode=mode),
        "a function that reads variables, with a grad_fn that does not take them",
        naming=["variables"],
    )


@keeps("TENSORFLOW-VAR-03", examples=0.6)
def test_one_gradient_for_each_variable(subject, data):
    """Another number of variable gradients than variables raises ValueError."""
    (rule, x, variables), mode = _drawn(subject, data), subject.draw(data, (EAGER, COMPILED), "mode")
    wrong = [n for n in range(5) if n != len(variables)]
    count = subject.draw(data, wrong, "number of gradients returned for the variables")
    function = _reading(rule, variables, lambda found: (found * 4)[:count])
    what = f"{count} gradients for {len(variables)} variables"
    subject.assert_raises(
        ValueError, lambda: outputs_and_gradients(function, [x], mode=mode), what, naming=["gradient", "variable"]
    )


@keeps("TENSORFLOW-VAR-04")
def test_variables_among_the_arguments_are_inputs(subject, data):
    """Variables that are arguments are inputs, and grad_fn gets only the other ones as variables."""
    rule, x, variables = _drawn(subject, data)
    passed = subject.draw(data, st.integers(1, len(variables)), "variables that are arguments")
    given, read, seen = variables[:passed], variables[passed:], []

    @tf.custom_gradient
    def function(*inputs):
        def grad_fn(*cotangents, variables=None):
            seen.extend(variables or ())
            found = rule.pull(cotangents)
            return (found[: len(inputs)], list(found[len(inputs) :])) if read else found

        return rule.compute([*inputs, *read]), grad_fn

    tape, outputs = taped(lambda x: function(x, *given), [x])
    found = subject.assert_accepted(lambda: tape.gradient(outputs, [x, *given]), "its gradient")
    subject.assert_equal("number of variables that grad_fn gets", got=len(seen), expected=len(read))
    expected = rule.expected_gradients(rule.ones)[: 1 + passed]
    subject.assert_all_same("gradients of the arguments", got=found, expected=expected)


@keeps("TENSORFLOW-VAR-05")
def test_the_default_stays_where_no_variable_is_read(subject, data):
    """grad_fn keeps its default for variables if no trainable variable is read."""
    rule, mode = drawn_rule(subject, data, shape=(2,)), subject.draw(data, MODES, "mode")
    default = subject.draw(data, (None, "mine"), "default of variables")
    fixed = tf.Variable(np.ones(2), trainable=False, dtype=rule.dtype)
    reads, seen = subject.draw(data, (False, True), "reads one that is not trained"), []

    @tf.custom_gradient
    def function(*xs):
        def grad_fn(*cotangents, variables=default):
            seen.append(variables)
            return rule.pull(cotangents)

        return rule.compute([x * fixed if reads else x for x in xs]), grad_fn

    _, found = outputs_and_gradients(function, subject.tensors(rule.values, rule.dtype), mode=mode)
    subject.assert_equal("what grad_fn gets as variables", got=seen[-1], expected=default)
    subject.assert_all_same("gradients", got=found, expected=rule.expected_gradients(rule.ones))
