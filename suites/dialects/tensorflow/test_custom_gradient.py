"""tf.custom_gradient: what a function with a custom gradient takes, gets and returns."""

import numpy as np
import tensorflow as tf
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.shared import sentences
from autograd_conformance.suites.dialects.shared.linear import CONTAINERS
from autograd_conformance.suites.dialects.shared.sentences import row
from autograd_conformance.suites.dialects.tensorflow._functions import (
    COMPILED,
    EAGER,
    EAGERLY,
    MODES,
    OUTSIDE,
    SPELLINGS,
    UNCONNECTED,
    WITHIN,
    TensorFlowCase,
    compiled,
    custom,
    outputs_and_gradients,
    permuted,
    taped,
)

# Arguments that can become a tensor.
CONVERTIBLE = {"number": 2.0, "integer": 3, "flag": True, "text": "text", "array": np.ones(2), "list": [1.0, 2.0]}
# Operations on a vector without a registered gradient.
OPERATIONS = {
    "Unique": lambda x: tf.unique(x)[0],
    "Bincount": lambda x: tf.raw_ops.Bincount(arr=tf.range(tf.size(x)), size=tf.size(x), weights=x),
    "MatrixLogarithm": lambda x: tf.math.real(tf.linalg.logm(tf.complex(tf.linalg.diag(x), tf.linalg.diag(x)))[0]),
}

test_the_rule_decides = row("TENSORFLOW-GRAD-01", sentences.the_rule_decides, SPELLINGS, examples=0.6)
test_unused_outputs = row("TENSORFLOW-GRAD-05", sentences.unused_outputs_have_cotangents_of_zeros, EAGERLY)
test_exceptions = row("TENSORFLOW-GRAD-15", sentences.an_exception_comes_out, OUTSIDE, examples=0.6)
test_number_of_gradients = row(
    "TENSORFLOW-GRAD-04", sentences.another_number_of_gradients_raises, OUTSIDE, examples=0.6, refusal=ValueError
)


@keeps("TENSORFLOW-GRAD-02", examples=0.6)
def test_one_cotangent_for_each_flattened_output(subject, data):
    """grad_fn gets one cotangent for each tensor of nested outputs, which keep their structure."""
    case, seen = TensorFlowCase(subject, data, MODES, outputs=3), []
    structure = CONTAINERS[subject.draw(data, CONTAINERS, "structure of the outputs")]
    function = custom(
        lambda *xs: structure(case.linear.primal(*xs)), lambda xs, gs: (seen.append(len(gs)), case.rule(xs, gs))[1]
    )
    outputs, found = case.differentiated(function, structure(case.cotangents))
    subject.assert_equal("structure of the outputs", got=type(outputs), expected=type(structure(case.cotangents)))
    case.assert_outputs(tf.nest.flatten(outputs))
    subject.assert_equal("numbers of cotangents that grad_fn gets", got=set(seen), expected={3})
    case.assert_gradients(found)


@keeps("TENSORFLOW-GRAD-03", examples=0.6)
def test_one_gradient_for_each_flattened_input(subject, data):
    """grad_fn may return its gradients in another structure than the inputs have."""
    case = TensorFlowCase(subject, data, MODES, arguments=3)
    taken, returned = (CONTAINERS[subject.draw(data, CONTAINERS, of)] for of in ("inputs in a", "gradients in a"))
    function = custom(
        lambda tree: case.linear.primal(*tf.nest.flatten(tree)), lambda xs, gs: returned(case.rule(xs, gs))
    )
    case.assert_gradients(case.differentiated(lambda *xs: function(taken(xs)), case.cotangents)[1])


@keeps("TENSORFLOW-GRAD-03", variant="one", examples=0.6)
def test_a_single_gradient_may_be_bare(subject, data):
    """For one input, grad_fn may return the gradient bare, in a tuple or in a list."""
    case = TensorFlowCase(subject, data, MODES, arguments=1)
    kinds = {"bare": lambda gs: gs[0], "tuple": tuple, "list": list}
    kind = kinds[subject.draw(data, kinds, "how it is returned")]
    function = case.custom(lambda xs, gs: kind(case.rule(xs, gs)))
    case.assert_gradients(case.differentiated(function, case.cotangents)[1])


@keeps("TENSORFLOW-GRAD-06", examples=0.6)
def test_none_is_no_gradient(subject, data):
    """None from grad_fn comes back as None or as zeros, and the other gradients are right."""
    case = TensorFlowCase(subject, data, MODES)
    withheld = case.some(data, "inputs that get None")
    unconnected = subject.draw(data, UNCONNECTED, "unconnected gradients")
    function = case.custom(lambda xs, gs: [None if i in withheld else g for i, g in enumerate(case.rule(xs, gs))])
    _, found = case.differentiated(function, unconnected_gradients=unconnected)
    nothing = case.linear.zeros if unconnected == tf.UnconnectedGradients.ZERO else None
    expected = [nothing if i in withheld else g for i, g in enumerate(case.linear.pulled(*case.linear.ones))]
    subject.assert_all_same("gradients", got=found, expected=expected)


def _by_keyword(case, names):
    """The function of ``a, b, c``, which passes those in ``names`` by keyword and the others by position."""

    @tf.custom_gradient
    def function(a, b, c):
        return case.linear.primal(a, b, c), lambda *gs: case.linear.pulled(*gs)

    def called(*xs):
        given = dict(zip("abc", xs, strict=True))
        return function(*(x for n, x in given.items() if n not in names), **{n: given[n] for n in names})

    return called


def _check_keywords(subject, data, choices):
    case = TensorFlowCase(subject, data, arguments=3)
    names = subject.draw(data, choices, "given by keyword")
    found = subject.assert_accepted(lambda: case.differentiated(_by_keyword(case, names))[1], "gradient")
    case.assert_gradients_of_sum(found)


@keeps("TENSORFLOW-GRAD-07")
def test_what_is_given_by_keyword_has_the_custom_gradient(subject, data):
    """Inputs given by keyword get grad_fn's gradients next to inputs given by position."""
    _check_keywords(subject, data, ("c", "bc"))


@keeps("TENSORFLOW-GRAD-07", variant="all")
def test_what_is_given_by_keyword_alone_has_the_custom_gradient(subject, data):
    """If all inputs are given by keyword, they get grad_fn's gradients."""
    _check_keywords(subject, data, ("abc",))


@keeps("TENSORFLOW-GRAD-07", variant="values")
def test_what_is_given_by_keyword_has_its_value(subject, data):
    """The outputs are right whichever inputs are given by keyword."""
    case = TensorFlowCase(subject, data, arguments=3)
    names = subject.draw(data, ("", "c", "bc", "abc"), "given by keyword")
    case.assert_outputs(subject.assert_accepted(lambda: _by_keyword(case, names)(*case.points), "the call"))


@keeps("TENSORFLOW-GRAD-08", examples=0.3)
def test_keywords_are_an_error_under_a_compiler(subject, data):
    """Under tf.function, a keyword argument raises ValueError."""
    case = TensorFlowCase(subject, data, (COMPILED, WITHIN), arguments=3)
    function = _by_keyword(case, subject.draw(data, ("c", "bc", "abc"), "given by keyword"))
    what = "a call with keywords"
    subject.assert_raises(ValueError, lambda: case.differentiated(function), what, naming=["keywords", "eager"])


@keeps("TENSORFLOW-GRAD-09", examples=0.6)
def test_arguments_that_are_no_tensors(subject, data):
    """Non-tensor arguments arrive as they are eagerly and as tensors when compiled, and count as inputs."""
    case, seen = TensorFlowCase(subject, data, MODES, arguments=1), []
    kinds = subject.draw(data, st.lists(st.sampled_from(tuple(CONVERTIBLE)), max_size=3), "arguments")
    others = [CONVERTIBLE[kind] for kind in kinds]

    @tf.custom_gradient
    def function(x, *more):
        seen.append(more)
        none = [None] * len(tf.nest.flatten(more))
        return case.linear.primal(x), lambda *gs: [*case.linear.pulled(*gs), *none]

    case.assert_gradients_of_sum(case.differentiated(lambda x: function(x, *others))[1])
    got = [tf.is_tensor(value) for value in tf.nest.flatten(seen[0])]
    subject.assert_equal("whether they are tensors", got=got, expected=[case.mode != EAGER] * len(got))
    same = [a is b for a, b in zip(tf.nest.flatten(seen[0]), tf.nest.flatten(others), strict=True)]
    subject.assert_equal("whether they are what was passed", got=same, expected=[case.mode == EAGER] * len(same))


@keeps("TENSORFLOW-GRAD-10", examples=0.4)
def test_what_no_tensor_can_be_made_of_is_an_error(subject, data):
    """An argument that cannot become a tensor raises ValueError."""
    values = {"None": None, "object": object(), "function": len}
    value = values[subject.draw(data, values, "argument")]
    function = custom(lambda x, _: x * 2, lambda xs, gs: [*gs, None])
    x = subject.tensor(1.0)
    subject.assert_raises(ValueError, lambda: function(x, value), "an argument that cannot become a tensor")


@keeps("TENSORFLOW-GRAD-11", examples=0.6)
def test_a_method_gets_its_instance(subject, data):
    """A decorated method gets its instance, and gradients for the other arguments only."""
    case = TensorFlowCase(subject, data, MODES)

    class Holder:
        def __init__(self):
            self.linear = case.linear

        @tf.custom_gradient
        def method(self, *xs):
            return self.linear.primal(*xs), lambda *gs: self.linear.pulled(*gs)

    outputs, found = case.differentiated(Holder().method)
    case.assert_outputs(outputs)
    case.assert_gradients_of_sum(found)


def _captured(subject, data, modes, pass_on):
    """The gradient for a tensor that a function captures; its argument is what ``pass_on`` makes of a watched one."""
    case = TensorFlowCase(subject, data, modes, arguments=2)

    def f(x, c):
        return custom(lambda x: case.linear.primal(x, c), lambda _, gs: case.linear.pulled(*gs)[:1])(pass_on(x))

    return case.differentiated(f)[1][1]


@keeps("TENSORFLOW-GRAD-12", examples=0.6)
def test_what_is_captured_gets_no_gradient(subject, data):
    """A captured tensor gets no gradient if the argument is watched."""
    got = _captured(subject, data, MODES, lambda x: x)
    subject.assert_same("gradient of the captured tensor", got=got, expected=None)


@keeps("TENSORFLOW-GRAD-12", variant="unwatched")
def test_what_is_captured_gets_no_gradient_with_a_constant(subject, data):
    """A captured tensor gets no gradient if the argument is a constant."""
    got = _captured(subject, data, (EAGER,), tf.stop_gradient)
    subject.assert_equal("whether the captured tensor gets a gradient", got=got is not None, expected=False)


@keeps("TENSORFLOW-GRAD-13")
def test_grad_fn_runs_once_in_each_pass_that_reaches_it(subject, data):
    """grad_fn runs once for each pass through the function, and not for passes around it."""
    case, calls = TensorFlowCase(subject, data, outputs=1), []
    passes = subject.draw(data, st.lists(st.booleans(), max_size=4), "passes, through the function or next to it")
    function, tensors = case.custom(lambda xs, gs: (calls.append(1), case.rule(xs, gs))[1]), case.points
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
    x, values = permuted(subject, data)

    def inner(x):
        return compiled(lambda: tf.stop_gradient(operation(x)) if stopped else operation(x))()

    def act():
        return outputs_and_gradients(custom(inner, lambda _, gs: 5 * gs[0]), [tf.abs(x)])[1]

    if stopped:
        subject.assert_all_same("gradient", got=act(), expected=[np.full(values.shape, 5.0)])
    else:
        subject.assert_raises(LookupError, act, "a function with an operation without gradient", naming=["gradient"])


@keeps("TENSORFLOW-GRAD-16", examples=0.5)
def test_functions_of_numpy_have_the_custom_gradient(subject, data):
    """A tf.numpy_function has the custom gradient, also in branches and loops."""
    case = TensorFlowCase(subject, data, MODES, arguments=1, outputs=1, dtypes=("float64",))
    ((weight,),), ((slope,),) = case.linear.weights, case.linear.rule

    def of_numpy(x):
        return tf.ensure_shape(tf.numpy_function(lambda a: weight * a, [x], tf.float64), x.shape)

    function = custom(of_numpy, case.rule)
    around = {
        "nothing": function,
        "branch": lambda x: tf.cond(tf.size(x) >= 0, lambda: function(x), lambda: x),
        "loop": lambda x: tf.while_loop(lambda i, _: i < 2, lambda i, y: (i + 1, function(y)), (0, x))[1],
    }
    kind = subject.draw(data, around, "around it")
    outputs, found = case.differentiated(around[kind])
    times = 2 if kind == "loop" else 1
    subject.assert_same("output", got=outputs, expected=weight**times * case.linear.points[0])
    subject.assert_all_same("gradient", got=found, expected=[np.full(case.linear.shape, float(slope**times))])


@keeps("TENSORFLOW-GRAD-17")
def test_sparse_gradients_come_back(subject, data):
    """IndexedSlices from grad_fn come back as such, or are added to other gradients."""
    rows = subject.draw(data, st.lists(st.integers(0, 2), max_size=4), "rows")
    more, mode = subject.draw(data, (False, True), "used next to it"), subject.draw(data, (EAGER, COMPILED), "mode")

    def index():
        return tf.constant(rows, tf.int32)

    function = custom(
        lambda x: tf.gather(x, index()), lambda _, gs: tf.IndexedSlices(5 * gs[0], index(), tf.constant([3, 2]))
    )

    def f(x):
        total = tf.reduce_sum(function(x))
        return total + tf.reduce_sum(x) if more else total

    _, (found,) = outputs_and_gradients(f, [subject.tensor(np.ones((3, 2)))], mode=mode)
    kinds = (tf.Tensor, tf.IndexedSlices)
    subject.assert_equal("kind of the gradient", got=isinstance(found, kinds[not more]), expected=True)
    expected = np.zeros((3, 2)) + more
    np.add.at(expected, np.array(rows, int), 5.0)
    subject.assert_same("gradient", got=tf.convert_to_tensor(found), expected=expected)
