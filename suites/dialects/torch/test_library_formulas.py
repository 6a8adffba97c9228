"""Formulas of operators: ways to register one, gradients without a tuple, and lists of tensors."""

from contextlib import nullcontext

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor

from autograd_conformance.harness.checking.marks import keeps

NAME = "autograd_conformance::drawn"
# Ways to register a formula for a custom operator.
_WAYS = {
    "its method": lambda op: op.register_autograd,
    "register_autograd of the operator": lambda op: lambda *a, **k: torch.library.register_autograd(op, *a, **k),
    "register_autograd of its name": lambda op: lambda *a, **k: torch.library.register_autograd(NAME, *a, **k),
}


def _tripled(x: Tensor) -> Tensor:
    return 3 * x


def _defined_in_a_library(lib):
    """The same operator without custom_op; its formula belongs to the library."""
    lib.define("drawn_plain(Tensor x) -> Tensor")
    lib.impl("drawn_plain", _tripled, "CompositeExplicitAutograd")
    name = "autograd_conformance::drawn_plain"
    return torch.ops.autograd_conformance.drawn_plain, lambda *a, **k: torch.library.register_autograd(
        name, *a, lib=lib, **k
    )


@keeps("LIB-01", variant="ways")
def test_every_way_to_register_a_formula_counts(subject, data):
    """However it was registered, a formula gives the gradient, as a bare tensor too, and no_grad records nothing."""
    way = subject.draw(data, (*_WAYS, "in a Library"), "registered by")
    factor = subject.draw(data, (None, 2.0, -5.0), "factor that setup_context stores, None without a setup_context")
    bare = subject.draw(data, st.booleans(), "backward returns a tensor, not a tuple of one")
    recorded = subject.draw(data, (True, False), "recorded")
    x = subject.tensor([1.0, -2.0]).requires_grad_()

    def backward(ctx, g):
        gradient = (7.0 if factor is None else ctx.factor) * g
        return gradient if bare else (gradient,)

    def setup_context(ctx, inputs, output):
        ctx.factor = factor

    options = {} if factor is None else {"setup_context": setup_context}
    library = torch.library._scoped_library if way == "in a Library" else lambda *_: nullcontext()
    with library("autograd_conformance", "FRAGMENT") as lib:
        if lib is None:
            op = torch.library.custom_op(NAME, _tripled, mutates_args=())
            register = _WAYS[way](op)
        else:
            op, register = _defined_in_a_library(lib)
        subject.assert_accepted(lambda: register(backward, **options), f"a formula registered by {way}")
        with torch.set_grad_enabled(recorded):
            y = op(x)
        subject.assert_same("output", got=y, expected=3 * x.detach())
        subject.assert_equal("requires_grad of the output", got=y.requires_grad, expected=recorded)
        if recorded:
            (got,) = subject.assert_accepted(lambda: torch.autograd.grad(y, x, torch.ones_like(x)), "its backward")
            subject.assert_same("gradient", got=got, expected=np.full(2, factor or 7.0))


@keeps("LIB-01", variant="lists")
def test_lists_of_tensors_have_lists_of_gradients(subject, data):
    """backward gets a list of cotangents for a list of outputs, and returns a list for a list of inputs."""
    track = subject.draw(data, st.lists(st.booleans(), min_size=1, max_size=3).filter(any), "requires grad")
    count = len(track)
    withheld = subject.draw(data, st.sets(st.sampled_from(range(count))), "tensors for which backward returns None")
    extra = subject.draw(data, (True, False), "a tensor beside the list requires grad")
    seen = {}

    @torch.library.custom_op("autograd_conformance::weighted", mutates_args=())
    def weighted(xs: list[Tensor], scale: Tensor, n: int) -> tuple[list[Tensor], Tensor]:
        return [n * i * x for i, x in enumerate(xs, 1)], scale * 2

    def setup_context(ctx, inputs, output):
        seen.update(inputs=[type(each) for each in inputs], output=[type(each) for each in output])
        ctx.n = inputs[2]

    def backward(ctx, gs, h):
        seen.update(cotangents=(type(gs), len(gs)), needs=ctx.needs_input_grad)
        gradients = [None if i in withheld else ctx.n * (i + 1) * g for i, g in enumerate(gs)]
        return gradients, 2 * h, None

    weighted.register_autograd(backward, setup_context=setup_context)
    leaves = [subject.tensor([1.0 + i, 2.0]).requires_grad_(flag) for i, flag in enumerate(track)]
    scale = subject.tensor(5.0).requires_grad_(extra)
    ys, z = subject.assert_accepted(lambda: weighted(leaves, scale, 3), "a call with a list of tensors")
    subject.assert_all_same("outputs", got=[*ys, z], expected=[
        *(3 * i * x.detach() for i, x in enumerate(leaves, 1)), np.asarray(10.0)])  # fmt: skip
    types = {"inputs": [list, Tensor, int], "output": [list, Tensor]}
    subject.assert_equal("types in setup_context", got={name: seen[name] for name in types}, expected=types)
    (sum(y.sum() for y in ys) + z).backward()
    subject.assert_equal("cotangents of the list of outputs", got=seen["cotangents"], expected=(list, count))
    got = seen["needs"]
    subject.assert_equal("ctx.needs_input_grad in backward", got=got, expected=(track, extra, False))
    expected = [None if i in withheld or not flag else np.full(2, 3.0 * (i + 1)) for i, flag in enumerate(track)]
    subject.assert_all_same("gradients", got=[x.grad for x in leaves], expected=expected)
    subject.assert_same("gradient beside the list", got=scale.grad, expected=np.asarray(2.0) if extra else None)
