"""paddle.grad and backward through PyLayers: gradients, accumulation, and repeated passes."""

import numpy as np
import paddle
from hypothesis import strategies as st
from paddle.distributed.fleet.utils import recompute

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.paddle._layers import (
    INTEGERS,
    PADDLE,
    SHAPES,
    WEIGHTS,
    constant,
    custom,
    in_a_child,
    leaf,
    scaling,
    summing,
    values,
)
from autograd_conformance.suites.dialects.shared import sentences
from autograd_conformance.suites.dialects.shared.sentences import row


def square(x):
    """A square by a PyLayer, which saves its input."""
    return custom(lambda x: x * x, lambda saved, gs: 2 * saved[0] * gs[0])(x)


@keeps("PADDLE-ENGINE-01")
def test_missing_gradients_of_outputs_are_ones(subject, data):
    """Gradients of outputs that are not given, or None, are ones."""
    weights = subject.draw(data, WEIGHTS, "weights of the outputs")
    shape = subject.draw(data, SHAPES, "shape")
    flags = subject.draw(data, st.lists(st.booleans(), min_size=len(weights), max_size=len(weights)), "given")
    cotangents = [values(data, subject, shape, f"gradient {n}") if flag else None for n, flag in enumerate(flags)]
    x = leaf(np.ones(shape))
    given = [None if g is None else constant(g) for g in cotangents] if any(flags) else None
    found = paddle.grad(scaling(weights).apply(x), x, given)
    dense = [np.ones(shape) if g is None else g for g in cotangents]
    expected = sum((w * g for w, g in zip(weights, dense, strict=True)), np.zeros(shape))
    subject.assert_all_same("gradient", got=found, expected=[expected])


@keeps("PADDLE-ENGINE-02")
def test_unused_inputs(subject, data):
    """An unused input raises, or gets None with allow_unused."""
    flags = subject.draw(data, st.lists(st.booleans(), min_size=1, max_size=4).filter(lambda f: not all(f)), "used")
    inputs = [leaf(1.0) for _ in (*flags, True)]
    used = [x for x, flag in zip(inputs, (*flags, True), strict=True) if flag]
    y = summing([2.0] * len(used)).apply(*used)
    found = paddle.grad(y, inputs, retain_graph=True, allow_unused=True)
    expected = [np.array(2.0) if flag else None for flag in (*flags, True)]
    subject.assert_all_same("gradients with allow_unused", got=found, expected=expected)
    subject.assert_raises(
        ValueError, lambda: paddle.grad(y, inputs), "an unused input", naming=["input", "allow_unused"]
    )


@keeps("PADDLE-ENGINE-03")
def test_gradients_can_be_differentiated_under_create_graph(subject, data):
    """Gradients have second derivatives if and only if create_graph is set."""
    number = subject.draw(data, INTEGERS, "x")
    create_graph = subject.draw(data, st.booleans(), "create_graph")
    x = leaf(number)
    (first,) = paddle.grad(square(x) * x, x, create_graph=create_graph)
    subject.assert_same("gradient", got=first, expected=np.array(3 * number**2))
    subject.assert_equal("stop_gradient of the gradient", got=first.stop_gradient, expected=not create_graph)
    y = first + x * 0
    second = paddle.grad(y, x, create_graph=True)
    expected = 6 * number if create_graph else 0.0
    subject.assert_all_same("second derivative", got=second, expected=[np.array(expected)])


@keeps("PADDLE-ENGINE-04")
def test_outputs_can_be_their_own_grad_outputs(subject, data):
    """First and second derivatives are right if the outputs are given as their own grad_outputs."""
    weights = subject.draw(data, WEIGHTS, "weights of the outputs")
    x = leaf(1.0)
    outputs = scaling(weights).apply(x)
    (first,) = paddle.grad(outputs, x, list(outputs), create_graph=True)
    subject.assert_same("gradient", got=first, expected=np.array(sum(w * w for w in weights)))
    (second,) = paddle.grad(first, x)
    subject.assert_same("second derivative", got=second, expected=np.array(sum(w * w for w in weights)))


@keeps("PADDLE-ENGINE-05")
def test_grad_stores_nothing(subject, data):
    """paddle.grad returns the summed gradients, and .grad keeps what it held."""
    weights = subject.draw(data, WEIGHTS, "weights of the outputs")
    start = subject.draw(data, INTEGERS | st.none(), "what .grad holds before")
    x, other = leaf(1.0), leaf(1.0)
    x.grad = None if start is None else constant(start)
    y = sum(scaling(weights).apply(x)) + other
    found = paddle.grad(y, [x, other])
    subject.assert_all_same("gradients", got=found, expected=[np.array(sum(weights)), np.array(1.0)])
    kept = [None if start is None else np.array(start), None]
    subject.assert_all_same(".grad after paddle.grad", got=[x.grad, other.grad], expected=kept)


@keeps("PADDLE-ENGINE-06")
def test_backward_accumulates(subject, data):
    """Both forms of backward add to .grad, from clear_grad on."""
    weights = subject.draw(data, WEIGHTS, "weight of each pass")
    cleared = subject.draw(data, st.integers(0, len(weights) - 1), "passes before clear_grad")
    way = subject.draw(data, ("Tensor.backward", "autograd.backward"), "way")
    x = leaf(1.0)
    for n, weight in enumerate(weights):
        if n == cleared:
            x.clear_grad()
        y = scaling([2.0]).apply(x)[0]
        if way == "Tensor.backward":
            y.backward(constant(weight))
        else:
            paddle.autograd.backward([y], [constant(weight)])
    subject.assert_same(".grad", got=x.grad, expected=np.array(2 * sum(weights[cleared:])))


@keeps("PADDLE-ENGINE-07")
def test_backward_checks_its_tensors(subject, data):
    """autograd.backward raises for repeated tensors and for another number of grad_tensors."""
    outputs = scaling([1.0, 2.0, 3.0]).apply(leaf(1.0))
    chosen = subject.draw(data, st.lists(st.integers(0, 2), min_size=1, max_size=3), "tensors")
    length = subject.draw(data, st.integers(1, 3), "number of grad_tensors")
    tensors, cotangents = [outputs[n] for n in chosen], [constant(1.0)] * length

    def run():
        return paddle.autograd.backward(tensors, cotangents)

    if len(set(chosen)) < len(chosen):
        subject.assert_raises(AssertionError, run, "a tensor given twice", naming=["duplicate"])
    elif length != len(chosen):
        subject.assert_raises(AssertionError, run, "another number of grad_tensors", naming=["length"])
    else:
        subject.assert_accepted(run, "distinct tensors and as many gradients")


@keeps("PADDLE-ENGINE-08", examples=0.4)
def test_no_gradient_flows_through_no_grad_vars(subject, data):
    """Outputs in no_grad_vars contribute nothing to the gradient; other paths do."""
    weights = subject.draw(data, st.lists(INTEGERS, min_size=2, max_size=3), "weight of each output")
    flags = st.lists(st.booleans(), min_size=len(weights), max_size=len(weights))
    flags = subject.draw(data, flags, "outputs in no_grad_vars")

    def gradient():
        x = leaf(1.0)
        outputs = scaling([2.0] * len(weights)).apply(x)
        y = sum(w * y for w, y in zip(weights, outputs, strict=True)) + 5 * x
        cut = [y for y, flag in zip(outputs, flags, strict=True) if flag]
        return paddle.grad(y, x, no_grad_vars=cut)[0].item()

    expected = 5 + sum(2 * w for w, flag in zip(weights, flags, strict=True) if not flag)
    subject.assert_equal("gradient past some outputs of a layer", got=in_a_child(gradient), expected=expected)


@keeps("PADDLE-ENGINE-09", variant="grad")
def test_a_retained_graph_gives_the_same_again(subject, data):
    """paddle.grad gives the same gradients in each pass over a retained graph."""
    number, passes = subject.draw(data, INTEGERS, "x"), subject.draw(data, st.integers(1, 3), "passes")
    x = leaf(number)
    y = square(x)
    got = [paddle.grad(y, x, retain_graph=True)[0] for _ in range(passes)]
    subject.assert_all_same("gradients", got=got, expected=[np.array(2 * number)] * passes)


@keeps("PADDLE-ENGINE-09", variant="backward", examples=0.2)
def test_a_retained_graph_gives_the_same_again_in_backward(subject, data):
    """backward adds the same gradients in each pass over a retained graph."""
    number, passes = subject.draw(data, INTEGERS, "x"), subject.draw(data, st.integers(2, 3), "passes")

    def accumulated():
        x = leaf(number)
        y = square(x)
        for _ in range(passes):
            y.backward(retain_graph=True)
        return x.grad.item()

    what = "gradients of a retained graph, accumulated"
    subject.assert_equal(what, got=in_a_child(accumulated), expected=2 * number * passes)


@keeps("PADDLE-ENGINE-09", variant="freed", examples=0.2)
def test_a_freed_graph_gives_an_error(subject, data):
    """A second backward through a freed graph raises, with and without a layer."""
    number, built_in = subject.draw(data, INTEGERS, "x"), subject.draw(data, st.booleans(), "without a layer")

    def twice():
        x = leaf(number)
        y = x * x if built_in else square(x)
        y.backward()
        y.backward()
        return "no error"

    what = "a second pass through a graph that was freed"
    subject.assert_equal(what, got=in_a_child(twice), expected="SystemError")


@keeps("PADDLE-ENGINE-10")
def test_nothing_is_recorded_under_no_grad(subject, data):
    """Under no_grad the outputs stop gradients, unless recording is enabled within it."""
    weights = subject.draw(data, WEIGHTS, "weights of the outputs")
    recording = subject.draw(data, st.booleans(), "enable_grad within it")
    x = leaf(1.0)
    with paddle.no_grad(), paddle.set_grad_enabled(recording):
        outputs = scaling(weights).apply(x)
    got = [y.stop_gradient for y in outputs]
    subject.assert_equal("stop_gradient of the outputs", got=got, expected=[not recording] * len(weights))
    found = paddle.grad(sum(outputs) + x, x)
    expected = 1 + (sum(weights) if recording else 0)
    subject.assert_all_same("gradient", got=found, expected=[np.array(expected)])


test_recomputation = row(
    "PADDLE-ENGINE-11",
    sentences.recomputation_runs_the_function_again,
    PADDLE,
    ways={"recompute": lambda f: lambda *xs: recompute(f, *xs)},
)
