"""Where backward runs on an accelerator, and on which device gradients are."""

from functools import partial

import pytest
import torch
from hypothesis import strategies as st

from autograd_conformance.harness.checking.marks import keeps

WEIGHTS = st.lists(st.sampled_from((-3, -2, 2, 3)), min_size=1, max_size=4)


def _weighted(weight, note=lambda: None, gradient=lambda g: g):
    """A Function that multiplies by ``weight``; its backward calls ``note`` and returns ``gradient(g)``."""

    class Weighted(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return weight * x

        @staticmethod
        def backward(ctx, g):
            note()
            return gradient(weight * g)

    return Weighted.apply


def _moved_from_the_cpu(subject, data, device):
    """The gradient of a scalar that backward returned on the CPU, as it arrives; for a vector this has to raise."""
    weight = subject.draw(data, (-2, 3), "weight")
    dtype = getattr(torch, subject.draw(data, subject.dtypes, "dtype"))
    f = _weighted(weight, gradient=lambda g: torch.full(g.shape, weight, dtype=dtype))
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


def _only_on_cuda(subject):
    if subject.device != "cuda":
        pytest.skip(f"streams and several devices are checked on cuda, not on {subject.device}")


@keeps("DEV-01", accelerator=True, variant="stream")
def test_backward_runs_on_the_stream_of_its_forward(subject, data):
    """Each backward runs on the CUDA stream of its forward, whatever stream starts the pass."""
    _only_on_cuda(subject)
    weights = subject.draw(data, WEIGHTS, "weights of the Functions")
    places = st.lists(st.integers(0, 2), min_size=len(weights), max_size=len(weights))
    chosen = subject.draw(data, places, "streams of the Functions")
    caller = subject.draw(data, (0, 1, 2), "stream that calls backward")
    streams = [torch.cuda.current_stream(), torch.cuda.Stream(), torch.cuda.Stream()]
    x = subject.tensor([1.0, 2.0]).requires_grad_()
    y, seen = x, []
    for weight, place in zip(weights, chosen, strict=True):
        torch.cuda.synchronize()
        with torch.cuda.stream(streams[place]):
            y = _weighted(weight, lambda: seen.append(streams.index(torch.cuda.current_stream())))(y)
    torch.cuda.synchronize()
    with torch.cuda.stream(streams[caller]):
        (gradient,) = torch.autograd.grad(y, x, torch.ones_like(y))
    torch.cuda.synchronize()
    subject.assert_equal("streams on which backward ran", got=seen, expected=chosen[::-1])
    subject.assert_same("gradient", got=gradient, expected=torch.full((2,), float(torch.tensor(weights).prod())))


@keeps("DEV-01", accelerator=True, variant="device")
def test_backward_runs_on_the_device_of_its_forward(subject, data):
    """backward runs on the CUDA device of its forward, whatever device is current."""
    _only_on_cuda(subject)
    weight = subject.draw(data, (-2, 3), "weight")
    mine = subject.draw(data, range(torch.cuda.device_count()), "device")
    callers = subject.draw(data, range(torch.cuda.device_count()), "device of the caller")
    seen = []
    x = torch.ones(2, device=f"cuda:{mine}", requires_grad=True)
    with torch.cuda.device(callers):
        y = _weighted(weight, lambda: seen.append(torch.cuda.current_device()))(x)
        (gradient,) = torch.autograd.grad(y, x, torch.ones_like(y))
    subject.assert_equal("devices on which backward ran", got=seen, expected=[mine])
    subject.assert_equal("device of the gradient", got=gradient.device, expected=x.device)
    subject.assert_same("gradient", got=gradient, expected=torch.full((2,), float(weight)))
