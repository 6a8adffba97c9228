"""tf.custom_gradient of functions that read variables."""

import numpy as np
import tensorflow as tf
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.tensorflow._functions import (
    COMPILED,
    EAGER,
    MODES,
    TensorFlowCase,
    compiled,
    outputs_and_gradients,
    taped,
)


def _drawn(subject, data):
    """A case, its first argument as a tensor, and its other arguments as variables."""
    case = TensorFlowCase(subject, data, min_arguments=2, max_arguments=4, shapes=((2,),))
    first, *others = case.points
    return case, first, [tf.Variable(x) for x in others]


def _reading(case, known, change=lambda found: found):
    """A function of the first argument that reads the variables; ``change`` is applied to their gradients."""

    @tf.custom_gradient
    def function(x):
        def grad_fn(*cotangents, variables=None):
            first, *others = case.linear.pulled(*cotangents)
            found = {id(v): g for v, g in zip(known, others, strict=True)}
            return first, change([found[id(v)] for v in variables])

        return case.linear.primal(x, *known), grad_fn

    return function


@keeps("TENSORFLOW-VAR-01", examples=0.6)
def test_variables_get_their_gradients(subject, data):
    """Variables that the function reads get the gradients that grad_fn returns for them."""
    (case, x, variables), mode = _drawn(subject, data), subject.draw(data, (EAGER, COMPILED), "mode")
    f = _reading(case, variables)
    tape, outputs = taped(compiled(f) if mode == COMPILED else f, [x])
    case.assert_outputs(outputs)
    case.assert_gradients_of_sum(tape.gradient(outputs, [x, *variables]))


@keeps("TENSORFLOW-VAR-02", examples=0.6)
def test_variables_need_the_keyword(subject, data):
    """A grad_fn without the keyword variables raises TypeError if the function reads variables."""
    (case, x, variables), mode = _drawn(subject, data), subject.draw(data, MODES, "mode")
    function = tf.custom_gradient(lambda x: (case.linear.primal(x, *variables), lambda *gs: case.linear.pulled(*gs)[0]))
    what = "a function that reads variables, with a grad_fn that does not take them"
    action = lambda: outputs_and_gradients(function, [x], mode=mode)  # noqa: E731
    subject.assert_raises(TypeError, action, what, naming=["variables"])


@keeps("TENSORFLOW-VAR-03", examples=0.6)
def test_one_gradient_for_each_variable(subject, data):
    """Another number of variable gradients than variables raises ValueError."""
    (case, x, variables), mode = _drawn(subject, data), subject.draw(data, (EAGER, COMPILED), "mode")
    wrong = [n for n in range(5) if n != len(variables)]
    count = subject.draw(data, wrong, "number of gradients returned for the variables")
    function = _reading(case, variables, lambda found: (found * 4)[:count])
    what = f"{count} gradients for {len(variables)} variables"
    action = lambda: outputs_and_gradients(function, [x], mode=mode)  # noqa: E731
    subject.assert_raises(ValueError, action, what, naming=["gradient", "variable"])


@keeps("TENSORFLOW-VAR-04")
def test_variables_among_the_arguments_are_inputs(subject, data):
    """Variables that are arguments are inputs, and grad_fn gets only the other ones as variables."""
    case, x, variables = _drawn(subject, data)
    passed = subject.draw(data, st.integers(1, len(variables)), "variables that are arguments")
    given, read, seen = variables[:passed], variables[passed:], []

    @tf.custom_gradient
    def function(*inputs):
        def grad_fn(*cotangents, variables=None):
            seen.extend(variables or ())
            found = case.linear.pulled(*cotangents)
            return (found[: len(inputs)], list(found[len(inputs) :])) if read else found

        return case.linear.primal(*inputs, *read), grad_fn

    tape, outputs = taped(lambda x: function(x, *given), [x])
    found = subject.assert_accepted(lambda: tape.gradient(outputs, [x, *given]), "its gradient")
    subject.assert_equal("number of variables that grad_fn gets", got=len(seen), expected=len(read))
    expected = case.linear.pulled(*case.linear.ones)[: 1 + passed]
    subject.assert_all_same("gradients of the arguments", got=found, expected=expected)


@keeps("TENSORFLOW-VAR-05")
def test_the_default_stays_where_no_variable_is_read(subject, data):
    """grad_fn keeps its default for variables if no trainable variable is read."""
    case, seen = TensorFlowCase(subject, data, MODES, shapes=((2,),)), []
    default = subject.draw(data, (None, "mine"), "default of variables")
    fixed = tf.Variable(np.ones(2), trainable=False, dtype=case.linear.dtype)
    reads = subject.draw(data, (False, True), "reads one that is not trained")

    @tf.custom_gradient
    def function(*xs):
        def grad_fn(*cotangents, variables=default):
            seen.append(variables)
            return case.linear.pulled(*cotangents)

        return case.linear.primal(*(x * fixed if reads else x for x in xs)), grad_fn

    _, found = case.differentiated(function)
    subject.assert_equal("what grad_fn gets as variables", got=seen[-1], expected=default)
    case.assert_gradients_of_sum(found)
