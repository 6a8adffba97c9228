"""tf.custom_gradient: what a function with a custom gradient takes, gets and returns."""

import numpy as np
import tensorflow as tf
from hypothesis import strategies as st

from autograd_conformance.harness.checking.marks import keeps
from autograd_conformance.suites.dialects.tensorflow._custom_rules import (
    COMPILED,
    EAGER,
    MODES,
    WITHIN,
    drawn_rule,
    outputs_and_gradients,
    taped,
)

# Containers of tensors, flat and nested.
STRUCTURES = {
    "tuple": tuple,
    "list": list,
    "dict": lambda xs: {f"key {i}": x for i, x in enumerate(xs)},
    "nested": lambda xs: {"first": xs[0], "rest": [tuple(xs[1:])]},
}
# Arguments that can become a tensor.
CONVERTIBLE = {"number": 2.0, "integer": 3, "flag": True, "text": "text", "array": np.ones(2), "list": [1.0, 2.0]}
# Operations on a vector without a registered gradient.
OPERATIONS = {
    "Unique": lambda x: tf.unique(x)[0],
    "Bincount": lambda x: tf.raw_ops.Bincount(arr=tf.range(tf.size(x)), size=tf.size(x), weights=x),
    "MatrixLogarithm": lambda x: tf.math.real(tf.linalg.logm(tf.complex(tf.linalg.diag(x), tf.linalg.diag(x)))[0]),
}


def _tensors(subject, rule):
    return subject.tensors(rule.values, rule.dtype)


@keeps("TENSORFLOW-GRAD-01", examples=0.6)
def test_values_of_the_function_and_gradients_of_its_rule(subject, data):
    """Outputs are the function's and gradients are grad_fn's, eagerly and compiled."""
    rule, mode = drawn_rule(subject, data), subject.draw(data, MODES, "mode")
    given = subject.tensors(rule.cotangents, rule.dtype)
    outputs, found = outputs_and_gradients(rule.function(), _tensors(subject, rule), given, mode)
    subject.assert_all_same("outputs", got=outputs, expected=rule.expected_outputs())
    subject.assert_all_same("gradients", got=found, expected=rule.expected_gradients(rule.cotangents))


@keeps("TENSORFLOW-GRAD-02", examples=0.6)
def test_one_cotangent_for_each_flattened_output(subject, data):
    """grad_fn gets one cotangent for each tensor of nested outputs, which keep their structure."""
    rule = drawn_rule(subject, data, inputs=2, outputs=3)
    kind, mode = subject.draw(data, STRUCTURES, "structure of the outputs"), subject.draw(data, MODES, "mode")
    structure, seen = STRUCTURES[kind], []

    @tf.custom_gradient
    def function(*xs):
        return structure(rule.compute(xs)), lambda *gs: (seen.append(len(gs)), rule.pull(gs))[1]

    given = structure(subject.tensors(rule.cotangents, rule.dtype))
    outputs, found = outputs_and_gradients(function, _tensors(subject, rule), given, mode)
    subject.assert_equal("structure of the outputs", got=type(outputs), expected=type(given))
    subject.assert_all_same("outputs", got=tf.nest.flatten(outputs), expected=rule.expected_outputs())
    subject.assert_equal("numbers of cotangents that grad_fn gets", got=set(seen), expected={3})
    subject.assert_all_same("gradients", got=found, expected=rule.expected_gradients(rule.cotangents))


@keeps("TENSORFLOW-GRAD-03", examples=0.6)
def test_one_gradient_for_each_flattened_input(subject, data):
    """grad_fn may return its gradients in another structure than the inputs have."""
    rule = drawn_rule(subject, data, inputs=3)
    kinds = st.sampled_from(tuple(STRUCTURES))
    taken, returned = subject.draw(data, st.tuples(kinds, kinds), "structures of inputs and gradients")
    mode = subject.draw(data, MODES, "mode")

    @tf.custom_gradient
    def function(structure):
        return rule.compute(tf.nest.flatten(structure)), lambda *gs: STRUCTURES[returned](rule.pull(gs))

    tensors = _tensors(subject, rule)
    given = subject.tensors(rule.cotangents, rule.dtype)
    _, found = outputs_and_gradients(lambda *xs: function(STRUCTURES[taken](xs)), tensors, given, mode)
    subject.assert_all_same("gradients", got=found, expected=rule.expected_gradients(rule.cotangents))


@keeps("TENSORFLOW-GRAD-03", variant="one", examples=0.6)
def test_a_single_gradient_may_be_bare(subject, data):
    """For one input, grad_fn may return the gradient bare, in a tuple or in a list."""
    rule = drawn_rule(subject, data, inputs=1)
    shape = subject.draw(data, ("bare", "tuple", "list"), "how it is returned")
    mode = subject.draw(data, MODES, "mode")
    kinds = {"bare": lambda gs: gs[0], "tuple": tuple, "list": list}

    @tf.custom_gradient
    def function(x):
        return rule.compute([x]), lambda *gs: kinds[shape](rule.pull(gs))

    given = subject.tensors(rule.cotangents, rule.dtype)
    _, found = outputs_and_gradients(function, _tensors(subject, rule), given, mode)
    subject.assert_all_same("gradients", got=found, expected=rule.expected_gradients(rule.cotangents))


@keeps("TENSORFLOW-GRAD-04", examples=0.6)
def test_another_number_of_gradients_is_an_error(subject, data):
    """Too many or too few gradients from grad_fn raise ValueError."""
    rule = drawn_rule(subject, data, outputs=1)
    count = subject.draw(data, [n for n in range(5) if n != rule.inputs], "number of gradients returned")
    mode = subject.draw(data, (EAGER, COMPILED), "mode")

    @tf.custom_gradient
    def function(*xs):
        return rule.compute(xs)[0], lambda g: (g,) * count

    naming = [rule.inputs, count] if mode == EAGER else []
    what = f"{count} gradients for {rule.inputs} inputs"
    tensors = _tensors(subject, rule)
    subject.assert_raises(ValueError, lambda: outputs_and_gradients(function, tensors, mode=mode), what, naming=naming)


@keeps("TENSORFLOW-GRAD-05")
def test_the_cotangents_of_unused_outputs_are_zeros(subject, data):
    """grad_fn gets zeros in the right dtype for outputs that are not used."""
    rule = drawn_rule(subject, data, outputs=3)
    used = subject.draw(data, st.sets(st.integers(0, 2), min_size=1), "used outputs")
    tensors, seen = _tensors(subject, rule), []
    tape, outputs = taped(rule.function(lambda *gs: seen.extend(gs)), tensors)
    tape.gradient([outputs[o] for o in sorted(used)], tensors)
    expected = [np.ones(rule.shape) if o in used else np.zeros(rule.shape) for o in range(3)]
    subject.assert_all_same("cotangents", got=seen, expected=expected)
    subject.assert_equal("their dtypes", got={g.dtype.name for g in seen}, expected={rule.dtype})


@keeps("TENSORFLOW-GRAD-06", examples=0.6)
def test_none_is_no_gradient(subject, data):
    """None from grad_fn comes back as None or as zeros, and the other gradients are right."""
    rule = drawn_rule(subject, data)
    withheld = subject.draw(data, st.sets(st.integers(0, rule.inputs - 1), min_size=1), "inputs that get None")
    unconnected = subject.draw(data, tuple(tf.UnconnectedGradients), "unconnected gradients")
    mode = subject.draw(data, MODES, "mode")

    @tf.custom_gradient
    def function(*xs):
        return rule.compute(xs), lambda *gs: [None if i in withheld else g for i, g in enumerate(rule.pull(gs))]

    _, found = outputs_and_gradients(function, _tensors(subject, rule), mode=mode, unconnected_gradients=unconnected)
    nothing = np.zeros(rule.shape) if unconnected == tf.UnconnectedGradients.ZERO else None
    expected = [nothing if i in withheld else g for i, g in enumerate(rule.expected_gradients(rule.ones))]
    subject.assert_all_same("gradients", got=found, expected=expected)


def _by_keyword(rule, names):
    """A function of ``a, b, c`` that passes those in ``names`` by keyword and the others by position."""

    @tf.custom_gradient
    def function(a, b, c):
        return rule.compute((a, b, c)), lambda *gs: rule.pull(gs)

    def called(*xs):
        given = dict(zip("abc", xs, strict=True))
        return function(*(x for n, x in given.items() if n not in names), **{n: given[n] for n in names})

    return called


def _check_keywords(subject, rule, names):
    tensors = _tensors(subject, rule)
    found = subject.assert_accepted(lambda: outputs_and_gradients(_by_keyword(rule, names), tensors)[1], "gradient")
    subject.assert_all_same("gradients", got=found, expected=rule.expected_gradients(rule.ones))


@keeps("TENSORFLOW-GRAD-07")
def test_what_is_given_by_keyword_has_the_custom_gradient(subject, data):
    """Inputs given by keyword get grad_fn's gradients next to inputs given by position."""
    rule = drawn_rule(subject, data, inputs=3)
    _check_keywords(subject, rule, subject.draw(data, ("c", "bc"), "given by keyword"))


@keeps("TENSORFLOW-GRAD-07", variant="all")
def test_what_is_given_by_keyword_alone_has_the_custom_gradient(subject, data):
    """If all inputs are given by keyword, they get grad_fn's gradients."""
    _check_keywords(subject, drawn_rule(subject, data, inputs=3, shape=(2,)), "abc")


@keeps("TENSORFLOW-GRAD-07", variant="values")
def test_what_is_given_by_keyword_has_its_value(subject, data):
    """The outputs are right whichever inputs are given by keyword."""
    rule = drawn_rule(subject, data, inputs=3)
    names = subject.draw(data, ("", "c", "bc", "abc"), "given by keyword")
    got = subject.assert_accepted(lambda: _by_keyword(rule, names)(*_tensors(subject, rule)), "the call")
    subject.assert_all_same("outputs", got=got, expected=rule.expected_outputs())


@keeps("TENSORFLOW-GRAD-08", examples=0.3)
def test_keywords_are_an_error_under_a_compiler(subject, data):
    """Under tf.function, a keyword argument raises ValueError."""
    rule = drawn_rule(subject, data, inputs=3)
    names = subject.draw(data, ("c", "bc", "abc"), "given by keyword")
    mode, tensors = subject.draw(data, (COMPILED, WITHIN), "mode"), _tensors(subject, rule)
    subject.assert_raises(
        ValueError,
        lambda: outputs_and_gradients(_by_keyword(rule, names), tensors, mode=mode),
        "a call with keywords",
        naming=["keywords", "eager"],
    )


@keeps("TENSORFLOW-GRAD-09", examples=0.6)
def test_arguments_that_are_no_tensors(subject, data):
    """Non-tensor arguments arrive as they are eagerly and as tensors when compiled, and count as inputs."""
    rule = drawn_rule(subject, data, inputs=1)
    kinds = subject.draw(data, st.lists(st.sampled_from(tuple(CONVERTIBLE)), max_size=3), "arguments")
    others, mode, seen = [CONVERTIBLE[kind] for kind in kinds], subject.draw(data, MODES, "mode"), []

    @tf.custom_gradient
    def function(x, *more):
        seen.append(more)
        none = [None] * len(tf.nest.flatten(more))
        return rule.compute([x]), lambda *gs: [*rule.pull(gs), *none]

    _, found = outputs_and_gradients(lambda x: function(x, *others), _tensors(subject, rule), mode=mode)
    subject.assert_all_same("gradient", got=found, expected=rule.expected_gradients(rule.ones))
    got = [tf.is_tensor(value) for value in tf.nest.flatten(seen[0])]
    subject.assert_equal("whether they are tensors", got=got, expected=[mode != EAGER] * len(got))
    same = [a is b for a, b in zip(tf.nest.flatten(seen[0]), tf.nest.flatten(others), strict=True)]
    subject.assert_equal("whether they are what was passed", got=same, expected=[mode == EAGER] * len(same))


@keeps("TENSORFLOW-GRAD-10", examples=0.4)
def test_what_no_tensor_can_be_made_of_is_an_error(subject, data):
    """An argument that cannot become a tensor raises ValueError."""
    rule = drawn_rule(subject, data, inputs=1)
    kind = subject.draw(data, ("None", "object", "function"), "argument")
    value = {"None": None, "object": object(), "function": len}[kind]

    @tf.custom_gradient
    def function(x, _):
        return rule.compute([x]), lambda *gs: [*rule.pull(gs), None]

    (x,) = _tensors(subject, rule)
    subject.assert_raises(ValueError, lambda: function(x, value), "an argument that cannot become a tensor")


@keeps("TENSORFLOW-GRAD-11", examples=0.6)
def test_a_method_gets_its_instance(subject, data):
    """A decorated method gets its instance, and gradients for the other arguments only."""
    rule, mode = drawn_rule(subject, data), subject.draw(data, MODES, "mode")

    class Holder:
        def __init__(self):
            self.rule = rule

        @tf.custom_gradient
        def method(self, *xs):
            return self.rule.compute(xs), lambda *gs: self.rule.pull(gs)

    outputs, found = outputs_and_gradients(Holder().method, _tensors(subject, rule), mode=mode)
    subject.assert_all_same("outputs", got=outputs, expected=rule.expected_outputs())
    subject.assert_all_same("gradients", got=found, expected=rule.expected_gradients(rule.ones))


def _captured(subject, data, watched):
    """Gradients for an argument, which is ``watched`` or not, and for a tensor that the function captures."""
    rule, mode = drawn_rule(subject, data, inputs=2), subject.draw(data, MODES if watched else (EAGER,), "mode")

    def f(x, c):
        @tf.custom_gradient
        def function(x):
            return rule.compute([x, c]), lambda *gs: rule.pull(gs)[:1]

        return function(x if watched else tf.stop_gradient(x))

    _, (_, got) = outputs_and_gradients(f, _tensors(subject, rule), mode=mode)
    return got


@keeps("TENSORFLOW-GRAD-12", examples=0.6)
def test_what_is_captured_gets_no_gradient(subject, data):
    """A captured tensor gets no gradient if the argument is watched."""
    got = _captured(subject, data, watched=True)
    subject.assert_same("gradient of the captured tensor", got=got, expected=None)


@keeps("TENSORFLOW-GRAD-12", variant="unwatched")
def test_what_is_captured_gets_no_gradient_with_a_constant(subject, data):
    """A captured tensor gets no gradient if the argument is a constant."""
    got = _captured(subject, data, watched=False)
    subject.assert_equal("whether the captured tensor gets a gradient", got=got is not None, expected=False)


@keeps("TENSORFLOW-GRAD-13")
def test_grad_fn_runs_once_in_each_pass_that_reaches_it(subject, data):
    """grad_fn runs once for each pass through the function, and not for passes around it."""
    rule, calls = drawn_rule(subject, data, outputs=1), []
    passes = subject.draw(data, st.lists(st.booleans(), max_size=4), "passes, through the function or next to it")
    tensors = _tensors(subject, rule)
    function = rule.function(lambda *_: calls.append(1))
    tape, (mine, other) = taped(lambda *xs: (function(*xs)[0], 2 * xs[0]), tensors, persistent=True)
    subject.assert_equal("runs of grad_fn before any pass", got=len(calls), expected=0)
    for through in passes:
        tape.gradient(mine if through else other, tensors)
    subject.assert_equal("runs of grad_fn", got=len(calls), expected=sum(passes))


@keeps("TENSORFLOW-GRAD-14", examples=0.3)
def test_an_operation_without_gradient(subject, data):
    """An operation without gradient raises LookupError, unless it is under stop_gradient."""
    operation = OPERATIONS[subject.draw(data, OPERATIONS, "operation")]
    stopped = subject.draw(data, (False, True), "stop_gradient")
    values = np.array(subject.draw(data, st.permutations((1.0, 2.0, 3.0)), "x"))

    @tf.custom_gradient
    def function(x):
        inner = tf.function(lambda: tf.stop_gradient(operation(x)) if stopped else operation(x), autograph=False)
        return inner(), lambda g: 5 * g

    def act():
        return outputs_and_gradients(function, [subject.tensor(values)])[1]

    if stopped:
        subject.assert_all_same("gradient", got=act(), expected=[np.full(3, 5.0)])
    else:
        subject.assert_raises(LookupError, act, "a function with an operation without gradient", naming=["gradient"])


@keeps("TENSORFLOW-GRAD-15", examples=0.6)
def test_an_exception_in_grad_fn_comes_out(subject, data):
    """An exception in grad_fn reaches the caller with its type and message."""
    rule, mode = drawn_rule(subject, data, outputs=1), subject.draw(data, (EAGER, COMPILED), "mode")
    kind = subject.draw(data, (KeyError, ValueError, ZeroDivisionError, RuntimeError), "exception")

    def fail(*_):
        raise kind("mine")

    function, tensors = rule.function(fail), _tensors(subject, rule)
    subject.assert_raises(
        kind, lambda: outputs_and_gradients(function, tensors, mode=mode), "an exception in grad_fn", naming=["mine"]
    )


@keeps("TENSORFLOW-GRAD-16", examples=0.5)
def test_functions_of_numpy_have_the_custom_gradient(subject, data):
    """A tf.numpy_function has the custom gradient, also in branches and loops."""
    rule = drawn_rule(subject, data, inputs=1, outputs=1, dtype="float64")
    around = subject.draw(data, ("nothing", "branch", "loop"), "around it")
    mode = subject.draw(data, MODES, "mode")

    @tf.custom_gradient
    def function(x):
        y = tf.numpy_function(lambda a: rule.forward[0, 0] * a, [x], tf.float64)
        return tf.ensure_shape(y, x.shape), lambda g: rule.pull([g])

    def f(x):
        if around == "branch":
            return tf.cond(tf.size(x) >= 0, lambda: function(x), lambda: x)
        if around == "loop":
            return tf.while_loop(lambda i, _: i < 2, lambda i, y: (i + 1, function(y)), (0, x))[1]
        return function(x)

    outputs, found = outputs_and_gradients(f, _tensors(subject, rule), mode=mode)
    times = 2 if around == "loop" else 1
    expected = rule.forward[0, 0] ** times * rule.values[0]
    subject.assert_same("output", got=outputs, expected=expected)
    gradient = np.full(rule.shape, rule.backward[0, 0] ** times)
    subject.assert_all_same("gradient", got=found, expected=[gradient])


@keeps("TENSORFLOW-GRAD-17")
def test_sparse_gradients_come_back(subject, data):
    """IndexedSlices from grad_fn come back as such, or are added to other gradients."""
    rows = subject.draw(data, st.lists(st.integers(0, 2), max_size=4), "rows")
    more, mode = subject.draw(data, (False, True), "used next to it"), subject.draw(data, (EAGER, COMPILED), "mode")
    x = subject.tensor(np.ones((3, 2)))

    @tf.custom_gradient
    def function(x):
        def grad_fn(g):
            return tf.IndexedSlices(5 * g, tf.constant(rows, tf.int32), tf.constant([3, 2]))

        return tf.gather(x, tf.constant(rows, tf.int32)), grad_fn

    def f(x):
        total = tf.reduce_sum(function(x))
        return total + tf.reduce_sum(x) if more else total

    _, (found,) = outputs_and_gradients(f, [x], mode=mode)
    kinds = (tf.Tensor, tf.IndexedSlices)
    subject.assert_equal("kind of the gradient", got=isinstance(found, kinds[not more]), expected=True)
    expected = np.zeros((3, 2)) + more
    np.add.at(expected, np.array(rows, int), 5.0)
    subject.assert_same("gradient", got=tf.convert_to_tensor(found), expected=expected)
