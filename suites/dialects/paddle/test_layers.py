"""PyLayer: what forward and backward get, and what they have to return."""

import numpy as np
import paddle
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.paddle._layers import (
    DTYPES,
    INTEGERS,
    PADDLE,
    SHAPES,
    WEIGHTS,
    constant,
    in_a_child,
    layer,
    leaf,
    scaling,
    summing,
    values,
)
from autograd_conformance.suites.dialects.shared import sentences
from autograd_conformance.suites.dialects.shared.sentences import row

OBJECTS = st.lists(st.sampled_from((None, 2, 0.5, "text", (1, 2), {"key": 1})), max_size=2)

test_number_of_gradients = row(
    "PADDLE-LAYER-03",
    sentences.another_number_of_gradients_raises,
    PADDLE,
    refusal=ValueError,
    naming=lambda given, wanted: [wanted, given] if given > wanted else ["empty", given],
    least=1,
)
test_what_is_no_gradient = row(
    "PADDLE-LAYER-05",
    sentences.what_is_no_gradient_is_refused,
    PADDLE,
    values={"float": 1.0, "integer": 2, "text": "text", "of NumPy": np.float64(1), "array": np.ones(()), "tuple": ()},
    refusal=ValueError,
    naming=["Tensor"],
)


@keeps("PADDLE-LAYER-01")
def test_backward_gets_a_gradient_for_each_output(subject, data):
    """backward gets one gradient for each output tensor, and none for non-tensors before them."""
    weights = subject.draw(data, WEIGHTS, "weights of the outputs")
    objects = subject.draw(data, OBJECTS, "outputs that are not tensors, before the others")
    dtype, shape = subject.draw(data, DTYPES, "dtype"), subject.draw(data, SHAPES, "shape")
    seen = []

    def backward(ctx, *cotangents):
        seen.extend(cotangents)
        return scaled.backward(ctx, *cotangents)

    scaled = scaling(weights)
    apply = layer(lambda ctx, x: (*objects, *scaled.forward(ctx, x)), backward).apply
    x = leaf(values(data, subject, shape, "x"), dtype)
    outputs = apply(x)[len(objects) :]
    cotangents = [values(data, subject, shape, f"gradient of output {n}") for n in range(len(weights))]
    (found,) = paddle.grad(outputs, [x], [constant(g, dtype) for g in cotangents])
    subject.assert_all_same("gradients that backward gets", got=seen, expected=cotangents)
    expected = sum(w * g for w, g in zip(weights, cotangents, strict=True))
    subject.assert_same("gradient", got=found, expected=expected)
    subject.assert_equal("dtype of the gradient", got=str(found.dtype), expected=f"paddle.{dtype}")


@keeps("PADDLE-LAYER-02")
def test_backward_returns_a_gradient_for_each_tensor(subject, data):
    """backward returns gradients for the tensors only, whatever other arguments stand between them."""
    weights = subject.draw(data, WEIGHTS, "weights of the inputs")
    objects = [subject.draw(data, OBJECTS, f"arguments before tensor {n}") for n in range(len(weights))]
    inner = summing(weights)
    apply = layer(lambda ctx, *args: inner.forward(ctx, *filter(paddle.is_tensor, args)), inner.backward).apply
    inputs = [leaf(subject.draw(data, INTEGERS, f"tensor {n}")) for n in range(len(weights))]
    args = [each for before, x in zip(objects, inputs, strict=True) for each in (*before, x)]
    found = paddle.grad(apply(*args), inputs)
    subject.assert_all_same("gradients", got=found, expected=[np.array(w) for w in weights])


def _returning(subject, data, returned):
    weights = subject.draw(data, WEIGHTS, "weights of the inputs")
    inputs = [leaf(subject.draw(data, INTEGERS, f"input {n}")) for n in range(len(weights))]
    apply = summing(weights, returned=returned).apply
    what = f"a backward that returns a {returned.__name__} of {len(weights)} tensors"
    found = subject.assert_accepted(lambda: paddle.grad(apply(*inputs), inputs), what)
    subject.assert_all_same("gradients", got=found, expected=[np.array(w) for w in weights])


@keeps("PADDLE-LAYER-04", variant="tuple")
def test_backward_may_return_a_tuple(subject, data):
    """backward may return its gradients in a tuple."""
    _returning(subject, data, tuple)


@keeps("PADDLE-LAYER-04", variant="list")
def test_backward_may_return_a_list(subject, data):
    """backward may return its gradients in a list."""
    _returning(subject, data, list)


@keeps("PADDLE-LAYER-06")
def test_inputs_that_stop_gradients_get_none(subject, data):
    """None is accepted for inputs that stop gradients, and a tensor there raises."""
    flags = subject.draw(data, st.lists(st.booleans(), max_size=3), "whether the other inputs require a gradient")
    weights = [float(n + 2) for n in range(len(flags) + 1)]
    inputs = [leaf(1.0), *(leaf(1.0) if flag else constant(1.0) for flag in flags)]

    def backward(ctx, g):
        given = zip(weights, (True, *flags), strict=True)
        return tuple(w * g if flag else None for w, flag in given)

    apply = layer(summing(weights).forward, backward).apply
    wanted = [x for x in inputs if not x.stop_gradient]
    found = paddle.grad(apply(*inputs), wanted)
    expected = [np.array(w) for w, x in zip(weights, inputs, strict=True) if not x.stop_gradient]
    subject.assert_all_same("gradients", got=found, expected=expected)
    generous, more = layer(summing([1.0, 1.0]).forward, lambda _, g: (g, g)).apply, (leaf(1.0), constant(1.0))
    what = "a tensor for an input that stops gradients"
    subject.assert_raises(ValueError, lambda: paddle.grad(generous(*more), more[0]), what, naming=["None", 1])


@keeps("PADDLE-LAYER-07")
def test_some_inputs_can_be_asked_for(subject, data):
    """The gradient of a single input can be asked for, although backward returns all."""
    weights = subject.draw(data, st.lists(INTEGERS, min_size=2, max_size=4), "weights of the inputs")
    place = subject.draw(data, st.integers(0, len(weights) - 1), "the input that is asked for")
    inputs = [leaf(1.0) for _ in weights]
    y = summing(weights).apply(*inputs)
    what = "the gradient of one input"
    (found,) = subject.assert_accepted(lambda: paddle.grad(y, inputs[place]), what)
    subject.assert_same("gradient", got=found, expected=np.array(weights[place]))


@keeps("PADDLE-LAYER-08")
def test_arguments_may_be_named(subject, data):
    """Arguments may be given by keyword; their gradients follow in the order of the call."""
    order = subject.draw(data, st.permutations(("x", "y", "factor")), "order of the call")
    positional = subject.draw(data, st.booleans(), "first argument without its name")
    given = subject.draw(data, st.booleans(), "factor given")
    names = [name for name in (sorted(order, key="xy".find) if positional else order) if given or name != "factor"]
    names = ["x", *(name for name in order if name != "x" and name in names)] if positional else names
    tensors = [name for name in names if name != "factor"]
    slopes = {"x": 2.0, "y": 3.0}

    def forward(ctx, x, y=None, *, factor=5.0):
        ctx.factor = factor
        return factor * (slopes["x"] * x + slopes["y"] * y)

    apply = layer(forward, lambda ctx, g: tuple(ctx.factor * slopes[name] * g for name in tensors)).apply
    inputs = {"x": leaf(1.0), "y": leaf(1.0), "factor": 7.0}
    named = {name: inputs[name] for name in names}
    args = [named.pop("x")] if positional else []
    y = apply(*args, **named)
    factor = 7.0 if given else 5.0
    subject.assert_same("output", got=y, expected=np.array(factor * 5.0))
    found = paddle.grad(y, [inputs["x"], inputs["y"]])
    expected = [np.array(factor * slopes[name]) for name in ("x", "y")]
    subject.assert_all_same("gradients", got=found, expected=expected)


@keeps("PADDLE-LAYER-09")
def test_tensors_in_sequences_are_inputs(subject, data):
    """The tensors in a list or tuple get the gradients that backward returns as one sequence."""
    weights = subject.draw(data, WEIGHTS, "weights of the tensors in it")
    kind = subject.draw(data, (list, tuple), "sequence")
    alongside = subject.draw(data, st.booleans(), "a tensor before it")
    inner = summing(weights)

    def backward(ctx, g):
        found = kind(inner.backward(ctx, g))
        return (g, found) if alongside else (found,)

    apply = layer(lambda ctx, *args: inner.forward(ctx, *args[-1]) + sum(args[:-1]), backward).apply
    first, inputs = leaf(1.0), [leaf(1.0) for _ in weights]
    args = [first] if alongside else []
    found = paddle.grad(apply(*args, kind(inputs)), [*args, *inputs])
    subject.assert_all_same("gradients", got=found, expected=[np.array(w) for w in ([1.0] * alongside + weights)])


@keeps("PADDLE-LAYER-10")
def test_apply_gives_what_forward_returned(subject, data):
    """apply returns a tensor, tuple or list as forward did, with non-tensors at their places."""
    made = {
        "a tensor": lambda y: y,
        "a tuple": lambda y: (y, 2 * y),
        "a tuple of one": lambda y: (y,),
        "a list": lambda y: [y, 2 * y],
        "a tuple with others": lambda y: (None, y, "text"),
        "a list with others": lambda y: [y, 2],
    }
    name = subject.draw(data, tuple(made), "what forward returns")
    given = made[name](constant(1.0))
    found = layer(lambda _, x: made[name](x * 1), lambda _, *g: g[0]).apply(leaf(1.0))
    described = [paddle.is_tensor(y) for y in (found if isinstance(found, tuple | list) else [found])]
    expected = [paddle.is_tensor(y) for y in (given if isinstance(given, tuple | list) else [given])]
    got = type(found), described
    subject.assert_equal("type of the result, and which entries are tensors", got=got, expected=(type(given), expected))


@keeps("PADDLE-LAYER-11")
def test_both_methods_are_needed(subject, data):
    """A PyLayer without forward or backward raises an error that names the missing method."""
    missing = subject.draw(data, ("forward", "backward"), "missing")
    methods = {
        "forward": staticmethod(lambda _, x: 2 * x),
        "backward": staticmethod(lambda _, g: 2 * g),
    }
    methods.pop(missing)
    cls = type(paddle.autograd.PyLayer)("Lacking", (paddle.autograd.PyLayer,), methods)
    x = leaf(1.0)
    subject.assert_raises(
        (NotImplementedError, OSError), lambda: paddle.grad(cls.apply(x), x), "a layer that lacks a method",
        naming=["implement", missing],
    )  # fmt: skip


@keeps("PADDLE-LAYER-12")
def test_one_output_is_a_tensor(subject, data):
    """A forward that returns no tensor raises ValueError."""
    returned = subject.draw(data, (None, (), [], 1.0, (None, 2)), "what forward returns")
    apply = layer(lambda *_: returned, lambda _, *g: g).apply
    subject.assert_raises(ValueError, lambda: apply(leaf(1.0)), "a forward without a tensor", naming=["Tensor"])


@keeps("PADDLE-LAYER-13")
def test_lists_among_the_outputs_are_differentiated(subject, data):
    """Tensors in a list among the outputs are differentiated; backward gets a list for them."""
    inside = subject.draw(data, st.lists(INTEGERS, min_size=2, max_size=3), "weights of the outputs in a list")
    alongside = subject.draw(data, INTEGERS, "weight of the output next to it")

    def backward(_, given, last):
        return sum(w * g for w, g in zip(inside, given, strict=True)) + alongside * last

    def gradient():
        apply = layer(lambda _, x: ([w * x for w in inside], alongside * x), backward).apply
        x = leaf(1.0)
        outputs, last = apply(x)
        return paddle.grad([*outputs, last], x)[0].item()

    subject.assert_equal("gradient", got=in_a_child(gradient), expected=sum(inside) + alongside)


@keeps("PADDLE-LAYER-14")
def test_forward_is_not_recorded(subject, data):
    """Grad mode is off in forward and on again after it, and only backward decides the gradient."""
    slope = subject.draw(data, INTEGERS, "what backward multiplies with")
    seen = []

    def forward(ctx, x):
        seen.append((paddle.is_grad_enabled(), (3 * x).stop_gradient))
        return x * x

    x = leaf(subject.draw(data, INTEGERS, "x"))
    (found,) = paddle.grad(layer(forward, lambda _, g: slope * g).apply(x), x)
    got = [seen, paddle.is_grad_enabled()]
    what = "grad mode in forward, whether its results stop gradients, and grad mode after it"
    subject.assert_equal(what, got=got, expected=[[(False, True)], True])
    subject.assert_same("gradient", got=found, expected=np.array(slope))
