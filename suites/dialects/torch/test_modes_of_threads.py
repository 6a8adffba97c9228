"""What holds for one thread alone: grad modes, saved-tensor hooks and autocast; modes that are set by a call."""

import threading
from contextlib import ExitStack, suppress

import torch
from hypothesis import strategies as st
from torch.autograd import graph

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.torch._blocks import LEAVING, Left, leave

# Seconds after which a thread counts as stuck.
PATIENCE = 60

# What is entered, for a device and a list of packed tensors.
MODES = {
    "no_grad": lambda device, packed: torch.no_grad(),
    "set_grad_enabled(False)": lambda device, packed: torch.set_grad_enabled(False),
    "inference_mode": lambda device, packed: torch.inference_mode(),
    "saved_tensors_hooks": lambda device, packed: graph.saved_tensors_hooks(
        lambda x: (packed.append(1), x.detach())[1], lambda x: x
    ),
    "autocast": lambda device, packed: torch.autocast(device, dtype=torch.bfloat16),
}
OFF = {"no_grad", "set_grad_enabled(False)", "inference_mode"}


def _what_a_call_sees(subject, packed):
    """A call of a Function that saves its argument: is it recorded, is its output ordinary, is it packed, autocast."""
    device, seen = subject.device.partition(":")[0], []

    def forward(ctx, x):
        ctx.save_for_backward(x)
        seen.append(torch.is_autocast_enabled(device))
        return x * 2

    packed.clear()
    leaf = subject.tensor([1.0, 2.0], "float32").requires_grad_()
    y = subject.custom(forward=forward, backward=lambda ctx, g: 2 * g)(leaf)
    return {
        "recorded": y.requires_grad,
        "inference tensor": y.is_inference(),
        "packed": len(packed),
        "autocast": seen[0],
    }


def _right(modes):
    recorded = not OFF & set(modes)
    return {
        "recorded": recorded,
        "inference tensor": "inference_mode" in modes,
        "packed": int(recorded and "saved_tensors_hooks" in modes),
        "autocast": "autocast" in modes,
    }


def _in_thread(act):
    """What a new thread gives, or the exception that it raised."""
    found = [TimeoutError(f"no result after {PATIENCE} seconds")]

    def run():
        try:
            found[0] = act()
        except Exception as raised:  # noqa: BLE001 - the test looks at it
            found[0] = raised

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    return found[0]


@keeps("MODE-06")
def test_modes_hold_for_their_thread(subject, data):
    """A thread that is started within modes, or beside one that enters them, has none of them."""
    some = st.lists(st.sampled_from(tuple(MODES)), min_size=1, max_size=3, unique=True)
    modes = subject.draw(data, some, "modes")
    beside = subject.draw(data, (False, True), "another thread enters them")
    device = subject.device.partition(":")[0]
    packed = []
    entered, over = threading.Event(), threading.Event()

    def enter():
        with ExitStack() as stack:
            [stack.enter_context(MODES[mode](device, packed)) for mode in modes]
            within = _what_a_call_sees(subject, packed)
            if beside:
                entered.set()
                over.wait(PATIENCE)
                return within, None
            return within, _in_thread(lambda: _what_a_call_sees(subject, packed))

    if beside:
        results = []
        thread = threading.Thread(target=lambda: results.append(enter()), daemon=True)
        thread.start()
        entered.wait(PATIENCE)
        apart = _what_a_call_sees(subject, packed)
        over.set()
        thread.join(PATIENCE)
        within = results[0][0]
    else:
        within, apart = enter()
    subject.assert_equal("a call within the modes", got=within, expected=_right(modes))
    subject.assert_equal("a call in the other thread", got=apart, expected=_right(()))


FACTORIES = {
    "zeros": lambda device: torch.zeros(2, device=device, requires_grad=True),
    "ones": lambda device: torch.ones(2, device=device, requires_grad=True),
    "full": lambda device: torch.full((2,), 3.0, device=device, requires_grad=True),
    "randn": lambda device: torch.randn(2, device=device, requires_grad=True),
    "tensor": lambda device: torch.tensor([1.0, 2.0], device=device, requires_grad=True),
    "empty": lambda device: torch.empty(2, device=device, requires_grad=True),
    "zeros_like": lambda device: torch.zeros_like(torch.ones(2, device=device), requires_grad=True),
    "linspace": lambda device: torch.linspace(0, 1, 2, device=device, requires_grad=True),
    "Parameter": lambda device: torch.nn.Parameter(torch.ones(2, device=device)),
}


@keeps("MODE-07")
def test_set_grad_enabled_holds_until_it_is_called_again(subject, data):
    """Called as a function it holds for the calls that follow, until the block around it ends; factories ignore it."""
    flags = subject.draw(data, st.lists(st.booleans(), min_size=1, max_size=4), "calls of set_grad_enabled")
    around = subject.draw(data, (torch.enable_grad, torch.no_grad), "block around them")
    leaf = subject.tensor([1.0, 2.0]).requires_grad_()
    double = subject.custom(forward=lambda ctx, x: 2 * x, backward=lambda ctx, g: 2 * g)
    recorded, modes, ready = [], [], []
    before = torch.is_grad_enabled()
    with around():
        for flag in flags:
            torch.set_grad_enabled(flag)
            recorded += [double(leaf).requires_grad, double(leaf).requires_grad]
            modes.append(torch.is_grad_enabled())
            ready.append({name: make(subject.device).requires_grad for name, make in FACTORIES.items()})
    what = "whether calls after set_grad_enabled are recorded"
    subject.assert_equal(what, got=recorded, expected=[flag for flag in flags for _ in range(2)])
    subject.assert_equal("grad mode", got=modes, expected=flags)
    expected = [dict.fromkeys(FACTORIES, True)] * len(flags)
    subject.assert_equal("requires_grad of what a factory makes", got=ready, expected=expected)
    subject.assert_equal("grad mode after the block", got=torch.is_grad_enabled(), expected=before)


# Modes of backward passes, which are on unless they are set: how, and what they are. Few passes show a difference.
BACKWARD_MODES = {
    "set_multithreading_enabled": (
        lambda on: torch.autograd.grad_mode.set_multithreading_enabled(on),
        lambda: torch._C._is_multithreading_enabled(),
    ),
    "enforce_grad_layout_policy": (
        lambda on: torch.autograd.grad_mode.enforce_grad_layout_policy(on),
        lambda: torch._C._is_grad_layout_enforcement_enabled(),
    ),
}


@keeps("MODE-08", examples=0.6)
def test_modes_of_backward_hold_for_a_block_or_until_the_next_call(subject, data):
    """They hold for a block, or where they are called until the next call, and in another thread not at all."""
    enter, mode = BACKWARD_MODES[subject.draw(data, BACKWARD_MODES, "mode")]
    step = st.tuples(st.sampled_from(("call", "block", "thread")), st.booleans())
    steps = subject.draw(data, st.lists(step, min_size=1, max_size=4), "steps, and what each sets")
    leaving = subject.draw(data, LEAVING, "blocks left by")
    now = subject.draw(data, (False, True), "first call")
    got, expected = [], []
    try:
        enter(now)
        for how, on in steps:
            if how == "call":
                enter(on)
                now = on
            elif how == "block":
                with suppress(Left), enter(on):
                    got.append(mode())
                    leave(leaving)
                expected.append(on)
            else:
                got.append(_in_thread(lambda on=on: (mode(), enter(on), mode())[::2]))
                expected.append((True, on))
            got.append(mode())
            expected.append(now)
    finally:
        enter(True)
    subject.assert_equal("the mode in each block or thread, and after each step", got=got, expected=expected)


@keeps("MODE-08", variant="calling", accelerator=True, examples=0.2)
def test_backward_runs_on_the_calling_thread_if_it_has_to(subject, data):
    """On an accelerator backward runs on another thread, unless that is switched off."""
    enabled = subject.draw(data, (False, True), "set_multithreading_enabled")
    ran = []
    double = subject.custom(
        forward=lambda ctx, x: 2 * x, backward=lambda ctx, g: (ran.append(threading.get_ident()), 2 * g)[1]
    )
    x = subject.tensor([1.0, 2.0]).requires_grad_()
    with torch.autograd.grad_mode.set_multithreading_enabled(enabled):
        (got,) = torch.autograd.grad(double(x), x, torch.ones_like(x))
    subject.assert_same("gradient", got=got, expected=2 * torch.ones_like(x))
    here = [ident == threading.get_ident() for ident in ran]
    subject.assert_equal("whether backward ran on the calling thread", got=here, expected=[not enabled])


@keeps("MODE-04", variant="grad_modes")
def test_forward_mode_ignores_grad_modes(subject, data):
    """Outputs have their tangents in any nest of no_grad, enable_grad and set_grad_enabled."""
    ways = {
        "no_grad": torch.no_grad,
        "enable_grad": torch.enable_grad,
        "set_grad_enabled(False)": lambda: torch.set_grad_enabled(False),
        "set_grad_enabled(True)": lambda: torch.set_grad_enabled(True),
    }
    names = subject.draw(data, st.lists(st.sampled_from(tuple(ways)), min_size=1, max_size=3), "modes")
    factor = subject.draw(data, (2.0, -1.0), "factor")
    x = subject.tensor([1.0, 2.0])
    times = lambda ctx, x: factor * x  # noqa: E731
    apply = subject.custom(forward=times, jvp=times)

    def f(dual):
        with ExitStack() as stack:
            [stack.enter_context(ways[name]()) for name in names]
            return apply(dual)

    (primal,), (tangent,) = subject.implementation.jvp(f, [x], [3 * torch.ones_like(x)])
    subject.assert_same("output", got=primal, expected=factor * x)
    subject.assert_same("tangent", got=tangent, expected=3 * factor * torch.ones_like(x))
