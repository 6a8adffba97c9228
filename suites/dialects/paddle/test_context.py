"""PyLayerContext: what forward leaves for backward, and how it marks inputs and outputs."""

import numpy as np
import paddle
from hypothesis import strategies as st
from paddle.autograd.py_layer import once_differentiable

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.paddle._layers import (
    INTEGERS,
    PADDLE,
    SHAPES,
    WEIGHTS,
    constant,
    layer,
    leaf,
)
from autograd_conformance.suites.dialects.shared import sentences
from autograd_conformance.suites.dialects.shared.sentences import row

test_unused_outputs = row(
    "PADDLE-CTX-03",
    sentences.unused_outputs_have_cotangents_of_zeros,
    PADDLE,
    options=[{}, {"materialize": True}, {"materialize": False}],
    shapes=((), (1,), (3,), (2, 3), (0,)),
)


@keeps("PADDLE-CTX-01")
def test_saved_tensors_come_back(subject, data):
    """saved_tensor gives tensors and None in order, as a tuple, in every pass."""
    numbers = subject.draw(data, st.lists(INTEGERS | st.none(), min_size=1, max_size=4), "saved")
    passes = subject.draw(data, st.integers(1, 3), "passes")
    seen = []

    def forward(ctx, x):
        ctx.save_for_backward(*(None if n is None else constant(n) for n in numbers))
        return 2 * x

    x = leaf(1.0)
    y = layer(forward, lambda ctx, g: (seen.append(ctx.saved_tensor()), g)[1]).apply(x)
    for _ in range(passes):
        paddle.grad(y, x, retain_graph=True)
    expected = [None if n is None else np.array(n) for n in numbers]
    for saved in seen:
        subject.assert_equal("type of what saved_tensor gives", got=type(saved), expected=tuple)
        subject.assert_all_same("saved tensors", got=saved, expected=expected)
    subject.assert_equal("passes", got=len(seen), expected=passes)


@keeps("PADDLE-CTX-02")
def test_without_saved_tensors_there_are_none(subject, data):
    """saved_tensor gives None in forward and backward if nothing was saved."""
    seen = []

    def forward(ctx, x):
        seen.append(ctx.saved_tensor())
        return 2 * x

    x = leaf(subject.draw(data, INTEGERS, "x"))
    y = layer(forward, lambda ctx, g: (seen.append(ctx.saved_tensor()), g)[1]).apply(x)
    paddle.grad(y, x)
    subject.assert_equal("saved_tensor() in forward and backward", got=seen, expected=[None, None])


@keeps("PADDLE-CTX-04")
def test_marked_outputs_are_not_differentiable(subject, data):
    """Marked outputs stop gradients, and backward gets zeros for them."""
    flags = subject.draw(data, st.lists(st.booleans(), min_size=1, max_size=3), "whether each output is marked")
    flags = [*flags, False]
    shape = subject.draw(data, SHAPES, "shape")
    seen = []

    def forward(ctx, x):
        outputs = [(n + 2) * x for n in range(len(flags))]
        ctx.mark_non_differentiable(*(y for y, flag in zip(outputs, flags, strict=True) if flag))
        return tuple(outputs)

    def backward(ctx, *cotangents):
        seen.extend(cotangents)
        return cotangents[-1]

    x = leaf(np.ones(shape))
    outputs = layer(forward, backward).apply(x)
    subject.assert_equal("stop_gradient of the outputs", got=[y.stop_gradient for y in outputs], expected=flags)
    paddle.grad([y for y in outputs if not y.stop_gradient], x)
    expected = [np.zeros(shape) if flag else np.ones(shape) for flag in flags]
    subject.assert_all_same("gradients that backward gets", got=seen, expected=expected)


def _passed_on(subject, data, is_leaf):
    """A leaf, the layer's input, its output if that input is marked not in place and returned, and the slope."""
    slope = subject.draw(data, INTEGERS, "what backward multiplies with")
    x = leaf(subject.draw(data, INTEGERS, "x"))
    given = x if is_leaf else 3 * x

    def forward(ctx, x):
        ctx.mark_not_inplace(x)
        return x

    return x, given, layer(forward, lambda _, g: slope * g).apply(given), slope


@keeps("PADDLE-CTX-05", variant="object")
def test_an_input_marked_not_in_place_comes_back_as_another(subject, data):
    """An input marked not in place comes back as a new tensor, and its version stays 0."""
    _, given, y, _ = _passed_on(subject, data, subject.draw(data, st.booleans(), "the input is a leaf"))
    subject.assert_equal("whether the output is the input", got=y is given, expected=False)
    subject.assert_same("output", got=y, expected=given)
    subject.assert_equal("version of the input", got=given.inplace_version, expected=0)


@keeps("PADDLE-CTX-05", variant="graph")
def test_an_input_marked_not_in_place_keeps_its_place_in_the_graph(subject, data):
    """An input marked not in place keeps its own gradient next to that of the output."""
    x, given, y, slope = _passed_on(subject, data, subject.draw(data, st.booleans(), "the input is a leaf"))
    found = subject.assert_accepted(lambda: paddle.grad([given * 5, y * 7], x), "the gradients of input and output")
    inner = 1 if given is x else 3
    subject.assert_all_same("gradients", got=found, expected=[np.array(inner * (5 + 7 * slope))])


@keeps("PADDLE-CTX-06")
def test_gradients_have_the_dtype_of_the_outputs(subject, data):
    """backward gets gradients in its output's dtype, unless set_grad_in_dtype_consistent is False."""
    dtype, other = subject.draw(data, st.permutations(("float64", "float32", "bfloat16")), "dtypes")[:2]
    flag = subject.draw(data, (None, True, False), "set_grad_in_dtype_consistent")
    seen = []

    def forward(ctx, x):
        ctx.set_grad_in_dtype_consistent(flag) if flag is not None else None
        return x * 1

    x = leaf(np.ones(2), dtype)
    y = layer(forward, lambda _, g: (seen.append(str(g.dtype)), g.astype(dtype))[1]).apply(x)
    paddle.grad(y, x, constant(np.ones(2), other))
    expected = other if flag is False else dtype
    subject.assert_equal("dtype of the gradient that backward gets", got=seen, expected=[f"paddle.{expected}"])


@keeps("PADDLE-CTX-07")
def test_attributes_belong_to_a_call(subject, data):
    """Each call's backward reads the attributes that its own forward set, in any order of the passes."""
    weights = subject.draw(data, WEIGHTS, "weight of each call")
    order = subject.draw(data, st.permutations(range(len(weights))), "order of the backward passes")

    def forward(ctx, x, weight):
        ctx.weight, ctx.more = weight, {"weight": weight}
        return weight * x

    apply = layer(forward, lambda ctx, g: (ctx.weight + ctx.more["weight"]) * g).apply
    x = leaf(1.0)
    outputs = [apply(x, weight) for weight in weights]
    found = [paddle.grad(outputs[n], x)[0] for n in order]
    subject.assert_all_same("gradients", got=found, expected=[np.array(2 * weights[n]) for n in order])


@keeps("PADDLE-CTX-08")
def test_a_returned_input_is_changed_in_place(subject, data):
    """An unmarked returned input is the output itself with a higher version; for a leaf it raises."""
    others = subject.draw(data, st.integers(0, 2), "outputs next to it")
    slope = subject.draw(data, INTEGERS, "what backward multiplies with")

    def forward(ctx, x):
        return (x, *(n * x for n in range(others))) if others else x

    apply = layer(forward, lambda _, g, *more: slope * g).apply
    x = leaf(subject.draw(data, INTEGERS, "x"))
    given = 3 * x
    found = apply(given)
    y = found[0] if others else found
    subject.assert_equal("whether the output is the input", got=y is given, expected=True)
    subject.assert_equal("version of the input", got=given.inplace_version, expected=1)
    subject.assert_all_same("gradient", got=paddle.grad(y, x), expected=[np.array(3 * slope)])
    subject.assert_raises(ValueError, lambda: apply(x), "a leaf that forward returns", naming=["Leaf", "inplace"])


@keeps("PADDLE-CTX-09")
def test_once_differentiable_backwards_are_not_recorded(subject, data):
    """With once_differentiable there is no second derivative; without it there is."""
    number = subject.draw(data, INTEGERS, "x")
    recorded = subject.draw(data, st.booleans(), "without the decorator")

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    def backward(ctx, g):
        return 2 * ctx.saved_tensor()[0] * g

    x = leaf(number)
    y = layer(forward, backward if recorded else once_differentiable(backward)).apply(x)
    (first,) = paddle.grad(y, x, create_graph=True)
    subject.assert_same("gradient", got=first, expected=np.array(2 * number))
    (second,) = paddle.grad(first, x, allow_unused=True)
    subject.assert_same("second derivative", got=second, expected=np.array(2.0) if recorded else None)
