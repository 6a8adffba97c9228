"""Checkpointing: forward runs again in the pass; segments of a sequence; what each variant needs and refuses."""

import operator
import warnings
from contextlib import nullcontext
from functools import partial
from math import prod

import numpy as np
import torch
import torch.utils.checkpoint
from hypothesis import strategies as st
from torch.autograd import graph

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.harness.testing.observe import observed
from autograd_conformance.suites.contract._ctx_observers import observing_ctx
from autograd_conformance.suites.dialects.torch._leaves import new_leaves, right_gradients, starts_of
from autograd_conformance.suites.dialects.torch._recomputed import drawn_pair, multiplying


def _checkpointed(subject, polynomial, *, cls=None, **options):
    """The outputs of a checkpointed call, and the leaves that require grad."""
    leaves = new_leaves(subject, polynomial)
    outputs = torch.utils.checkpoint.checkpoint(subject.call_of(polynomial, cls), *leaves, **options)
    return outputs, [x for x in leaves if x.requires_grad]


@keeps("CKPT-01", examples=2)
def test_forward_runs_again_in_the_backward_pass(subject, data):
    """Forward runs twice and backward once, and the gradients are right."""
    polynomial = subject.polynomial(data, separate=None)
    reentrant = subject.draw(data, st.booleans(), "use_reentrant")
    ag = subject.implementation.ag
    cls, seen = observed(polynomial.body(subject.implementation.xp, ag), ag.Function)
    outputs, leaves = _checkpointed(subject, polynomial, cls=cls, use_reentrant=reentrant)
    values = [g for g, kind in zip(polynomial.forward(), polynomial.outputs, strict=True) if kind != "static"]
    got = [y for y, kind in zip(outputs, polynomial.outputs, strict=True) if kind != "static"]
    subject.assert_all_same("outputs", got=got, expected=values)
    before = (seen.forwards, seen.backwards)
    torch.autograd.backward(*starts_of(subject, polynomial, outputs))
    runs = (before, (seen.forwards, seen.backwards))
    what = "runs of forward and of backward, before and after the pass"
    subject.assert_equal(what, got=runs, expected=((1, 0), (2, 1)))
    subject.assert_all_same("gradients", got=[x.grad for x in leaves], expected=right_gradients(polynomial))


# How an argument holds a tensor: how it is put in, and taken out.
HOLDERS = {
    "itself": (lambda x: x, lambda x: x),
    "in a list": (lambda x: [x], lambda held: held[0]),
    "in a dict": (lambda x: {"x": x}, lambda held: held["x"]),
}
# What a function returns: of its tensors, with the slope by each of them, or objects.
DIFFERENTIABLE = ("product", "square")
OBJECTS = {"text": "text", "None": None, "number": 2.5}


@keeps("CKPT-01", variant="mixed")
def test_functions_of_mixed_arguments_and_outputs(subject, data):
    """Other objects between tensors change no gradient, and what requires no grad does not in the second run either."""
    reentrant = subject.draw(data, st.booleans(), "use_reentrant")
    # The reentrant variant does not look into objects for tensors that require grad.
    kinds = [(name, flag) for name in HOLDERS for flag in (False, True) if not (reentrant and flag) or name == "itself"]
    more = subject.draw(
        data, st.lists(st.sampled_from(kinds), max_size=2), "further arguments, and if they require grad"
    )
    some = st.lists(st.sampled_from((*DIFFERENTIABLE, *OBJECTS, "constant")), min_size=1, max_size=5)
    returned = subject.draw(data, some.filter(lambda found: {*found} & {*DIFFERENTIABLE}), "what the function returns")
    tracks, holders = (
        (True, *(flag for _, flag in more)),
        [HOLDERS[name] for name in ("itself", *(name for name, _ in more))],
    )
    seen, runs = [], []

    def backward(ctx, g):
        seen.append(ctx.needs_input_grad)
        xs = ctx.saved_tensors
        return tuple(g * prod(xs[:i] + xs[i + 1 :]) for i in range(len(xs)))

    product = subject.custom(
        forward=lambda *xs: prod(xs),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
        backward=backward,
        separate=False,
    )

    def f(*held):
        xs = [take(each) for (_, take), each in zip(holders, held, strict=True)]
        runs.append(tuple(x.requires_grad for x in xs))
        made = {
            "product": lambda: product(*xs),
            "square": lambda: xs[0] ** 2,
            "constant": lambda: 2 * xs[0].detach(),
        }
        return tuple(made[name]() if name in made else OBJECTS[name] for name in returned)

    values = [np.array([2.0, -3.0]) + i for i in range(len(tracks))]
    leaves = [x.requires_grad_(flag) for x, flag in zip(subject.tensors(values), tracks, strict=True)]
    held = [put(x) for (put, _), x in zip(holders, leaves, strict=True)]
    outputs = torch.utils.checkpoint.checkpoint(f, *held, use_reentrant=reentrant)
    objects = [y for y, name in zip(outputs, returned, strict=True) if name in OBJECTS]
    subject.assert_equal("objects returned", got=objects, expected=[OBJECTS[n] for n in returned if n in OBJECTS])
    weighted = [(n, y) for n, (y, name) in enumerate(zip(outputs, returned, strict=True), 1) if name in DIFFERENTIABLE]
    torch.autograd.backward(sum(n * y for n, y in weighted).sum())
    weights = {name: sum(n for n, each in enumerate(returned, 1) if each == name) for name in DIFFERENTIABLE}
    expected = [weights["product"] * prod(values[:i] + values[i + 1 :]) for i in range(len(values))]
    expected[0] = expected[0] + weights["square"] * 2 * values[0]
    reached = [flag and (i == 0 or "product" in returned) for i, flag in enumerate(tracks)]
    expected = [g + np.zeros(2) if flag else None for g, flag in zip(expected, reached, strict=True)]
    subject.assert_all_same("gradients", got=[x.grad for x in leaves], expected=expected)
    subject.assert_equal("requires_grad of the tensors in each run", got=runs, expected=[tracks] * 2)
    what = "ctx.needs_input_grad in backward"
    subject.assert_equal(what, got=seen, expected=[tracks] * returned.count("product"))


@keeps("CKPT-02")
def test_saved_tensors_are_read_once_per_backward(subject, data):
    """A second reading of saved_tensors in one backward raises; one reading works."""
    polynomial = subject.polynomial(data, separate=None)
    more = subject.draw(data, st.integers(1, 2), "further reads of ctx.saved_tensors")

    def gradients(reads):
        cls = observing_ctx(subject, polynomial, leave=lambda ctx: [ctx.saved_tensors for _ in range(reads)])
        outputs, leaves = _checkpointed(subject, polynomial, cls=cls, use_reentrant=False)
        starts, given = starts_of(subject, polynomial, outputs)
        return torch.autograd.grad(starts, leaves, given)

    facts = [("once", "twice", "again", "already")]
    subject.assert_raises(RuntimeError, lambda: gradients(more), "a further read of ctx.saved_tensors", naming=facts)
    got = subject.assert_accepted(lambda: gradients(0), "one read of ctx.saved_tensors")
    subject.assert_all_same("gradients", got=got, expected=right_gradients(polynomial))


@keeps("CKPT-03")
def test_reentrant_checkpointing_refuses_passes_for_some_inputs(subject, data):
    """grad and backward(inputs=...) raise, and plain backward works."""
    polynomial = subject.polynomial(data, separate=None)
    outputs, leaves = _checkpointed(subject, polynomial, use_reentrant=True)
    starts, given = starts_of(subject, polynomial, outputs)
    passes = {
        "autograd.grad": lambda: torch.autograd.grad(starts, leaves, given, retain_graph=True),
        "backward(inputs=...)": lambda: torch.autograd.backward(starts, given, retain_graph=True, inputs=leaves),
    }
    refused = subject.draw(data, passes, "pass")
    facts = [("inputs", "grad")]
    subject.assert_raises(RuntimeError, passes[refused], f"{refused} of a reentrant checkpoint", naming=facts)
    subject.assert_accepted(lambda: torch.autograd.backward(starts, given), "backward of a reentrant checkpoint")
    subject.assert_all_same("gradients", got=[x.grad for x in leaves], expected=right_gradients(polynomial))


@keeps("CKPT-04")
def test_use_reentrant_must_be_given(subject, data):
    """checkpoint raises without use_reentrant and works with either value."""
    polynomial = subject.polynomial(data)
    kinds = (TypeError, ValueError, RuntimeError)
    what = "checkpoint without use_reentrant"
    subject.assert_raises(kinds, lambda: _checkpointed(subject, polynomial), what, naming=["use_reentrant"])
    reentrant = subject.draw(data, st.booleans(), "use_reentrant")
    accepted = lambda: _checkpointed(subject, polynomial, use_reentrant=reentrant)  # noqa: E731
    subject.assert_accepted(accepted, "checkpoint with use_reentrant")


# A first derivative, and where the pass builds a graph the second one.
_PASSES = {
    "autograd.grad": lambda y, x: [torch.autograd.grad(y, x)[0]],
    "backward": lambda y, x: [torch.autograd.backward(y) or x.grad],
    "backward(inputs=...)": lambda y, x: [torch.autograd.backward(y, inputs=[x]) or x.grad],
    "a second pass": lambda y, x: [torch.autograd.grad(y, x, retain_graph=again)[0] for again in (True, False)][1:],
    "create_graph": lambda y, x: _twice(y, x),
}


def _twice(y, x):
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    return [first, *torch.autograd.grad(first.sum(), x)]


@keeps("CKPT-14")
def test_all_passes_go_through_nested_checkpoints(subject, data):
    """Every pass through checkpoints within each other, around a vmap too, gives the derivatives."""
    depth = subject.draw(data, st.integers(1, 3), "checkpoints within each other")
    mapped = subject.draw(data, (False, True), "vmap of the Function")
    factor = subject.draw(data, (1, -1, 3), "factor by which backward is off")
    wanted = subject.draw(data, _PASSES, "pass")
    values = np.resize((2.0, -3.0, 1.0), subject.draw(data, ((1,), (3,), (2, 2)), "shape"))
    square = subject.custom(
        forward=lambda x: x * x,
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
        backward=lambda ctx, g: factor * 2 * ctx.saved_tensors[0] * g,
        generate_vmap_rule=True,
    )

    def f(x, left=depth):
        if left:
            return x * torch.utils.checkpoint.checkpoint(f, x, left - 1, use_reentrant=False)
        return torch.vmap(square)(x) if mapped else square(x)

    x = subject.tensor(values).requires_grad_()
    y = f(x)
    subject.assert_same("output", got=y, expected=values ** (depth + 2))
    got = _PASSES[wanted](y.sum(), x)
    second = depth * (depth - 1) + 2 * factor * (2 * depth + 1)
    expected = [(depth + 2 * factor) * values ** (depth + 1), second * values**depth]
    subject.assert_all_same("derivatives", got=got, expected=expected[: len(got)])


@keeps("CKPT-16")
def test_a_changed_argument_is_noticed(subject, data):
    """Backward raises if an argument was changed in place after the call, and is right if none was."""
    reentrant = subject.draw(data, st.booleans(), "use_reentrant")
    x = subject.tensor([1.0, 2.0]).requires_grad_()
    fixed = subject.tensor(subject.draw(data, st.lists(st.integers(1, 4), min_size=2, max_size=2), "fixed argument"))
    change = subject.draw(data, ("add_", "mul_", "fill_", ""), "in-place change")
    square = subject.custom(
        forward=lambda ctx, x, y: (ctx.save_for_backward(x, y), x * x * y)[1],
        backward=lambda ctx, g: (2 * prod(ctx.saved_tensors) * g, None),
    )
    expected = 2 * x.detach() * fixed
    output = torch.utils.checkpoint.checkpoint(square, x, fixed, use_reentrant=reentrant)
    if change:
        getattr(fixed, change)(5)
        what = "backward of a checkpoint, one of whose arguments was changed"
        subject.assert_raises(RuntimeError, output.sum().backward, what, naming=["modified by an inplace operation"])
    else:
        output.sum().backward()
        subject.assert_same("gradient", got=x.grad, expected=expected)


@keeps("CKPT-16", variant="hooks")
def test_hooks_on_saved_tensors_see_the_arguments(subject, data):
    """Hooks on saved tensors pack the arguments of a reentrant checkpoint, and backward uses what they unpack."""
    count = subject.draw(data, (1, 2, 3), "number of tensor arguments")
    tensors = [subject.tensor([n + 1.0]).requires_grad_() for n in range(count)]
    packed = []
    with graph.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: 10 * t):
        output = torch.utils.checkpoint.checkpoint(lambda *xs: sum(x * x for x in xs), *tensors, use_reentrant=True)
    subject.assert_all_same("tensors packed", got=packed, expected=[t.detach() for t in tensors])
    output.sum().backward()
    expected = [20.0 * t.detach() for t in tensors]
    subject.assert_all_same("gradients at what was unpacked", got=[t.grad for t in tensors], expected=expected)


# What holds the functions of a sequence.
_SEQUENCES = {"list": list, "Sequential": lambda modules: torch.nn.Sequential(*modules)}


class _Step(torch.nn.Module):
    """Doubles by a custom Function and notes its number."""

    def __init__(self, subject, number, runs):
        super().__init__()
        self.number, self.runs = number, runs
        self.apply, _ = multiplying(subject, lambda x: torch.full_like(x, 2))

    def forward(self, x):
        self.runs.append(self.number)
        return self.apply(x)


@keeps("CKPT-17", examples=0.5)
def test_all_segments_but_the_last_run_again(subject, data):
    """Each function of a list or Sequential runs in forward, those before the last segment once more in the pass."""
    x, g = drawn_pair(subject, data)
    count, segments = subject.draw(data, ((4, 2), (3, 3), (5, 2), (2, 1), (1, 1)), "functions and segments")
    sequence = _SEQUENCES[subject.draw(data, _SEQUENCES, "functions held by")]
    reentrant = subject.draw(data, st.booleans(), "use_reentrant")
    runs = []
    functions = sequence([_Step(subject, n, runs) for n in range(count)])
    y = torch.utils.checkpoint.checkpoint_sequential(functions, segments, x, use_reentrant=reentrant)
    again = count // segments * (segments - 1)
    subject.assert_equal("functions that ran in forward", got=runs, expected=list(range(count)))
    subject.assert_same("output", got=y, expected=x.detach() * 2**count)
    # Only the reentrant variant refuses to be asked for an input.
    if reentrant and again:
        asked = lambda: torch.autograd.grad(y, x, g, retain_graph=True)  # noqa: E731
        subject.assert_raises(RuntimeError, asked, "grad of reentrant segments", naming=["use_reentrant"])
    torch.autograd.backward(y, g, inputs=None if reentrant else [x])
    got = sorted(runs[count:])
    subject.assert_equal("functions that ran again in the pass, sorted", got=got, expected=list(range(again)))
    subject.assert_same("gradient", got=x.grad, expected=g * 2**count)


@keeps("CKPT-18")
def test_the_reentrant_variant_needs_an_input_that_requires_grad(subject, data):
    """Without one it warns, and its output is constant; the other variant has the gradient of a captured tensor."""
    x, g = drawn_pair(subject, data)
    others = subject.draw(data, st.lists(st.sampled_from((1.5, None, "text")), max_size=2), "further arguments")
    checkpoint = torch.utils.checkpoint.checkpoint
    double = subject.custom(forward=lambda ctx, y: 2 * y, backward=lambda ctx, g: 2 * g)

    def f(y, *_):
        return double(x) + y

    constant = partial(checkpoint, f, x.detach(), *others)
    facts = [("requires_grad", "require grad")]
    outputs = []
    call = lambda: outputs.append(constant(use_reentrant=True))  # noqa: E731
    subject.assert_warns(UserWarning, call, "the reentrant variant without an input that requires grad", naming=facts)
    got = outputs[0].requires_grad
    subject.assert_equal("requires_grad of the output of the reentrant variant", got=got, expected=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        output = subject.assert_accepted(lambda: constant(use_reentrant=False), "the variant that is not reentrant")
        accepted = lambda: checkpoint(f, x, *others, use_reentrant=True)  # noqa: E731
        subject.assert_accepted(accepted, "the reentrant variant with an input that requires grad")
    torch.autograd.backward(output, g)
    subject.assert_same("gradient of a captured tensor", got=x.grad, expected=2 * g)


# What the reentrant variant does not take, nor a sequence.
_OPTIONS = {
    "a keyword argument of the function": {"scale": 3},
    "context_fn": {"context_fn": lambda: (nullcontext(), nullcontext())},
    "debug": {"debug": True},
}


@keeps("CKPT-11", variant="refused")
def test_keyword_arguments_are_refused_where_they_would_be_lost(subject, data):
    """The reentrant variant and sequences raise for keyword arguments, context_fn and debug."""
    x, _ = drawn_pair(subject, data)
    option = subject.draw(data, _OPTIONS, "option")
    entry = subject.draw(data, ("checkpoint", "checkpoint_sequential"), "entry")
    given, known = _OPTIONS[option], {"preserve_rng_state": subject.draw(data, st.booleans(), "preserve_rng_state")}
    f = lambda y, **_: operator.mul(y, 2)  # noqa: E731
    reentrant = {"checkpoint": (True,), "checkpoint_sequential": (True, False)}[entry]
    calls = {
        "checkpoint": partial(torch.utils.checkpoint.checkpoint, f, x),
        "checkpoint_sequential": partial(torch.utils.checkpoint.checkpoint_sequential, [f, f], 2, x),
    }
    use = {"use_reentrant": subject.draw(data, reentrant, "use_reentrant")}
    refused = lambda: calls[entry](**given, **use)  # noqa: E731
    subject.assert_raises(ValueError, refused, f"{entry} with {option}", naming=[next(iter(given))])
    subject.assert_accepted(lambda: calls[entry](**known, **use), f"{entry} with preserve_rng_state")


@keeps("CKPT-26")
def test_checkpoint_without_a_function_is_a_decorator(subject, data):
    """Each call of what it decorates is checkpointed, with the decorator's options and the arguments of the call."""
    early = subject.draw(data, (True, False), "early_stop")
    keyword = subject.draw(data, (False, True), "the factor is a keyword argument")
    calls = subject.draw(data, (1, 2), "calls")
    x, g = drawn_pair(subject, data)
    double, runs = multiplying(subject, lambda x: torch.full_like(x, 2))
    ends = []

    def f(x, factor):
        y = double(factor * x)
        ends.append(factor)
        return y

    decorate = lambda: torch.utils.checkpoint.checkpoint(use_reentrant=False, early_stop=early)(f)  # noqa: E731
    decorated = subject.assert_accepted(decorate, "checkpoint without a function")
    outputs = [decorated(x, factor=n) if keyword else decorated(x, n) for n in range(1, calls + 1)]
    subject.assert_all_same("outputs", got=outputs, expected=[2 * n * x.detach() for n in range(1, calls + 1)])
    torch.autograd.backward(outputs, [g] * calls)
    subject.assert_equal("runs of the Function in the decorated one", got=len(runs), expected=2 * calls)
    # A recomputation that stops early does not come to the end.
    subject.assert_equal("runs that reached the end", got=len(ends), expected=calls if early else 2 * calls)
    subject.assert_same("gradient", got=x.grad, expected=sum(2 * n for n in range(1, calls + 1)) * g)


@keeps("CKPT-26", variant="reentrant")
def test_a_decorator_may_be_reentrant(subject, data):
    """With use_reentrant=True the decorated function refuses autograd.grad; an unknown option is refused at once."""
    x, g = drawn_pair(subject, data)
    double, runs = multiplying(subject, lambda x: torch.full_like(x, 2))
    name = subject.draw(data, ("factor", "use_reentrent"), "unknown option")
    checkpoint = torch.utils.checkpoint.checkpoint
    unknown = lambda: checkpoint(use_reentrant=True, **{name: 1})  # noqa: E731
    subject.assert_raises((TypeError, ValueError), unknown, "a decorator with an unknown option", naming=[name])
    y = checkpoint(use_reentrant=True)(double)(x)
    asked = lambda: torch.autograd.grad(y, x, g, retain_graph=True)  # noqa: E731
    subject.assert_raises(RuntimeError, asked, "autograd.grad of a reentrant checkpoint", naming=["use_reentrant"])
    torch.autograd.backward(y, g)
    subject.assert_equal("runs of the Function", got=len(runs), expected=2)
    subject.assert_same("gradient", got=x.grad, expected=2 * g)
