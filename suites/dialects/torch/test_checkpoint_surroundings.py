"""Checkpointing: what it keeps alive, and the state around the call that the recomputation has again."""

import warnings
import weakref
from contextlib import ExitStack, nullcontext

import numpy as np
import torch
import torch.utils.checkpoint
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.torch._recomputed import drawn_pair

checkpoint, checkpoint_sequential = torch.utils.checkpoint.checkpoint, torch.utils.checkpoint.checkpoint_sequential


@keeps("CKPT-20")
def test_nothing_that_is_saved_lives_between_the_call_and_the_pass(subject, data):
    """What a custom Function saves of its own is gone after the call; without a checkpoint it is there."""
    count = subject.draw(data, st.integers(1, 3), "calls of the Function")
    kinds = ("none", "not reentrant", "reentrant", "a sequence")
    kind = subject.draw(data, kinds, "checkpoint")
    nested = kind == "not reentrant" and subject.draw(data, (False, True), "within another checkpoint")
    x, g = drawn_pair(subject, data)
    saved = []

    def forward(ctx, x):
        factor = torch.full_like(x, 2.0)
        saved.append(weakref.ref(factor))
        ctx.save_for_backward(factor)
        return x * factor

    double = subject.custom(forward=forward, backward=lambda ctx, g: g * ctx.saved_tensors[0])

    def f(x):
        for _ in range(count):
            x = double(x)
        return x

    calls = {
        "none": f,
        "not reentrant": lambda x: checkpoint(f, x, use_reentrant=False),
        "reentrant": lambda x: checkpoint(f, x, use_reentrant=True),
        # The last function of a sequence is outside of its checkpoints.
        "a sequence": lambda x: checkpoint_sequential([f, torch.neg], 2, x, use_reentrant=False),
    }
    y = checkpoint(calls[kind], x, use_reentrant=False) if nested else calls[kind](x)
    alive = [each() is not None for each in saved]
    what = "whether what each call saved is alive before the pass"
    subject.assert_equal(what, got=alive, expected=[kind == "none"] * count)
    y.backward(g)
    sign = -1 if kind == "a sequence" else 1
    subject.assert_same("gradient", got=x.grad, expected=sign * g * 2**count)
    del y
    left = [each() is not None for each in saved]
    subject.assert_equal("whether what each run saved is alive after the pass", got=left, expected=[False] * len(left))


def _state(x):
    """What a function can see of the state around it."""
    kind = x.device.type
    return {
        "device of a new tensor": torch.empty(0).device.type,
        "autocast": torch.is_autocast_enabled(kind),
        "autocast on the CPU": torch.is_autocast_enabled("cpu"),
        "dtype of autocast on the CPU": torch.get_autocast_dtype("cpu"),
        "cache of autocast": torch.is_autocast_cache_enabled(),
    }


# Surroundings of the call, and of the pass.
AROUND = {
    "a device": lambda: torch.device("meta"),
    "a device within a device": lambda: _both(torch.device("cpu"), torch.device("meta")),
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "autocast to half": lambda: torch.autocast("cpu", dtype=torch.float16),
    "autocast without a cache": lambda: torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=False),
    "autocast switched off": lambda: torch.autocast("cpu", enabled=False),
}


def _both(*contexts):
    stack = ExitStack()
    for each in contexts:
        stack.enter_context(each)
    return stack


@keeps("CKPT-21")
def test_the_recomputation_has_the_state_of_the_call(subject, data):
    """Devices and autocast around the call are around its recomputation; those around the pass are not."""
    around = subject.draw(
        data, st.lists(st.sampled_from(tuple(AROUND)), max_size=2), "around the call, outermost first"
    )
    later = subject.draw(
        data, st.none() | st.sampled_from([each for each in AROUND if "cast" in each]), "around the pass"
    )
    # Only the variant that is not reentrant knows the device.
    reentrant = not any("device" in each for each in around) and subject.draw(data, st.booleans(), "use_reentrant")
    x, g = drawn_pair(subject, data)
    seen = []

    def f(x):
        seen.append(_state(x))
        return x.sin()

    with _both(*(AROUND[each]() for each in around)):
        y = checkpoint(f, x, use_reentrant=reentrant)
    with AROUND[later]() if later else nullcontext():
        y.backward(g)
    subject.assert_equal("runs of the function", got=len(seen), expected=2)
    subject.assert_equal("state in the recomputation", got=seen[1], expected=seen[0])


@keeps("CKPT-22")
def test_grad_mode_of_both_runs(subject, data):
    """The first run records as around the call, that of the reentrant variant never, and each recomputation does."""
    reentrant = subject.draw(data, st.booleans(), "use_reentrant")
    recorded = subject.draw(data, (True, False), "gradients are recorded around the call")
    later = subject.draw(data, (True, False), "and around the pass")
    place = subject.draw(data, ("itself", "a list", "a dict"), "argument")
    x, g = drawn_pair(subject, data)
    modes = []

    def f(held):
        modes.append(torch.is_grad_enabled())
        return {"itself": lambda: held, "a list": lambda: held[0], "a dict": lambda: held["x"]}[place]().square()

    held = {"itself": x, "a list": [x], "a dict": {"x": x}}[place]
    lost = reentrant and place != "itself"
    with torch.set_grad_enabled(recorded), warnings.catch_warnings():
        # The reentrant variant says that no argument requires grad.
        warnings.simplefilter("ignore" if lost else "error")
        y = checkpoint(f, held, use_reentrant=reentrant)
    subject.assert_equal("grad mode in the first run", got=modes, expected=[recorded and not reentrant])
    subject.assert_equal("requires_grad of the output", got=y.requires_grad, expected=recorded and not lost)
    if y.requires_grad:
        with torch.set_grad_enabled(later):
            y.backward(g)
        subject.assert_equal("grad mode in the recomputation", got=modes[1:], expected=[True])
        subject.assert_same("gradient", got=x.grad, expected=2 * x.detach() * g)


@keeps("CKPT-22", variant="detached")
def test_a_detached_tensor_among_the_outputs(subject, data):
    """It requires no grad and the pass through the others is right; the reentrant variant raises, or is right too."""
    reentrant = subject.draw(data, st.booleans(), "use_reentrant")
    way = subject.draw(data, ("detach", "no_grad"), "detached by")
    alone = subject.draw(data, (False, True), "every output is detached")
    x, g = drawn_pair(subject, data)

    def detached(x):
        if way == "detach":
            return (3 * x).detach()
        with torch.no_grad():
            return 3 * x

    y, z = checkpoint(lambda x: (detached(x), detached(x) if alone else 2 * x), x, use_reentrant=reentrant)
    subject.assert_all_same(
        "outputs", got=[y.detach(), z.detach()], expected=[3 * x.detach(), (3 if alone else 2) * x.detach()]
    )
    if not reentrant:
        flags = [y.requires_grad, z.requires_grad]
        subject.assert_equal("requires_grad of the outputs", got=flags, expected=[False, not alone])
    if reentrant and alone:
        facts = ["requires_grad"]
        what = "a pass through a reentrant checkpoint whose outputs are detached"
        subject.assert_raises(RuntimeError, lambda: z.backward(g), what, naming=facts)
    elif not alone:
        z.backward(g)
        subject.assert_same("gradient", got=x.grad, expected=2 * g)


class _Noting(TorchDispatchMode):
    """A list of the operators that run."""

    def __init__(self):
        super().__init__()
        self.ran = []

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        self.ran.append(operator)
        return operator(*args, **(kwargs or {}))


@keeps("CKPT-23")
def test_a_policy_is_asked_in_forward_alone(subject, data):
    """A policy is asked once for each operator of the first run, with is_recompute False, and may say True or False."""
    answers = subject.draw(data, st.lists(st.booleans(), min_size=2, max_size=2), "abs and neg are saved")
    as_bool = subject.draw(data, (True, False), "the policy returns a bool")
    x, g = drawn_pair(subject, data)
    operators = [torch.ops.aten.abs.default, torch.ops.aten.neg.default]
    policies = torch.utils.checkpoint.CheckpointPolicy
    asked, runs = [], []

    def policy(ctx, operator, *args, **kwargs):
        saved = operator in operators and answers[operators.index(operator)]
        asked.append((operator, ctx.is_recompute))
        return saved if as_bool else (policies.MUST_SAVE if saved else policies.PREFER_RECOMPUTE)

    def f(x):
        runs.append(len(asked))
        y = x.abs() * x
        return y.neg() * y

    contexts = lambda: torch.utils.checkpoint.create_selective_checkpoint_contexts(policy)  # noqa: E731
    with _Noting() as noting:
        y = checkpoint(f, x, use_reentrant=False, context_fn=contexts)
        before = list(asked)
        y.backward(g)
    got = [(operator, again) for operator, again in before if operator in operators]
    subject.assert_equal("what the policy was asked", got=got, expected=[(each, False) for each in operators])
    subject.assert_equal("questions of the recomputation", got=len(asked) - len(before), expected=0)
    subject.assert_equal("runs of the function", got=len(runs), expected=2)
    got = noting.ran.count(operators[0])
    subject.assert_equal("runs of abs in forward and in the pass", got=got, expected=2 - answers[0])
    values = subject.implementation.numpy(x.detach())
    # -(x |x|)^2 = -x^4.
    expected = -4 * values**3
    subject.assert_same("gradient", got=x.grad, expected=expected * subject.implementation.numpy(g))


@keeps("CKPT-04", variant="sequence")
def test_a_sequence_says_that_use_reentrant_is_missing(subject, data):
    """checkpoint_sequential without it warns or raises, and with it does neither; it passes one tensor on."""
    given = subject.draw(data, (None, True, False), "use_reentrant")
    count = subject.draw(data, st.integers(1, 4), "functions, one a segment")
    x, g = drawn_pair(subject, data)
    functions = [lambda x, factor=n + 2: factor * x for n in range(count)]
    options = {} if given is None else {"use_reentrant": given}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            y = checkpoint_sequential(functions, count, x, **options)
        except (TypeError, ValueError, RuntimeError) as error:
            said.append(error)
            y = None
    told = [str(getattr(each, "message", each)) for each in said]
    names = ["use_reentrant" in each for each in told]
    subject.assert_that(names == [True] * (given is None), "messages", got=told, expected="one where it is missing")
    if y is not None:
        y.backward(g)
        factor = float(np.prod(np.arange(count) + 2))
        subject.assert_same("gradient", got=x.grad, expected=factor * g)
