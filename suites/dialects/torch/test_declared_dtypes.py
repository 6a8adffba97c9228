"""The dtypes in which backward gets its cotangents, as a Function declares them for its outputs."""

import numpy as np
import torch
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps

FLOATS = ("float32", "bfloat16", "float64")


def _dtype(name):
    return name and getattr(torch, name)


def _multiples(subject, outputs, declared, separate, seen, more=lambda ctx, outputs: None):
    """A Function that gives ``outputs(x)`` and declares these dtypes; n times the n-th cotangent is added up."""

    def declare(ctx, outputs):
        ctx.set_output_grad_dtype(*map(_dtype, declared))
        more(ctx, outputs)

    def forward(ctx, x):
        found = outputs(x)
        declare(ctx, found)
        return found

    def backward(ctx, *cotangents):
        seen.extend(None if g is None else str(g.dtype).removeprefix("torch.") for g in cotangents)
        return sum(n * g.to(torch.float32) for n, g in enumerate(cotangents, 1) if g is not None)

    if separate:
        setup = {"setup_context": lambda ctx, inputs, output: declare(ctx, output)}
        return subject.custom(forward=outputs, backward=backward, **setup)
    return subject.custom(forward=forward, backward=backward)


@keeps("CTX-11")
def test_backward_gets_cotangents_in_the_declared_dtypes(subject, data):
    """Each cotangent has the dtype that is declared for its output, or for None the one that it had."""
    floats = [name for name in FLOATS if name in (*subject.dtypes, "float32")]
    dtype = subject.draw(data, floats, "dtype of the outputs")
    each = st.tuples(st.sampled_from((*floats, None)), st.sampled_from(floats))
    pairs = subject.draw(data, st.lists(each, min_size=1, max_size=3), "declared dtypes, and those of cotangents")
    text = subject.draw(data, (False, True), "a further output is text, with None")
    separate = subject.draw(data, (False, True), "declared in setup_context")
    declared, given = zip(*pairs, strict=True)
    count, seen = len(pairs), []

    def outputs(x):
        return (*(n * x for n in range(1, count + 1)), *(["text"] if text else []))

    function = _multiples(subject, outputs, (*declared, *([None] if text else [])), separate, seen)
    x = subject.tensor([1.0, -2.0], dtype).requires_grad_()
    ys = subject.assert_accepted(lambda: function(x), "a call that declares dtypes")[:count]
    cotangents = [subject.tensor([1.0, 3.0], name) for name in given]
    (got,) = subject.assert_accepted(lambda: torch.autograd.grad(ys, x, cotangents), "the pass")
    expected = [wanted or found for wanted, found in pairs]
    subject.assert_equal("dtypes of the cotangents in backward", got=seen[:count], expected=expected)
    subject.assert_same("gradient", got=got, expected=sum(range(1, count + 1)) * np.array([1.0, 3.0]))
    subject.assert_equal("dtype of the gradient", got=got.dtype, expected=x.dtype)


# Outputs that take None alone: the outputs, and what else the Function says about them.
NOT_DIFFERENTIABLE = {
    "text": (lambda x: (2 * x, "text"), lambda ctx, outputs: None),
    "a marked output": (lambda x: (2 * x, 3 * x), lambda ctx, outputs: ctx.mark_non_differentiable(outputs[1])),
    "integers": (lambda x: (2 * x, x.to(torch.int64)), lambda ctx, outputs: None),
}


@keeps("CTX-11", variant="refused")
def test_what_cannot_be_declared_raises(subject, data):
    """One dtype too few or too many raises, and any for an output that is no tensor or not differentiable."""
    which = subject.draw(data, tuple(NOT_DIFFERENTIABLE), "second output")
    declared = subject.draw(data, ((None, "float32"), (None,), (None, None, None), (None, None)), "declared dtypes")
    separate = subject.draw(data, (False, True), "declared in setup_context")
    outputs, more = NOT_DIFFERENTIABLE[which]
    function = _multiples(subject, outputs, declared, separate, [], more)
    x = subject.tensor([1.0, -2.0], "float32").requires_grad_()

    def call():
        return torch.autograd.grad(function(x)[0].sum(), x)

    if declared == (None, None):
        subject.assert_accepted(call, "a declaration of None for each output")
    else:
        what = f"a declaration of {declared}"
        subject.assert_raises(RuntimeError, call, what, naming=["set_output_grad_dtype"])
