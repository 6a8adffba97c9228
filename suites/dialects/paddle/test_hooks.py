"""Hooks around PyLayers: on gradients, and on what is saved."""

import numpy as np
import paddle
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.paddle._layers import INTEGERS, constant, in_a_child, layer, leaf, scaling

FACTORS = st.lists(INTEGERS | st.none(), min_size=1, max_size=3)


def _hooked(subject, data, place):
    factors = subject.draw(data, FACTORS, "what each hook multiplies with, None if it returns nothing")
    slope, cotangent = subject.draw(data, INTEGERS, "slope"), subject.draw(data, INTEGERS, "gradient of the output")
    seen = []

    def hook(factor):
        return lambda g: (seen.append(g.item()), None if factor is None else factor * g)[1]

    x = leaf(1.0)
    tensors = {"input": x, "output": scaling([slope]).apply(x)[0]}
    for factor in factors:
        tensors[place].register_hook(hook(factor))
    tensors["output"].backward(constant(cotangent))
    start = cotangent * (slope if place == "input" else 1)
    steps = [start * float(np.prod([f or 1 for f in factors[:n]])) for n in range(len(factors) + 1)]
    subject.assert_equal("gradients that the hooks get", got=seen, expected=steps[:-1])
    expected = steps[-1] * (1 if place == "input" else slope)
    subject.assert_same(f".grad with hooks on the {place}", got=x.grad, expected=np.array(expected))


@keeps("PADDLE-HOOK-01", variant="input")
def test_hooks_on_inputs_replace_gradients(subject, data):
    """Hooks on the input see and replace its gradient in order; None keeps it."""
    _hooked(subject, data, "input")


@keeps("PADDLE-HOOK-01", variant="output")
def test_hooks_on_outputs_replace_gradients(subject, data):
    """Hooks on the output see and replace the gradient that backward gets; None keeps it."""
    _hooked(subject, data, "output")


@keeps("PADDLE-HOOK-02")
def test_removed_hooks_are_not_called(subject, data):
    """Only the hooks that were not removed are called, and remove returns True."""
    removed = subject.draw(data, st.lists(st.booleans(), min_size=1, max_size=3), "whether each hook is removed")
    x, seen = leaf(1.0), []
    y = scaling([2.0]).apply(x)[0]
    helpers = [y.register_hook(lambda _, n=n: seen.append(n)) for n in range(len(removed))]
    removals = [helper.remove() for helper, flag in zip(helpers, removed, strict=True) if flag]
    subject.assert_equal("results of remove", got=removals, expected=[True] * sum(removed))
    y.backward()
    expected = [n for n, flag in enumerate(removed) if not flag]
    subject.assert_equal("hooks that are called", got=seen, expected=expected)


@keeps("PADDLE-HOOK-03")
def test_tensors_that_stop_gradients_refuse_hooks(subject, data):
    """register_hook raises for constants, outputs under no_grad and marked outputs."""
    name = subject.draw(data, ("a constant", "an output under no_grad", "a marked output"), "tensor")

    def marking(ctx, x):
        y = 2 * x
        ctx.mark_non_differentiable(y)
        return y, 3 * x

    with paddle.set_grad_enabled(name != "an output under no_grad"):
        outputs = layer(marking, lambda _, g, h: 3 * h).apply(leaf(1.0))
    tensor = constant(1.0) if name == "a constant" else outputs[0]
    subject.assert_raises(
        RuntimeError, lambda: tensor.register_hook(lambda g: g), "a hook on it", naming=["hook", "gradient"]
    )


def _saving(kept, seen):
    """A PyLayer that saves ``kept(input)`` and notes what it reads in backward."""

    def forward(ctx, x):
        ctx.save_for_backward(*kept(x))
        return 2 * x

    return layer(forward, lambda ctx, g: (seen.append(ctx.saved_tensor()), 2 * g)[1])


@keeps("PADDLE-HOOK-04")
def test_saved_tensors_go_through_the_hooks(subject, data):
    """Each saved tensor is packed once, and unpacked in each pass; backward gets what unpack returns."""
    numbers = subject.draw(data, st.lists(INTEGERS, min_size=1, max_size=3), "saved")
    passes, shift = subject.draw(data, st.integers(0, 2), "passes"), subject.draw(data, INTEGERS, "added by unpack")
    seen, packed, unpacked = [], [], []

    def pack(x):
        packed.append(x.item())
        return {"value": x.item()}

    def unpack(held):
        unpacked.append(held["value"])
        return constant(held["value"] + shift)

    x = leaf(1.0)
    with paddle.autograd.saved_tensors_hooks(pack, unpack):
        y = _saving(lambda _: map(constant, numbers), seen).apply(x)
    for _ in range(passes):
        paddle.grad(y, x, retain_graph=True)
    got = [[n for n in packed if n in numbers][: len(numbers)], unpacked]
    expected = [numbers, numbers * passes]
    subject.assert_equal("values that are packed, and unpacked in backward", got=got, expected=expected)
    for saved in seen:
        expected = [np.array(n + shift) for n in numbers]
        subject.assert_all_same("saved tensors", got=saved, expected=expected)


@keeps("PADDLE-HOOK-04", variant="list", examples=0.2)
def test_saved_tensors_in_a_list_go_through_the_hooks(subject, data):
    """Tensors that are saved in one list come back through the hooks."""
    numbers = subject.draw(data, st.lists(INTEGERS, min_size=1, max_size=3), "saved in one list")

    def read():
        seen, x = [], leaf(1.0)
        with paddle.autograd.saved_tensors_hooks(lambda x: x, lambda x: x):
            y = _saving(lambda _: ([constant(n) for n in numbers],), seen).apply(x)
        paddle.grad(y, x)
        return [n.item() for n in seen[0][0]]

    what = "what comes of tensors saved in a list under hooks"
    subject.assert_equal(what, got=in_a_child(read), expected=numbers)


@keeps("PADDLE-HOOK-05")
def test_pack_hook_gets_tensors_only(subject, data):
    """pack_hook is never called with None."""
    flags = subject.draw(data, st.lists(st.booleans(), min_size=1, max_size=3), "whether each saved value is None")
    seen = []

    def pack(value):
        seen.append(paddle.is_tensor(value))
        return value

    with paddle.autograd.saved_tensors_hooks(pack, lambda held: held):
        _saving(lambda x: [None if flag else 2 * x for flag in flags], []).apply(leaf(1.0))
    subject.assert_that(all(seen), "arguments of pack_hook", got=f"tensors: {seen}", expected="tensors alone")
