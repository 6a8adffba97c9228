"""What backward_var gets, and how its result is used."""

import mygrad as mg
import numpy as np
from hypothesis import strategies as st
from mygrad._utils import SkipGradient
from mygrad.errors import InvalidGradient

from autograd_conformance.harness.checking.marks import keeps
from autograd_conformance.suites.dialects.mygrad._weighted_sums import input_gradients, similar_operation, sums

NO_GRADIENTS = {
    "None": None,
    "text": "text",
    "list": [1.0],
    "tensor": mg.tensor(1.0),
    "object": object(),
    "complex": 1j,
}


def _changed(cls, change):
    """The operation with a backward_var that returns ``change(index, gradient)``."""

    class Changed(cls):
        def backward_var(self, grad, index, **kwargs):
            return change(index, super().backward_var(grad, index))

    return Changed


@keeps("MYGRAD-OP-05")
def test_backward_var_gets_the_total_derivative(subject, data):
    """backward_var gets the sum over all uses of the output, in the output's shape."""
    drawn = subject.draw(data, sums(broadcast=True), "operation")
    uses = subject.draw(data, st.lists(st.sampled_from((-2, -1, 1, 2)), min_size=1, max_size=3), "factors of its uses")
    log, g, inputs = [], drawn.cotangent(), drawn.inputs()
    y = drawn.call(inputs, log)
    mg.add_sequence(0, 0, *(y * factor for factor in uses)).backward(g)
    total = sum(uses) * g
    got = [grad for _, grad in log]
    subject.assert_all_same("derivatives that backward_var gets", got=got, expected=[total] * len(drawn.variables))
    subject.assert_all_same("gradients", got=input_gradients(inputs), expected=drawn.gradients(total))


@keeps("MYGRAD-OP-06")
def test_backward_var_is_called_once_for_each_variable(subject, data):
    """backward_var is called once per variable, with its position among the inputs."""
    drawn = subject.draw(data, sums(), "operation")
    log, inputs = [], drawn.inputs()
    drawn.call(inputs, log).backward(drawn.cotangent())
    got = sorted(index for index, _ in log)
    subject.assert_equal("positions that backward_var gets, sorted", got=got, expected=drawn.variables)
    subject.assert_all_same("gradients", got=input_gradients(inputs), expected=drawn.gradients(drawn.cotangent()))


@keeps("MYGRAD-OP-07")
def test_gradients_are_summed_where_an_input_was_broadcast(subject, data):
    """Gradients of broadcast inputs are summed to the input's shape."""
    drawn = subject.draw(data, sums(broadcast=True), "operation")
    inputs = drawn.inputs()
    drawn.call(inputs).backward(drawn.cotangent())
    subject.assert_all_same("gradients", got=input_gradients(inputs), expected=drawn.gradients(drawn.cotangent()))


@keeps("MYGRAD-OP-08")
def test_what_is_no_gradient_is_refused(subject, data):
    """A non-gradient from backward_var raises InvalidGradient; a later backward works."""
    drawn = subject.draw(data, sums(), "operation")
    position = subject.draw(data, drawn.variables, "position")
    value = NO_GRADIENTS[subject.draw(data, NO_GRADIENTS, "returned by backward_var")]
    cls = _changed(drawn.operation(), lambda index, found: value if index == position else found)
    what = f"a gradient that is a {type(value).__name__}"
    subject.assert_raises(
        InvalidGradient,
        lambda: mg.execute_op(cls, *drawn.inputs()).backward(drawn.cotangent()),
        what,
        naming=[type(value).__name__, position, "backward_var"],
    )
    inputs = drawn.inputs()
    drawn.call(inputs).backward(drawn.cotangent())
    subject.assert_all_same(
        "gradients after that", got=input_gradients(inputs), expected=drawn.gradients(drawn.cotangent())
    )


@keeps("MYGRAD-OP-09")
def test_a_skipped_gradient_adds_nothing(subject, data):
    """SkipGradient leaves that input with the gradients of its other uses, and the other inputs with theirs."""
    drawn = subject.draw(data, sums(kinds=("variable", "variable", "array"), least=2), "operation")
    skipped = subject.draw(data, st.sets(st.sampled_from(drawn.variables), max_size=2), "positions that are skipped")

    def change(index, found):
        if index in skipped:
            raise SkipGradient
        return found

    other, g, inputs = similar_operation(drawn, 1), drawn.cotangent(), drawn.inputs()
    y = mg.execute_op(_changed(drawn.operation(), change), *inputs)
    (y + other.call(inputs)).backward(g)
    pairs = zip(drawn.gradients(g), other.gradients(g), strict=True)
    expected = [b if a is None or i in skipped else a + b for i, (a, b) in enumerate(pairs)]
    subject.assert_all_same(
        "gradients, with another operation next to it", got=input_gradients(inputs), expected=expected
    )


@keeps("MYGRAD-OP-09", variant="alone")
def test_a_tensor_that_is_skipped_everywhere_has_no_gradient(subject, data):
    """SkipGradient for the only use of a tensor leaves it without a gradient."""
    drawn = subject.draw(data, sums(kinds=("variable", "variable", "array"), least=2), "operation")
    skipped = subject.draw(data, st.sampled_from(drawn.variables), "position that is skipped")

    def change(index, found):
        if index == skipped:
            raise SkipGradient
        return found

    g, inputs = drawn.cotangent(), drawn.inputs()
    subject.assert_accepted(
        lambda: mg.execute_op(_changed(drawn.operation(), change), *inputs).backward(g), "a pass that skips a tensor"
    )
    expected = [None if i == skipped else found for i, found in enumerate(drawn.gradients(g))]
    subject.assert_all_same("gradients", got=input_gradients(inputs), expected=expected)


@keeps("MYGRAD-OP-10")
def test_gradients_have_the_dtype_of_their_tensors(subject, data):
    """Gradients are cast to the dtype of their tensor, whatever backward_var returned."""
    drawn = subject.draw(data, sums(kinds=("variable",), dtypes=subject.dtypes), "operation")
    kinds = ("float64", "float32", "float16", "int64", "bool")
    dtypes = subject.draw(data, st.tuples(*[st.sampled_from(kinds)] * len(drawn.kinds)), "dtypes of the gradients")
    ones = np.ones(drawn.shape)
    cls = _changed(drawn.operation(), lambda index, _: ones.astype(dtypes[index]))
    inputs = drawn.inputs()
    mg.execute_op(cls, *inputs).backward(drawn.cotangent())
    got = [str(g.dtype) for g in input_gradients(inputs)]
    subject.assert_equal("dtypes of the gradients", got=got, expected=[drawn.dtype] * len(inputs))
    subject.assert_all_same("gradients", got=input_gradients(inputs), expected=[ones.astype(drawn.dtype)] * len(inputs))


@keeps("MYGRAD-OP-11")
def test_a_tensor_given_twice_gets_the_sum(subject, data):
    """A tensor at several positions gets the sum of the gradients of those positions."""
    drawn = subject.draw(data, sums(kinds=("variable",)), "operation")
    count = len(drawn.kinds)
    which = subject.draw(data, st.tuples(*[st.integers(0, 1)] * count), "tensor given at each position")
    leaves = [mg.tensor(drawn.integers(50 + k, drawn.shape)) for k in range(2)]
    drawn.call([leaves[k] for k in which]).backward(drawn.cotangent())
    each = drawn.gradients(drawn.cotangent())
    parts = [[g for g, k in zip(each, which, strict=True) if k == leaf] for leaf in range(2)]
    expected = [np.asarray(sum(part)) if part else None for part in parts]
    subject.assert_all_same("gradients of the two tensors", got=input_gradients(leaves), expected=expected)


@keeps("MYGRAD-OP-11", variant="handed-on")
def test_a_gradient_that_is_handed_on_is_not_shared(subject, data):
    """A backward_var that returns the gradient it got shares it with no other tensor."""
    drawn = subject.draw(data, sums(kinds=("variable",), least=2), "operation")
    position = subject.draw(data, range(len(drawn.kinds)), "input that is used next to it")
    first = subject.draw(data, st.booleans(), "the operation comes first")

    class Handing(drawn.operation()):
        def backward_var(self, grad, index, **kwargs):
            return grad

    inputs, g = drawn.inputs(), drawn.cotangent()
    y = mg.execute_op(Handing, *inputs)
    both = (y, inputs[position] * 2)
    mg.add(*(both if first else both[::-1])).backward(g)
    expected = [g + 2 * g * (i == position) for i, _ in enumerate(inputs)]
    subject.assert_all_same("gradients", got=input_gradients(inputs), expected=expected)
    subject.assert_same("gradient of the output", got=y.grad, expected=g)
