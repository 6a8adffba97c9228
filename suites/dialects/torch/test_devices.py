"""Accelerators: streams and devices of backward, copies, memory, graphs over several devices, and accuracy."""

from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import strategies as st

from autograd_conformance.harness.probing.devices import coarseness
from autograd_conformance.harness.testing.marks import keeps

WEIGHTS = st.lists(st.sampled_from((-3, -2, 2, 3)), min_size=1, max_size=4)


def _weighted(subject, weight, note=lambda: None, gradient=lambda g: g):
    """A Function that multiplies by ``weight``; its backward calls ``note`` and returns ``gradient(g)``."""

    def backward(ctx, g):
        note()
        return gradient(weight * g)

    return subject.custom(forward=lambda ctx, x: weight * x, backward=backward)


def _moved_from_the_cpu(subject, data, device):
    """The gradient of a scalar that backward returned on the CPU, as it arrives; for a vector this has to raise."""
    weight = subject.draw(data, (-2, 3), "weight")
    dtype = getattr(torch, subject.draw(data, subject.dtypes, "dtype"))
    f = _weighted(subject, weight, gradient=lambda g: torch.full(g.shape, weight, dtype=dtype))
    scalar, vector = (torch.ones(shape, dtype=dtype, device=device, requires_grad=True) for shape in ((), (2,)))
    moved = partial(torch.autograd.grad, f(scalar), scalar, torch.ones_like(scalar))
    (gradient,) = subject.assert_accepted(moved, "a scalar gradient on the CPU")
    what = "device of a gradient that backward returned on the CPU"
    subject.assert_equal(what, got=gradient.device, expected=scalar.device)
    across = partial(torch.autograd.grad, f(vector), vector, torch.ones_like(vector))
    subject.assert_raises(RuntimeError, across, "a gradient on the CPU that is not a scalar", naming=["device"])
    return gradient, weight


@keeps("DEV-01", accelerator=True, variant="scalar")
def test_a_scalar_gradient_moves_to_the_accelerator(subject, data):
    """A scalar gradient on the CPU arrives on the accelerator; a vector there raises."""
    gradient, weight = _moved_from_the_cpu(subject, data, subject.device)
    expected = torch.tensor(float(weight))
    subject.assert_same("a gradient that backward returned on the CPU", got=gradient, expected=expected)


@keeps("DEV-01", variant="meta")
def test_a_scalar_gradient_moves_to_the_meta_device(subject, data):
    """A scalar gradient on the CPU arrives on the meta device; a vector there raises."""
    _moved_from_the_cpu(subject, data, "meta")


# Streams.


def _streams(subject, number=2):
    """The current stream of the accelerator and more of them; skips the test where there are none."""
    if not hasattr(torch, "accelerator"):
        pytest.skip("torch.accelerator came with 2.6")
    found = torch.accelerator.current_accelerator()
    if found is None or found.type != subject.device:
        pytest.skip(f"torch.accelerator is {found}, and not {subject.device}")
    try:
        return [torch.accelerator.current_stream(), *(torch.Stream(device=subject.device) for _ in range(number))]
    except (NotImplementedError, RuntimeError) as refused:
        pytest.skip(f"{subject.device} has no streams: {refused}")


@contextmanager
def _on(stream):
    before = torch.accelerator.current_stream()
    torch.accelerator.set_stream(stream)
    try:
        yield
    finally:
        torch.accelerator.set_stream(before)


@contextmanager
def _current(index):
    before = torch.accelerator.current_device_index()
    torch.accelerator.set_device_index(index)
    try:
        yield
    finally:
        torch.accelerator.set_device_index(before)


def _ordered(after, before):
    """Let one stream wait for what is queued on another."""
    after.wait_event(before.record_event())


@keeps("DEV-01", accelerator=True, variant="stream")
def test_backward_runs_on_the_stream_of_its_forward(subject, data):
    """Each backward runs on the stream of its forward, whatever stream starts the pass."""
    streams = _streams(subject)
    weights = subject.draw(data, WEIGHTS, "weights of the Functions")
    places = st.lists(st.integers(0, 2), min_size=len(weights), max_size=len(weights))
    chosen = subject.draw(data, places, "streams of the Functions")
    caller = subject.draw(data, (0, 1, 2), "stream that calls backward")
    x = subject.tensor([1.0, 2.0]).requires_grad_()
    y, seen = x, []
    for weight, place in zip(weights, chosen, strict=True):
        torch.accelerator.synchronize()
        with _on(streams[place]):
            y = _weighted(subject, weight, lambda: seen.append(streams.index(torch.accelerator.current_stream())))(y)
    torch.accelerator.synchronize()
    with _on(streams[caller]):
        (gradient,) = torch.autograd.grad(y, x, torch.ones_like(y))
    torch.accelerator.synchronize()
    subject.assert_equal("streams on which backward ran", got=seen, expected=chosen[::-1])
    subject.assert_same("gradient", got=gradient, expected=torch.full((2,), float(torch.tensor(weights).prod())))


@keeps("DEV-02", accelerator=True)
def test_gradients_can_be_used_on_the_stream_that_called_backward(subject, data):
    """Forward, backward, and what uses the gradients are on streams of which each waits for the one before."""
    streams = _streams(subject)
    forward, caller = (subject.draw(data, (0, 1, 2), f"stream of {what}") for what in ("forward", "backward"))
    weight = subject.draw(data, (-2, 3), "weight")
    accumulated = subject.draw(data, st.booleans(), "by .grad")
    x = subject.tensor([1.0, 2.0]).requires_grad_()
    _ordered(streams[forward], streams[0])
    with _on(streams[forward]):
        y = _weighted(subject, weight)(x) * _weighted(subject, 1)(x)
    _ordered(streams[caller], streams[forward])
    with _on(streams[caller]):
        g = torch.ones_like(y) * 2
        if accumulated:
            torch.autograd.backward(y, g)
        gradient = x.grad if accumulated else torch.autograd.grad(y, x, g)[0]
        used = (gradient * 3).cpu()
    subject.assert_same("three times the gradient", got=used, expected=12.0 * weight * torch.tensor([1.0, 2.0]))


@keeps("DEV-04", accelerator=True)
def test_backward_leaves_device_and_stream(subject, data):
    """After backward the current device and the current stream are those of before."""
    streams = _streams(subject, number=1)
    device = torch.get_device_module(subject.device)
    mine, caller = (subject.draw(data, range(device.device_count()), f"device of {w}") for w in ("forward", "caller"))
    place = subject.draw(data, (0, 1), "stream of the caller") if caller == streams[1].device.index else 0
    x = torch.ones(2, device=f"{subject.device}:{mine}", requires_grad=True)
    with _current(caller):
        stream = streams[1] if place else torch.accelerator.current_stream()
        with _on(stream):
            torch.autograd.grad(_weighted(subject, 2)(x).exp().sum(), x)
            found = torch.accelerator.current_device_index(), torch.accelerator.current_stream()
    subject.assert_equal("device and stream after backward", got=found, expected=(caller, stream))


# Copies and memory.


def _through_the_host(subject, reused):
    """A Function that computes the double of its input on the host, whose buffer it uses again."""

    def doubled(ctx, x):
        host = x.cpu() * 2
        back = host.to(x.device)
        if reused:
            host.fill_(-1)
        return back

    return subject.custom(forward=doubled, backward=doubled)


@keeps("DEV-03", accelerator=True)
def test_a_copy_has_happened_when_it_returns(subject, data):
    """A Function that computes on the host gets what was queued, and what it copied back stays."""
    dtype = subject.draw(data, [d for d in subject.dtypes if d.startswith("float")], "dtype")
    offset = subject.draw(data, st.integers(0, 2), "offset of the view")
    reused = subject.draw(data, st.booleans(), "buffer of the host is used again")
    count = subject.draw(data, st.integers(1, 3), "Functions in a row")
    values = torch.arange(1.0, 5.0)
    x = subject.tensor(values.numpy(), dtype)
    x.requires_grad_()
    y = (x * 2)[offset:]
    for _ in range(count):
        y = _through_the_host(subject, reused)(y)
    (gradient,) = torch.autograd.grad(y, x, torch.ones_like(y) * 2)
    subject.assert_same("output", got=y, expected=2 ** (count + 1) * values[offset:])
    used = torch.where(torch.arange(4) < offset, 0.0, 1.0)
    subject.assert_same("gradient", got=gradient, expected=2 ** (count + 2) * used)


def _with_temporaries(ctx, x):
    """The double of a tensor, by temporary ones that were computed, and are freed while they are still needed."""
    larger = x + 1
    # The host waits, so that the values are there.
    assert bool((larger > x).all())
    double = larger * 2
    del larger
    zeros = torch.zeros_like(x)
    return double - 2 + zeros


@keeps("DEV-07", accelerator=True)
def test_freed_memory_keeps_its_values_while_work_is_queued(subject, data):
    """Functions whose temporary tensors are freed at once, while others of their size are made, are right."""
    size = subject.draw(data, (1, 1000), "elements")
    count = subject.draw(data, st.integers(1, 4), "Functions in a row")
    double = subject.custom(forward=_with_temporaries, backward=_with_temporaries)
    values = torch.ones(size)
    x = subject.tensor(values.numpy()).requires_grad_()
    y = x
    for _ in range(count):
        y = double(y)
    (gradient,) = torch.autograd.grad(y, x, torch.ones_like(y))
    subject.assert_same("output", got=y, expected=2**count * values)
    subject.assert_same("gradient", got=gradient, expected=2**count * values)


# Several devices.


def _devices(subject):
    """The CPU and each accelerator of the kind."""
    module = getattr(torch, subject.device)
    count = module.device_count() if hasattr(module, "device_count") else 1
    return ["cpu", *(f"{subject.device}:{index}" for index in range(count))]


def _place(device):
    """The kind of a device and its number: a device without a number is the first."""
    return device.type, device.index or 0


@keeps("DEV-01", accelerator=True, variant="device")
def test_backward_runs_on_the_device_of_its_forward(subject, data):
    """backward runs on the device of its forward, whatever device is current."""
    _streams(subject, number=0)
    weight = subject.draw(data, (-2, 3), "weight")
    _, *devices = _devices(subject)
    mine, caller = (subject.draw(data, range(len(devices)), what) for what in ("device", "device of the caller"))
    seen = []
    x = torch.ones(2, device=devices[mine], requires_grad=True)
    with _current(caller):
        y = _weighted(subject, weight, lambda: seen.append(torch.accelerator.current_device_index()))(x)
        (gradient,) = torch.autograd.grad(y, x, torch.ones_like(y))
    subject.assert_equal("devices on which backward ran", got=seen, expected=[mine])
    subject.assert_equal("device of the gradient", got=gradient.device, expected=x.device)
    subject.assert_same("gradient", got=gradient, expected=torch.full((2,), float(weight)))


def _moving(subject, device):
    """A Function that moves its input to a device, and its gradient back."""

    def forward(ctx, x):
        ctx.before = x.device
        return x.to(device) * 2

    return subject.custom(forward=forward, backward=lambda ctx, g: (g * 2).to(ctx.before))


@keeps("DEV-05", accelerator=True)
def test_a_graph_over_several_devices_has_right_gradients(subject, data):
    """A value visits devices and meets a leaf of each, by Functions or by .to; the gradients are with the leaves."""
    places = st.lists(st.sampled_from(_devices(subject)), min_size=2, max_size=4)
    chosen = subject.draw(data, places, "devices")
    by = subject.draw(data, ("a Function", "to"), "moved by")
    passes = subject.draw(data, st.integers(1, 2), "passes")
    leaves = [torch.full((2,), float(n + 2), device=place, requires_grad=True) for n, place in enumerate(chosen)]
    y = leaves[0] * 1
    for leaf, place in zip(leaves[1:], chosen[1:], strict=True):
        y = (_moving(subject, place)(y) if by == "a Function" else y.to(place) * 2) * leaf
    for _ in range(passes):
        torch.autograd.backward(y, torch.ones_like(y), retain_graph=True)
    whole = 2.0 ** (len(leaves) - 1) * float(torch.tensor([leaf[0].item() for leaf in leaves]).prod())
    found, asked = [leaf.grad.device for leaf in leaves], map(torch.device, chosen)
    subject.assert_equal("devices", got=list(map(_place, found)), expected=list(map(_place, asked)))
    for leaf in leaves:
        expected = torch.full((2,), passes * whole / leaf[0].item())
        subject.assert_same("gradient of a leaf", got=leaf.grad, expected=expected)


# Accuracy.


@keeps("DEV-06", accelerator=True)
def test_operations_are_as_accurate_as_their_dtype(subject, data):
    """Elementary functions, products and sums are off by a few units of rounding, in each dtype."""
    dtypes = [dtype for dtype in subject.dtypes if dtype.startswith(("float", "bfloat"))]
    measured = {dtype: coarseness(subject.implementation, subject.device, dtype) for dtype in dtypes}
    found = {dtype: each for dtype, each in measured.items() if each is not None}
    # A baseline has this: one more dtype, or less accuracy than was accepted, is another fault.
    what = ", ".join(f"{dtype} (that of {as_accurate or 'no dtype'})" for dtype, (as_accurate, _) in found.items())
    shown = "; ".join(f"{dtype}: {text}" for dtype, (_, text) in found.items())
    subject.assert_that(not found, f"accuracy of {what}", got=shown, expected="a few units of rounding")


@keeps("DEV-06", accelerator=True, variant="integers")
def test_operations_on_integers_are_exact(subject, data):
    """Sums, products and comparisons of large int64 numbers are those of NumPy."""
    numbers = st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=4)
    x = np.array(subject.draw(data, numbers, "x"))
    small = subject.draw(data, st.integers(-(2**20), 2**20), "factor")
    t = subject.tensor(x)
    for what, got, right in (
        ("sum", t.sum(), x.sum()), ("product", t * small, x * small), ("comparison", t > small, x > small),
    ):  # fmt: skip
        subject.assert_same(f"{what} of int64", got=got, expected=torch.as_tensor(np.asarray(right)))
