"""Grad modes: the thread that they hold for, what they leave alone, and set_grad_enabled called as a function."""

from functools import partial
from threading import Thread

import torch
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps

MODES = {
    "no_grad": torch.no_grad,
    "set_grad_enabled(False)": partial(torch.set_grad_enabled, False),
    "inference_mode": torch.inference_mode,
    "autocast": partial(torch.autocast, "cpu", dtype=torch.bfloat16),
}


def _state():
    return torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_autocast_enabled("cpu")


@keeps("MODE-06", examples=0.4)
def test_a_mode_holds_for_its_thread(subject, data):
    """A thread that starts in a block has the modes of a new thread, and what it sets is not set outside."""
    outer = subject.draw(data, tuple(MODES), "around the thread")
    inner = subject.draw(data, tuple(MODES), "within the thread")
    x = subject.tensor([1.0, -2.0]).requires_grad_()
    double = subject.custom(forward=lambda ctx, x: 2 * x, backward=lambda ctx, g: 2 * g)
    seen = {}

    def work():
        seen["before"] = (_state(), double(x).requires_grad)
        # The thread ends within its mode.
        mode = MODES[inner]()
        mode.__enter__()
        seen["within"] = _state()

    before = _state()
    with MODES[outer]():
        within = _state()
        thread = Thread(target=work)
        thread.start()
        thread.join()
        subject.assert_equal("modes of the block after the thread", got=_state(), expected=within)
    subject.assert_equal("modes after the block", got=_state(), expected=before)
    what = "modes of a new thread, and whether a call there is recorded"
    subject.assert_equal(what, got=seen["before"], expected=((True, False, False), True))
    with MODES[inner]():
        expected = _state()
    subject.assert_equal("modes that the thread set", got=seen["within"], expected=expected)


FACTORIES = {
    "tensor": lambda **options: torch.tensor([1.0, 2.0], **options),
    "ones": lambda **options: torch.ones(2, **options),
    "empty": lambda **options: torch.empty(2, **options),
    "full": lambda **options: torch.full((2,), 3.0, **options),
    "arange": lambda **options: torch.arange(2.0, **options),
}


@keeps("MODE-06", variant="function")
def test_set_grad_enabled_as_a_function_holds_until_the_next_call(subject, data):
    """A call after it is recorded as it says, a new tensor requires grad if that is asked for, and tangents stay."""
    steps = subject.draw(data, st.lists(st.booleans(), min_size=1, max_size=4), "arguments of set_grad_enabled")
    factory = FACTORIES[subject.draw(data, tuple(FACTORIES), "factory")]
    asked = subject.draw(data, (True, False), "requires_grad of the new tensor")
    x = subject.tensor([1.0, -2.0])
    leaf = x.clone().requires_grad_()
    double = subject.custom(forward=lambda ctx, x: 2 * x, backward=lambda ctx, g: 2 * g, jvp=lambda ctx, t: 2 * t)
    got = []
    before = torch.is_grad_enabled()
    try:
        for enabled in steps:
            torch.set_grad_enabled(enabled)
            got.append((double(leaf).requires_grad, factory(requires_grad=asked, device=subject.device).requires_grad))
        _, tangents = subject.implementation.jvp(double, [x], [torch.ones_like(x)])
    finally:
        torch._C._set_grad_enabled(before)
    what = "after each call, requires_grad of an output and of a new tensor"
    subject.assert_equal(what, got=got, expected=[(enabled, asked) for enabled in steps])
    subject.assert_all_same("tangents", got=tangents, expected=[torch.full_like(x, 2.0)])
