"""Checkpointing: segments of a sequence of functions, and what each variant needs and refuses."""

import operator
import warnings
from contextlib import nullcontext
from functools import partial

import torch
import torch.utils.checkpoint
from hypothesis import strategies as st

from autograd_conformance.harness.checking.marks import keeps
from autograd_conformance.suites.dialects.torch._recomputed import drawn_pair, multiplying

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
