"""Checkpointing: under what forward runs again, its random numbers, the determinism check, and where it stops."""

from contextlib import contextmanager, nullcontext

import pytest
import torch
import torch.utils.checkpoint
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.torch._autocast import autocast, autocast_state, states
from autograd_conformance.suites.dialects.torch._blocks import pass_blocks
from autograd_conformance.suites.dialects.torch._compiled import fresh
from autograd_conformance.suites.dialects.torch._recomputed import drawn_pair, multiplying


def _twos(x):
    return torch.full_like(x, 2)


def _chain(apply, length):
    def f(x):
        for _ in range(length):
            x = apply(x)
        return x

    return f


# With two segments checkpoint_sequential checkpoints the first of two functions.
_ENTRIES = {
    "checkpoint": torch.utils.checkpoint.checkpoint,
    "checkpoint_sequential": lambda f, x, **options: torch.utils.checkpoint.checkpoint_sequential(
        [f, torch.clone], 2, x, **options
    ),
}


def _generator(subject):
    """The module with the generator that draws on the subject's device. Skips if its state cannot be read."""
    found = torch if subject.device == "cpu" else getattr(torch, subject.device)
    if not hasattr(found, "get_rng_state"):
        pytest.skip(f"torch.{subject.device} has no get_rng_state")
    return found


def _state(subject):
    return _generator(subject).get_rng_state()


def _random_run(subject, data, **options):
    """A checkpointed chain of random factors, its backward, and the states of the generator around it."""
    x, g = drawn_pair(subject, data)
    apply, factors = multiplying(subject, torch.rand_like)
    f = _chain(apply, subject.draw(data, st.integers(1, 3), "calls in the function"))
    options["use_reentrant"] = subject.draw(data, st.booleans(), "use_reentrant")
    seed, between = (subject.draw(data, st.integers(1, 5), label) for label in ("torch seed", "numbers in between"))
    entry = subject.draw(data, _ENTRIES, "entry")
    torch.manual_seed(seed)
    y = _ENTRIES[entry](f, x, **options)
    forward = _state(subject)
    first = list(factors)
    torch.rand(between, device=x.device)
    before = _state(subject)
    torch.autograd.backward(y, g)
    after, again = _state(subject), factors[len(first) :]
    torch.manual_seed(seed)
    plain, expected = _state(subject), [torch.rand_like(x) for _ in first]
    subject.assert_all_same("random numbers of the first run", got=first, expected=expected)
    subject.assert_equal("number of runs", got=len(again), expected=len(first))
    moved = torch.equal(forward, _state(subject)) and not torch.equal(forward, plain)
    subject.assert_that(moved or not x.numel(), "state after forward", got="another", expected="as without checkpoint")
    return x, g, first, again, (before, after)


def _product(g, factors):
    for factor in factors:
        g = g * factor
    return g


@keeps("CKPT-05", examples=2)
def test_the_random_state_is_preserved(subject, data):
    """The recomputation draws the numbers of forward, and the pass leaves the generator as it was."""
    options = subject.draw(data, st.sampled_from(({}, {"preserve_rng_state": True})), "options")
    with torch.random.fork_rng(devices=[]):
        x, g, first, again, (before, after) = _random_run(subject, data, **options)
    subject.assert_all_same("random numbers of the recomputation", got=again, expected=first)
    subject.assert_same("gradient", got=x.grad, expected=_product(g, reversed(first)))
    subject.assert_that(
        torch.equal(before, after), "state of the generator after backward", got="another", expected="as before it"
    )


@keeps("CKPT-05", variant="vmap", needs="vmap")
def test_the_random_state_is_preserved_around_a_vmap(subject, data):
    """Under vmap too the recomputation draws the numbers of forward, each call its own or all the same."""
    randomness = subject.draw(data, ("same", "different"), "randomness")
    reentrant = subject.draw(data, st.booleans(), "use_reentrant")
    shape = subject.draw(data, ((2,), (3, 2)), "shape")
    seed = subject.draw(data, st.integers(1, 5), "torch seed")

    def forward(x):
        factor = torch.rand_like(x)
        return x * factor, factor

    apply = subject.custom(
        forward=forward,
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(output[1]),
        backward=lambda ctx, g, _: g * ctx.saved_tensors[0],
        generate_vmap_rule=True,
    )
    mapped = torch.vmap(lambda x: apply(x)[0], randomness=randomness)
    x = torch.ones(shape, device=subject.device).requires_grad_()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        plain = mapped(x.detach())
        torch.manual_seed(seed)
        y = torch.utils.checkpoint.checkpoint(mapped, x, use_reentrant=reentrant)
        torch.rand(1, device=x.device)
        before = _state(subject)
        torch.autograd.backward(y.sum())
        kept = torch.equal(before, _state(subject))
    subject.assert_same("output of a checkpointed vmap", got=y, expected=plain)
    subject.assert_same("gradient of a checkpointed vmap", got=x.grad, expected=plain)
    what = "state of the generator after backward"
    subject.assert_that(kept, what, got="another", expected="as before it")


@keeps("CKPT-06", examples=2)
def test_the_random_state_is_not_preserved(subject, data):
    """The recomputation draws the numbers that come next, and the generator goes on from there."""
    with torch.random.fork_rng(devices=[]):
        x, g, _, again, (before, after) = _random_run(subject, data, preserve_rng_state=False)
        _generator(subject).set_rng_state(before)
        expected = [torch.rand_like(x) for _ in again]
        on = _state(subject)
    subject.assert_all_same("random numbers of the recomputation", got=again, expected=expected)
    subject.assert_same("gradient", got=x.grad, expected=_product(g, reversed(again)))
    subject.assert_that(
        torch.equal(on, after), "state of the generator after backward", got="another",
        expected="that after the numbers of the recomputation",
    )  # fmt: skip


# What a saved factor becomes when forward runs again.
_CHANGES = {
    "shape": lambda factor: factor[None],
    "dtype": lambda factor: factor.to(torch.float32 if factor.dtype == torch.float64 else torch.float16),
    "device": lambda factor: factor.to("meta"),
    "values": lambda factor: -factor,
}


def _changing(subject, data, changes, **options):
    """A backward whose recomputation saves another tensor; with the leaf, and its expected gradient."""
    x, g = drawn_pair(subject, data)
    change = _CHANGES[subject.draw(data, changes, "what changes when forward runs again")]
    apply, factors = multiplying(subject, _twos, change)
    y = torch.utils.checkpoint.checkpoint(apply, x, **options)
    return x, lambda: torch.autograd.backward(y, g), lambda: g * factors[-1].reshape(g.shape)


@keeps("CKPT-07")
def test_a_recomputation_of_other_metadata_is_refused(subject, data):
    """Another shape, dtype or device of a saved tensor raises, other values do not."""
    options = subject.draw(data, st.sampled_from(({}, {"determinism_check": "default"})), "options")
    _, backward, _ = _changing(subject, data, ("shape", "dtype", "device"), use_reentrant=False, **options)
    what = "backward whose recomputation differs"
    kind = torch.utils.checkpoint.CheckpointError
    subject.assert_raises(kind, backward, what, naming=[("metadata", "shape", "dtype", "device")])
    x, backward, expected = _changing(subject, data, ("values",), use_reentrant=False, **options)
    subject.assert_accepted(backward, "backward whose recomputation has other values")
    subject.assert_same("gradient", got=x.grad, expected=expected())


@keeps("CKPT-08")
def test_the_determinism_check_can_be_turned_off(subject, data):
    """With "none", and in the reentrant variant, a recomputation that differs is used as it is."""
    ways = ({"use_reentrant": False, "determinism_check": "none"}, {"use_reentrant": True})
    options = subject.draw(data, st.sampled_from(ways), "options")
    x, backward, expected = _changing(subject, data, ("shape", "dtype", "values"), **options)
    subject.assert_accepted(backward, "backward whose recomputation differs, unchecked")
    subject.assert_same("gradient", got=x.grad, expected=expected())


@keeps("CKPT-09")
def test_no_other_determinism_check_is_accepted(subject, data):
    """Another value than "default" and "none" raises."""
    x, _ = drawn_pair(subject, data)
    apply, _ = multiplying(subject, torch.rand_like)
    other = subject.draw(data, ("values", "strict", "", "None"), "determinism_check")

    def call(check):
        return torch.utils.checkpoint.checkpoint(apply, x, use_reentrant=False, determinism_check=check)

    subject.assert_raises(ValueError, lambda: call(other), "an unknown determinism_check", naming=["determinism_check"])
    for known in ("default", "none"):
        subject.assert_accepted(lambda known=known: call(known), f"determinism_check={known!r}")


# The options of a call, the setting for all calls around its forward, and whether the recomputation stops early.
_STOPS = {
    "by default": ({"use_reentrant": False}, None, True),
    "early_stop=False": ({"use_reentrant": False, "early_stop": False}, None, False),
    "set_checkpoint_early_stop(False)": ({"use_reentrant": False}, False, False),
    "early_stop=True under set_checkpoint_early_stop(False)": (
        {"use_reentrant": False, "early_stop": True}, False, False,
    ),
    "early_stop=False under set_checkpoint_early_stop(True)": (
        {"use_reentrant": False, "early_stop": False}, True, True,
    ),
    "use_reentrant=True": ({"use_reentrant": True}, None, False),
}  # fmt: skip


@keeps("CKPT-10", examples=2)
def test_where_the_recomputation_stops(subject, data):
    """What follows on the last saved tensor runs again exactly if the recomputation does not stop early."""
    x, g = drawn_pair(subject, data)
    apply, factors = multiplying(subject, _twos)
    options, everywhere, early = _STOPS[subject.draw(data, _STOPS, "way to say it")]
    ends = []

    def f(x):
        y = apply(x)
        ends.append("end")
        return y

    # It has to be in force when forward runs, and not in the backward pass.
    with nullcontext() if everywhere is None else torch.utils.checkpoint.set_checkpoint_early_stop(everywhere):
        pass_blocks(subject, data, torch.utils.checkpoint.set_checkpoint_early_stop, (False, True))
        y = torch.utils.checkpoint.checkpoint(f, x, **options)
    torch.autograd.backward(y, g)
    subject.assert_equal("runs of the Function", got=len(factors), expected=2)
    subject.assert_equal("runs that reached the end of the function", got=len(ends), expected=2 - early)
    subject.assert_same("gradient", got=x.grad, expected=2 * g)


@keeps("CKPT-01", variant="autocast", needs="autocast")
def test_forward_runs_again_under_its_autocast(subject, data):
    """The gradient of a function that depends on autocast is that of the state around the call, not around the pass."""
    x, g = drawn_pair(subject, data)
    around = subject.draw(data, states(subject), "autocast around the call")
    later = subject.draw(data, states(subject), "autocast around the pass")
    reentrant = subject.draw(data, st.booleans(), "use_reentrant")
    apply, _ = multiplying(subject, lambda x: torch.full_like(x, 2 if autocast_state(subject) == around else 3))
    with autocast(subject, around):
        y = torch.utils.checkpoint.checkpoint(apply, x, use_reentrant=reentrant)
    with autocast(subject, later):
        torch.autograd.backward(y, g)
    what = "gradient, which is 2 g in the autocast state of the call and 3 g in another,"
    subject.assert_same(what, got=x.grad, expected=2 * g)


@keeps("CKPT-11")
def test_keyword_arguments_reach_both_runs(subject, data):
    """Both runs of a non-reentrant checkpoint get the keyword arguments of the call."""
    x, g = drawn_pair(subject, data)
    apply, _ = multiplying(subject, _twos)
    given = subject.draw(data, st.dictionaries(st.sampled_from("abc"), st.integers(0, 3)), "keyword arguments")
    seen = []

    def f(x, **named):
        seen.append(named)
        return apply(x)

    y = torch.utils.checkpoint.checkpoint(f, x, use_reentrant=False, **given)
    torch.autograd.backward(y, g)
    subject.assert_equal("keyword arguments of the runs", got=seen, expected=[given] * 2)
    subject.assert_same("gradient", got=x.grad, expected=2 * g)


@keeps("CKPT-12")
def test_each_run_has_its_context_of_context_fn(subject, data):
    """The call runs under the first context of context_fn, the recomputation under the second."""
    x, g = drawn_pair(subject, data)
    apply, _ = multiplying(subject, _twos)
    early = subject.draw(data, st.booleans(), "set_checkpoint_early_stop")
    inside, seen = [], []

    @contextmanager
    def named(name):
        inside.append(name)
        try:
            yield
        finally:
            inside.pop()

    def f(x):
        seen.append(list(inside))
        return apply(x)

    contexts = {"context_fn": lambda: (named("first"), named("second"))}
    with torch.utils.checkpoint.set_checkpoint_early_stop(early):
        y = torch.utils.checkpoint.checkpoint(f, x, use_reentrant=False, **contexts)
    torch.autograd.backward(y, g)
    subject.assert_equal("contexts around the runs", got=seen, expected=[["first"], ["second"]])
    subject.assert_equal("contexts that are not left", got=inside, expected=[])
    subject.assert_same("gradient", got=x.grad, expected=2 * g)


# debug of the call, the setting for all calls around it, and whether the operators are shown.
_TRACES = {
    "debug=True": ({"debug": True}, None, True),
    "set_checkpoint_debug_enabled(True)": ({}, True, True),
    # By default they may be shown too.
    "debug=True under set_checkpoint_debug_enabled(False)": ({"debug": True}, False, False),
}


@keeps("CKPT-13", examples=0.3)
def test_debug_shows_the_operators(subject, data):
    """The error of a recomputation that differs has the operators of both runs where it is on, not where it is off."""
    options, everywhere, shown = _TRACES[subject.draw(data, _TRACES, "way to say it")]
    x, g = drawn_pair(subject, data)
    apply, factors = multiplying(subject, _twos, _CHANGES["dtype"])
    with torch.utils.checkpoint.set_checkpoint_debug_enabled(everywhere):
        pass_blocks(subject, data, torch.utils.checkpoint.set_checkpoint_debug_enabled, (False, True))
        y = torch.utils.checkpoint.checkpoint(apply, x, use_reentrant=False, **options)
    what = "backward whose recomputation differs"
    kind = torch.utils.checkpoint.CheckpointError
    raised = subject.assert_raises(kind, lambda: torch.autograd.backward(y, g), what)
    subject.assert_equal("runs of the Function", got=len(factors), expected=2)
    # The first run calls full_like, and the second one casts what it gives.
    got = "full_like" in str(raised) and "_to_copy" in str(raised)
    subject.assert_equal("whether the error names the operators", got=got, expected=shown)


# The devices whose random state AOTAutograd saves and restores.
_RESTORED_BY_COMPILERS = ("cpu", "cuda", "hpu", "xpu")


def _assert_random_numbers_of_forward(subject, data, backend):
    """The gradient of a compiled checkpoint has the random factors of forward, in a Function or out of one."""
    options = subject.draw(data, ({}, {"preserve_rng_state": False}, {"preserve_rng_state": True}), "options")
    way = subject.draw(data, ("a Function", "operations"), "random numbers drawn in")
    size = subject.draw(data, (3, 1), "size")

    def forward(ctx, x):
        factor = torch.rand_like(x)
        ctx.save_for_backward(factor)
        return x * factor

    function = subject.custom(forward=forward, backward=lambda ctx, g: g * ctx.saved_tensors[0])
    multiply = function if way == "a Function" else lambda x: x * torch.rand_like(x)
    x = torch.ones(size, device=subject.device).requires_grad_()
    with torch.random.fork_rng(devices=[]), fresh():
        call = lambda x: torch.utils.checkpoint.checkpoint(multiply, x, use_reentrant=False, **options)  # noqa: E731
        y = torch.compile(call, backend=backend, fullgraph=True)(x)
        torch.rand(1, device=x.device)
        torch.autograd.backward(y.sum())
    subject.assert_same("gradient, which is the random factor of forward", got=x.grad, expected=y.detach())


@keeps("CKPT-25", slow=True, examples=0.12)
def test_a_compiled_checkpoint_preserves_the_random_state(subject, data):
    """Compiled code recomputes with the random numbers of forward, whatever preserve_rng_state says."""
    if subject.device not in _RESTORED_BY_COMPILERS:
        pytest.skip(f"compiled code cannot restore the random state of {subject.device}")
    _assert_random_numbers_of_forward(subject, data, "aot_eager")


@keeps("CKPT-25", variant="eager", slow=True, examples=0.12)
def test_a_captured_checkpoint_preserves_the_random_state(subject, data):
    """The same with the backend that runs the captured graph as it is."""
    _assert_random_numbers_of_forward(subject, data, "eager")
