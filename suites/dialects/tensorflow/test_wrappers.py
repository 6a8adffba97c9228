"""tf.recompute_grad, tf.grad_pass_through, tf.stop_gradient, tf.RegisterGradient and its override map."""

import itertools

import numpy as np
import tensorflow as tf
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.shared import sentences
from autograd_conformance.suites.dialects.shared.linear import combined
from autograd_conformance.suites.dialects.shared.sentences import row
from autograd_conformance.suites.dialects.tensorflow._functions import (
    COMPILED,
    EAGER,
    MODES,
    SPELLINGS,
    TensorFlowCase,
    compiled,
    outputs_and_gradients,
    permuted,
    taped,
)

_NUMBERS = itertools.count()


def _new_name():
    """An operation type that is not registered yet."""
    return f"ConformanceGradient{next(_NUMBERS)}"


test_stopped_arguments = row(
    "TENSORFLOW-STOP-01",
    sentences.no_gradient_flows_through_stopped_arguments,
    SPELLINGS,
    examples=0.6,
    stop=lambda: tf.stop_gradient,
)


@keeps("TENSORFLOW-RECOMPUTE-01")
def test_each_backward_pass_runs_the_function_again(subject, data):
    """The function runs once forward, and once more for each backward pass."""
    case, runs = TensorFlowCase(subject, data), []
    calls, passes = subject.draw(data, st.tuples(st.integers(1, 3), st.integers(0, 3)), "calls, backward passes")
    function = tf.recompute_grad(lambda *xs: (runs.append(1), case.linear.primal(*xs))[1])
    tensors = case.points
    tape, outputs = taped(lambda *xs: [function(*xs) for _ in range(calls)], tensors, persistent=True)
    subject.assert_equal("runs forward", got=len(runs), expected=calls)
    for _ in range(passes):
        tape.gradient(outputs, tensors)
    subject.assert_equal("runs after backward passes", got=len(runs), expected=calls * (1 + passes))


@keeps("TENSORFLOW-RECOMPUTE-02", examples=0.6)
def test_recomputed_gradients_are_those_of_the_function(subject, data):
    """Values and gradients of inputs and variables are those of the plain function."""
    case, mode = TensorFlowCase(subject, data, arguments=2), subject.draw(data, (EAGER, COMPILED), "mode")
    x, factor = case.points
    variable = tf.Variable(factor)
    function = tf.recompute_grad(lambda x: case.linear.primal(x * x, x * variable))
    tape, outputs = taped(compiled(function) if mode == COMPILED else function, [x])
    got = tape.gradient(outputs, [x, variable], case.cotangents)
    a, b = (combined(column, case.linear.cotangents) for column in zip(*case.linear.weights, strict=True))
    values, weight = case.linear.points
    expected = [w * values * values + v * values * weight for w, v in case.linear.weights]
    subject.assert_all_same("outputs", got=outputs, expected=expected)
    expected = [2 * a * values + b * weight, b * values]
    subject.assert_all_same("gradients of x and the variable", got=got, expected=expected)


@keeps("TENSORFLOW-RECOMPUTE-03")
def test_the_function_itself_stays_at_hand(subject, data):
    """__wrapped__ is the function, whatever kind of callable it is."""
    case = TensorFlowCase(subject, data)

    class Model:
        def __call__(self, *xs):
            return case.linear.primal(*xs)

    function = subject.draw(data, (case.linear.primal, lambda *xs: case.linear.primal(*xs), Model()), "function")
    got = tf.recompute_grad(function).__wrapped__
    subject.assert_equal("whether __wrapped__ is the function", got=got == function, expected=True)


@keeps("TENSORFLOW-RECOMPUTE-04")
def test_recomputed_functions_refuse_forward_mode(subject, data):
    """Forward mode through recompute_grad raises NotImplementedError."""
    case = TensorFlowCase(subject, data)
    tensors = case.points

    def forward():
        with tf.autodiff.ForwardAccumulator(tensors, tensors) as accumulator:
            outputs = tf.recompute_grad(lambda *xs: case.linear.primal(*xs))(*tensors)
        return accumulator.jvp(outputs)

    what = "forward mode through recompute_grad"
    subject.assert_raises(NotImplementedError, forward, what, naming=["recompute_grad"])


@keeps("TENSORFLOW-RECOMPUTE-04", variant="second")
def test_second_derivatives_through_recomputing_are_never_wrong(subject, data):
    """A second derivative is right, or it raises NotImplementedError."""
    power, outer = subject.draw(data, st.tuples(st.integers(2, 3), st.integers(1, 2)), "powers inside and outside")
    x, values = permuted(subject, data)
    function, total = tf.recompute_grad(lambda x: x**power), power * outer
    tape, (_, (first,)) = taped(lambda x: outputs_and_gradients(lambda x: function(x) ** outer, [x]), [x])
    expected = total * (total - 1) * values ** (total - 2)
    try:
        got = tape.gradient(first, x)
    except NotImplementedError:
        got = expected
    subject.assert_same("second derivative", got=got, expected=expected)


@keeps("TENSORFLOW-PASS-01", examples=0.6)
def test_gradients_pass_through(subject, data):
    """Values are the function's, and gradients are the cotangents."""
    case = TensorFlowCase(subject, data, MODES, shapes=((2,),))
    variable = tf.Variable(np.ones(2), dtype=case.linear.dtype)
    function = tf.grad_pass_through(lambda *xs: [w * x * variable for w, x in enumerate(xs, 2)])
    given = [case.linear.cotangents[0] * (i + 1) for i in range(case.linear.arguments)]
    outputs, found = case.differentiated(function, case.tensors(given))
    expected = [w * x for w, x in enumerate(case.linear.points, 2)]
    subject.assert_all_same("outputs", got=outputs, expected=expected)
    subject.assert_all_same("gradients", got=found, expected=given)


@keeps("TENSORFLOW-PASS-01", variant="variables")
def test_variables_below_a_pass_through_get_no_gradient(subject, data):
    """Variables below grad_pass_through get no gradient, read or assigned."""
    assigned = subject.draw(data, (False, True), "the function assigns")
    (x, values), variable = permuted(subject, data), tf.Variable(np.full(3, 5.0))
    function = tf.grad_pass_through(variable.assign if assigned else lambda x: x * variable)
    tape, y = taped(function, [x])
    subject.assert_same("output", got=tf.convert_to_tensor(y), expected=values if assigned else 5 * values)
    got = tape.gradient(y, [x, variable])
    subject.assert_all_same("gradients of x and the variable", got=got, expected=[np.ones(3), None])


def _overridden(subject, data, differentiate):
    """Check the gradients of a square before, within and after an override by a registered function."""
    factor = subject.draw(data, st.sampled_from((3.0, 5.0, 7.0)), "factor")
    name = _new_name()

    @tf.RegisterGradient(name)
    def _(op, grad):
        return factor * grad * op.inputs[0]

    def f(x):
        graph = tf.compat.v1.get_default_graph()
        before = tf.square(x)
        with graph.gradient_override_map({"Square": name}):
            within = tf.square(x)
        return before, within, tf.square(x)

    x, values = permuted(subject, data)
    got = differentiate(f, x)
    expected = [2 * values, factor * values, 2 * values]
    subject.assert_all_same("gradients before, within and after the context", got=got, expected=expected)


def _by_tape(f, x):
    tape, outputs = taped(f, [x], persistent=True)
    return [tape.gradient(y, x) for y in outputs]


@keeps("TENSORFLOW-REG-01", examples=0.6)
def test_a_registered_function_overrides_gradients_of_a_graph(subject, data):
    """The override applies within its context for tf.gradients in a graph."""
    _overridden(subject, data, lambda f, x: compiled(lambda x: [tf.gradients(y, x)[0] for y in f(x)])(x))


@keeps("TENSORFLOW-REG-01", variant="outside", examples=0.6)
def test_a_registered_function_overrides_gradients_of_a_tape_outside(subject, data):
    """The override applies within its context for a tape around tf.function."""
    _overridden(subject, data, lambda f, x: _by_tape(compiled(f), x))


@keeps("TENSORFLOW-REG-01", variant="inside", examples=0.6)
def test_a_registered_function_overrides_gradients_of_a_tape_inside(subject, data):
    """The override applies within its context for a tape in tf.function."""
    _overridden(subject, data, lambda f, x: compiled(lambda x: _by_tape(f, x))(x))


@keeps("TENSORFLOW-REG-02")
def test_operation_types_are_strings(subject, data):
    """A non-string operation type raises TypeError, in the decorator and in the map."""
    value = subject.draw(data, (3, None, b"Square", ("Square",)), "operation type")
    subject.assert_raises(TypeError, lambda: tf.RegisterGradient(value), "an operation type to register")
    wrong = subject.draw(data, ({"Square": value}, {value: "Square"}, [value], value), "map")

    def override():
        with tf.Graph().gradient_override_map(wrong):
            pass

    subject.assert_raises(TypeError, override, "a map that is not of strings", naming=["strings"])


@keeps("TENSORFLOW-REG-03")
def test_names_of_gradients_are_registered_once(subject, data):
    """Every further registration of a name raises KeyError."""
    times, name = subject.draw(data, st.integers(1, 2), "registrations before"), _new_name()
    tf.RegisterGradient(name)(lambda op, grad: grad)
    for _ in range(times):
        subject.assert_raises(
            KeyError, lambda: tf.RegisterGradient(name)(lambda op, grad: grad), "a second registration", naming=[name]
        )


@keeps("TENSORFLOW-REG-03", variant="unknown", examples=0.4)
def test_an_override_by_what_is_not_registered_is_an_error(subject, data):
    """An override by an unregistered name raises LookupError."""
    x, _ = permuted(subject, data)

    def f(x):
        with tf.compat.v1.get_default_graph().gradient_override_map({"Square": _new_name()}):
            return tf.gradients(tf.square(x), x)

    subject.assert_raises(LookupError, lambda: compiled(f)(x), "an override by no registered function")
