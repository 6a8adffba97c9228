"""Backward passes: where they start, what they leave behind, and what is not recorded at all."""

import mygrad as mg
import numpy as np
from hypothesis import strategies as st
from mygrad.errors import InvalidBackprop, InvalidGradient

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.mygrad._operations import SHAPES, MyGradCase, gradients_of

TENSORS = {"kinds": ("variable", "constant")}
# Values that are not array-like, and so not gradients.
NO_GRADIENTS = {"text": "text", "object": object(), "dict": {"a": 1.0}, "list of objects": [object()]}


@keeps("MYGRAD-GRAPH-01")
def test_backward_starts_from_ones(subject, data):
    """backward() starts from ones, from a tensor of any shape and from its sum alike."""
    case = MyGradCase(subject, data)
    ways = {"the tensor": lambda y: y, "its sum": lambda y: y.sum()}
    start = ways[subject.draw(data, ways, "backward from")]
    end = start(case.call())
    end.backward()
    subject.assert_same("gradient of the tensor itself", got=end.grad, expected=np.ones(end.shape))
    case.assert_gradients(cotangent=np.ones(case.drawn.shape))


@keeps("MYGRAD-GRAPH-02")
def test_backward_starts_from_what_it_is_given(subject, data):
    """backward accepts arrays, tensors, lists and other dtypes, and broadcasts them to the tensor."""
    case = MyGradCase(subject, data, dtypes=subject.dtypes)
    target = case.drawn.shape
    shapes = [target[k:] for k in range(len(target) + 1)] + [(1,) * len(target)]
    shape = subject.draw(data, shapes, "shape of the gradient")
    makers = {
        "array": np.asarray,
        "tensor": mg.tensor,
        "list": lambda g: g.tolist(),
        "integers": lambda g: g.astype(int),
        "float32": lambda g: g.astype("float32"),
    }
    make = makers[subject.draw(data, makers, "kind of the gradient")]
    values = case.drawn.integers(70, shape).astype(float)
    case.call().backward(make(values))
    case.assert_gradients(cotangent=np.broadcast_to(values, target))


@keeps("MYGRAD-GRAPH-03")
def test_a_gradient_of_another_shape_is_refused(subject, data):
    """backward raises ValueError for a gradient that cannot be broadcast to the tensor."""
    case = MyGradCase(subject, data)
    wrong = [s for s in (*SHAPES, (2,), (2, 1), (1, 1, 1)) if not _fits(s, case.drawn.shape)]
    shape = subject.draw(data, wrong, "shape of the gradient")
    subject.assert_raises(
        ValueError,
        lambda: case.call().backward(np.ones(shape)),
        f"a gradient of shape {shape} for a tensor of shape {case.drawn.shape}",
        naming=["shape", str(case.drawn.shape).strip("()")],
    )


def _fits(shape, target):
    try:
        return np.broadcast_shapes(shape, target) == target
    except ValueError:
        return False


@keeps("MYGRAD-GRAPH-04")
def test_what_is_no_gradient_is_refused(subject, data):
    """backward raises InvalidGradient for something that is not array-like."""
    case = MyGradCase(subject, data)
    value = NO_GRADIENTS[subject.draw(data, NO_GRADIENTS, "given to backward")]
    subject.assert_raises(InvalidGradient, lambda: case.call().backward(value), "backward from an invalid gradient")


@keeps("MYGRAD-GRAPH-05")
def test_backward_clears_the_graph(subject, data):
    """After backward no tensor of the graph has a creator."""
    case = MyGradCase(subject, data, **TENSORS)
    steps = subject.draw(data, st.integers(0, 3), "operations after it")
    made = [case.call()]
    for _ in range(steps):
        made.append(made[-1] * 2)
    creators = [y.creator is not None for y in made]
    subject.assert_equal("tensors that have a creator before", got=creators, expected=[True] * len(made))
    made[-1].backward()
    creators = [y.creator for y in made]
    subject.assert_equal("creators after backward", got=creators, expected=[None] * len(made))


@keeps("MYGRAD-GRAPH-06")
def test_a_new_graph_forgets_gradients(subject, data):
    """Using a tensor in a new operation clears its gradient; the next backward sets the new one."""
    case = MyGradCase(subject, data, **TENSORS)
    other = case.similar(1)
    case.call().backward(case.g)
    case.assert_gradients()
    y = other.call(case.inputs)
    case.assert_gradients([None] * len(case.inputs), what="gradients in a new graph")
    y.backward(case.g)
    case.assert_gradients(other.drawn.gradients(case.g), what="gradients after a second backward")


@keeps("MYGRAD-GRAPH-07")
def test_null_grad_forgets_one_gradient(subject, data):
    """null_grad clears the gradient of its tensor only, and returns that tensor."""
    case = MyGradCase(subject, data, **TENSORS)
    position = subject.draw(data, range(len(case.inputs)), "position")
    case.call().backward(case.g)
    got = case.inputs[position].null_grad()
    subject.assert_equal("whether null_grad gives the tensor", got=got is case.inputs[position], expected=True)
    expected = [None if i == position else g for i, g in enumerate(case.drawn.gradients(case.g))]
    case.assert_gradients(expected)
    subject.assert_all_same("values", got=case.inputs, expected=case.drawn.values)


@keeps("MYGRAD-GRAPH-08")
def test_every_tensor_of_the_graph_gets_its_gradient(subject, data):
    """Intermediate tensors get their gradients too."""
    case = MyGradCase(subject, data)
    factors = subject.draw(data, st.lists(st.sampled_from((-2, -1, 2)), min_size=1, max_size=4), "factors after it")
    made = [case.call()]
    for factor in factors:
        made.append(made[-1] * factor)
    made[-1].backward(case.g)
    expected = [case.g * float(np.prod(factors[k:])) for k in range(len(made))]
    subject.assert_all_same("gradients of intermediate tensors", got=gradients_of(made), expected=expected)
    case.assert_gradients(cotangent=expected[0], what="gradients of the inputs")


@keeps("MYGRAD-GRAPH-09")
def test_a_partly_cleared_graph_is_refused(subject, data):
    """backward raises InvalidBackprop if another backward cleared a part of the graph; a new graph works."""
    case = MyGradCase(subject, data)
    shared = subject.draw(data, ("the inputs", "a result"), "what two graphs share")
    y = case.call()
    first, second = (y * 2, y * 3) if shared == "a result" else (y, case.call())
    first.backward(case.g)
    subject.assert_raises(InvalidBackprop, second.backward, "backward through a graph that is partly cleared")
    case.call().backward(case.g)
    case.assert_gradients(what="gradients of a new graph")


@keeps("MYGRAD-GRAPH-10")
def test_integers_are_constants(subject, data):
    """Integer and bool tensors are constants, and constant=False raises ValueError for them only."""
    dtype = subject.draw(data, ("int64", "int32", "int8", "uint8", "bool", *subject.dtypes), "dtype")
    shape = subject.draw(data, SHAPES, "shape")
    array, floating = np.ones(shape, dtype), dtype.startswith("float")
    subject.assert_equal("whether it is a constant", got=mg.tensor(array).constant, expected=not floating)
    subject.assert_equal(
        "whether it is a constant with constant=True", got=mg.tensor(array, constant=True).constant, expected=True
    )
    if floating:
        subject.assert_accepted(
            lambda: mg.tensor(array, constant=False), "a floating-point tensor that is not a constant"
        )
    else:
        subject.assert_raises(
            ValueError, lambda: mg.tensor(array, constant=False), "an integer or bool tensor that is not a constant"
        )


@keeps("MYGRAD-GRAPH-11")
def test_no_autodiff_records_nothing(subject, data):
    """Within no_autodiff nothing is recorded, also nested or as a decorator; afterwards recording works again."""
    case = MyGradCase(subject, data)
    depth = subject.draw(data, st.integers(1, 3), "contexts, one in the other")
    decorated = subject.draw(data, st.booleans(), "as a decorator")
    raises = subject.draw(data, st.booleans(), "left by an exception")
    made = []

    def nested(level):
        if level:
            enter(level)
        made.append(case.call())
        made[-1].backward()
        if raises and level == depth - 1:
            raise KeyError(level)

    def enter(level):
        if decorated:
            mg.no_autodiff(nested)(level - 1)
        else:
            with mg.no_autodiff:
                nested(level - 1)

    try:
        enter(depth)
    except KeyError:
        subject.assert_equal("whether the test raised KeyError itself", got=raises, expected=True)
    subject.assert_all_same("outputs", got=made, expected=[case.drawn.output] * depth)
    subject.assert_equal("creators within it", got=[y.creator for y in made], expected=[None] * depth)
    subject.assert_equal("calls of backward_var within it", got=len(case.log), expected=0)
    case.assert_gradients([None] * len(case.inputs), what="gradients within it")
    case.call().backward(case.g)
    case.assert_gradients(what="gradients after it")
