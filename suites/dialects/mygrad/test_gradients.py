"""What backward_var gets, and how its result is used."""

import mygrad as mg
import numpy as np
from hypothesis import strategies as st
from mygrad._utils import SkipGradient
from mygrad.errors import InvalidGradient

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.mygrad._operations import MyGradCase, gradients_of

NO_GRADIENTS = {
    "None": None,
    "text": "text",
    "list": [1.0],
    "tensor": mg.tensor(1.0),
    "object": object(),
    "complex": 1j,
}


@keeps("MYGRAD-OP-05")
def test_backward_var_gets_the_total_derivative(subject, data):
    """backward_var gets the sum over all uses of the output, in the output's shape."""
    case = MyGradCase(subject, data, broadcast=True)
    uses = subject.draw(data, st.lists(st.sampled_from((-2, -1, 1, 2)), min_size=1, max_size=3), "factors of its uses")
    y, total = case.call(), sum(uses) * case.g
    mg.add_sequence(0, 0, *(y * factor for factor in uses)).backward(case.g)
    got, expected = [grad for _, grad in case.log], [total] * len(case.drawn.variables)
    subject.assert_all_same("derivatives that backward_var gets", got=got, expected=expected)
    case.assert_gradients(cotangent=total)


@keeps("MYGRAD-OP-06")
def test_backward_var_is_called_once_for_each_variable(subject, data):
    """backward_var is called once per variable, with its position among the inputs."""
    case = MyGradCase(subject, data)
    case.call().backward(case.g)
    got = sorted(index for index, _ in case.log)
    subject.assert_equal("positions that backward_var gets, sorted", got=got, expected=case.drawn.variables)
    case.assert_gradients()


@keeps("MYGRAD-OP-07")
def test_gradients_are_summed_where_an_input_was_broadcast(subject, data):
    """Gradients of broadcast inputs are summed to the input's shape."""
    case = MyGradCase(subject, data, broadcast=True)
    case.call().backward(case.g)
    case.assert_gradients()


@keeps("MYGRAD-OP-08")
def test_what_is_no_gradient_is_refused(subject, data):
    """A non-gradient from backward_var raises InvalidGradient; a later backward works."""
    case = MyGradCase(subject, data)
    position = subject.draw(data, case.drawn.variables, "position")
    value = NO_GRADIENTS[subject.draw(data, NO_GRADIENTS, "returned by backward_var")]
    kind = type(value).__name__
    cls = case.returning(lambda index, found: value if index == position else found)
    action = lambda: mg.execute_op(cls, *case.new_inputs()).backward(case.g)  # noqa: E731
    naming = [kind, position, "backward_var"]
    subject.assert_raises(InvalidGradient, action, f"a gradient that is a {kind}", naming=naming)
    case.call().backward(case.g)
    case.assert_gradients(what="gradients after that")


def _skipping(case, skipped):
    """What the operation gives if backward_var raises SkipGradient for these positions."""

    def change(index, found):
        if index in skipped:
            raise SkipGradient
        return found

    return mg.execute_op(case.returning(change), *case.inputs)


SEVERAL = {"kinds": ("variable", "variable", "array"), "least": 2}


@keeps("MYGRAD-OP-09")
def test_a_skipped_gradient_adds_nothing(subject, data):
    """SkipGradient leaves that input with the gradients of its other uses, and the other inputs with theirs."""
    case = MyGradCase(subject, data, **SEVERAL)
    positions = st.sets(st.sampled_from(case.drawn.variables), max_size=2)
    skipped, other = subject.draw(data, positions, "positions that are skipped"), case.similar(1)
    (_skipping(case, skipped) + other.call(case.inputs)).backward(case.g)
    pairs = zip(case.drawn.gradients(case.g), other.drawn.gradients(case.g), strict=True)
    expected = [b if a is None or i in skipped else a + b for i, (a, b) in enumerate(pairs)]
    case.assert_gradients(expected, what="gradients, with another operation next to it")


@keeps("MYGRAD-OP-09", variant="alone")
def test_a_tensor_that_is_skipped_everywhere_has_no_gradient(subject, data):
    """SkipGradient for the only use of a tensor leaves it without a gradient."""
    case = MyGradCase(subject, data, **SEVERAL)
    skipped = subject.draw(data, case.drawn.variables, "position that is skipped")
    subject.assert_accepted(lambda: _skipping(case, [skipped]).backward(case.g), "a pass that skips a tensor")
    case.assert_gradients([None if i == skipped else g for i, g in enumerate(case.drawn.gradients(case.g))])


@keeps("MYGRAD-OP-10")
def test_gradients_have_the_dtype_of_their_tensors(subject, data):
    """Gradients are cast to the dtype of their tensor, whatever backward_var returned."""
    case = MyGradCase(subject, data, kinds=("variable",), dtypes=subject.dtypes)
    count, dtype, ones = len(case.inputs), case.drawn.dtype, np.ones(case.drawn.shape)
    kinds = st.sampled_from(("float64", "float32", "float16", "int64", "bool"))
    dtypes = subject.draw(data, st.tuples(*[kinds] * count), "dtypes of the gradients")
    mg.execute_op(case.returning(lambda index, _: ones.astype(dtypes[index])), *case.inputs).backward(case.g)
    got = [str(g.dtype) for g in gradients_of(case.inputs)]
    subject.assert_equal("dtypes of the gradients", got=got, expected=[dtype] * count)
    case.assert_gradients([ones.astype(dtype)] * count)


@keeps("MYGRAD-OP-11")
def test_a_tensor_given_twice_gets_the_sum(subject, data):
    """A tensor at several positions gets the sum of the gradients of those positions."""
    case = MyGradCase(subject, data, kinds=("variable",))
    positions = st.tuples(*[st.integers(0, 1)] * len(case.inputs))
    which = subject.draw(data, positions, "tensor given at each position")
    leaves = [mg.tensor(case.drawn.integers(50 + k, case.drawn.shape)) for k in range(2)]
    case.call([leaves[k] for k in which]).backward(case.g)
    each = case.drawn.gradients(case.g)
    parts = [[g for g, k in zip(each, which, strict=True) if k == leaf] for leaf in range(2)]
    expected = [np.asarray(sum(part)) if part else None for part in parts]
    subject.assert_all_same("gradients of the two tensors", got=gradients_of(leaves), expected=expected)


@keeps("MYGRAD-OP-11", variant="handed-on")
def test_a_gradient_that_is_handed_on_is_not_shared(subject, data):
    """A backward_var that returns the gradient it got shares it with no other tensor."""
    case = MyGradCase(subject, data, kinds=("variable",), least=2)
    position = subject.draw(data, range(len(case.inputs)), "input that is used next to it")
    first = subject.draw(data, st.booleans(), "the operation comes first")
    y = mg.execute_op(case.operation(backward_var=lambda _, grad, index, **kwargs: grad), *case.inputs)
    both = (y, case.inputs[position] * 2)
    mg.add(*(both if first else both[::-1])).backward(case.g)
    case.assert_gradients([case.g + 2 * case.g * (i == position) for i, _ in enumerate(case.inputs)])
    subject.assert_same("gradient of the output", got=y.grad, expected=case.g)
