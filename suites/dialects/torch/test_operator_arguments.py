"""Operators of torch.library: optional tensors, by keyword and in lists; no formula, and no kernel for autograd."""

import warnings
from contextlib import nullcontext
from typing import Optional

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from autograd_conformance.harness.testing.marks import keeps

SPACE = "autograd_conformance_arguments"
NUMBERS = st.lists(st.sampled_from((1.0, -1.0, 2.0, -3.0)), min_size=2, max_size=2)


@keeps("LIB-14")
def test_an_optional_tensor_may_be_none(subject, data):
    """setup_context and backward have None for an optional tensor that was not given, and gradients are right."""
    given = subject.draw(data, ("left out", "None", "a tensor", "a tensor that requires grad"), "the optional tensor")
    first = subject.draw(data, st.booleans(), "the other tensor requires grad")
    values, others = subject.draw(data, st.tuples(NUMBERS, NUMBERS), "x and the optional tensor")
    seen = {}

    def shifted(x: Tensor, bias: Optional[Tensor] = None, scale: float = 3.0) -> Tensor:  # noqa: UP045 - for torch 2.4
        return scale * x if bias is None else scale * x + 5 * bias

    def setup_context(ctx, inputs, output):
        seen["bias"] = inputs[1]
        ctx.given, ctx.scale = inputs[1] is not None, inputs[2]

    def backward(ctx, g):
        seen["flag"] = len(ctx.needs_input_grad) > 1 and ctx.needs_input_grad[1]
        return ctx.scale * g, 5 * g if ctx.given else None, None

    op = torch.library.custom_op(f"{SPACE}::shifted", shifted, mutates_args=())
    op.register_autograd(backward, setup_context=setup_context)
    tracked = given.endswith("grad")
    x, other = (
        subject.tensor(values).requires_grad_(first or not tracked),
        subject.tensor(others).requires_grad_(tracked),
    )
    passed = {"left out": (), "None": (None,)}.get(given, (other,))
    y = subject.assert_accepted(lambda: op(x, *passed), "a call")
    absent = "tensor" not in given
    subject.assert_equal("the optional tensor is None in setup_context", got=seen["bias"] is None, expected=absent)
    leaves = [t for t in (x, other) if t.requires_grad]
    found = subject.assert_accepted(lambda: torch.autograd.grad(y.sum(), leaves), "a backward pass")
    expected = [np.full(2, factor) for t, factor in ((x, 3.0), (other, 5.0)) if t.requires_grad]
    subject.assert_all_same("gradients", got=found, expected=expected)
    subject.assert_equal("flag of the optional tensor in needs_input_grad", got=seen["flag"], expected=tracked)


@keeps("LIB-15")
def test_a_keyword_only_tensor_is_refused(subject, data):
    """Of keyword-only arguments a tensor is refused, alone, optional, and in a list; a number is not."""
    kind = subject.draw(data, (Tensor, Optional[Tensor], list[Tensor], int, float), "type")  # noqa: UP045

    def function(x: Tensor, *, more) -> Tensor:
        return 2 * x

    function.__annotations__.update({"more": kind, "return": Tensor})

    def define():
        return torch.library.custom_op(f"{SPACE}::keyword", function, mutates_args=())

    if kind in (int, float):
        op = subject.assert_accepted(define, "a keyword-only number")
        subject.assert_same("output", got=op(subject.tensor([1.0]), more=kind(2)), expected=np.array([2.0]))
    else:
        subject.assert_raises(NotImplementedError, define, "a keyword-only tensor", naming=["kwarg-only"])


@keeps("LIB-16", examples=0.4, slow=True)
def test_a_size_may_depend_on_values(subject, data):
    """What was traced with some values has the sizes of others."""
    values = st.lists(st.sampled_from((0.0, 1.0, -2.0)), min_size=4, max_size=4)
    first, then = subject.draw(data, st.tuples(values, values), "values when it is traced, and later")

    def entries(x: Tensor) -> Tensor:
        return torch.from_numpy(np.flatnonzero(x.numpy(force=True)))

    op = torch.library.custom_op(f"{SPACE}::entries", entries, mutates_args=())
    op.register_fake(lambda x: x.new_empty(torch.library.get_ctx().new_dynamic_size(), dtype=torch.int64))
    traced = make_fx(lambda x: x.new_full((op(x).shape[0],), 7.0), tracing_mode="symbolic")(subject.tensor(first))
    count = int(np.count_nonzero(then))
    found = subject.assert_accepted(lambda: traced(subject.tensor(then)), "the traced graph with other values")
    subject.assert_equal("size of the result", got=tuple(found.shape), expected=(count,))


@keeps("LIB-17")
def test_without_a_kernel_for_autograd_backward_warns(subject, data):
    """The output requires grad and backward warns, or in the mode that does nothing it requires no grad."""
    mode = subject.draw(data, ("warn", "nothing"), "fallback mode")
    x = subject.tensor(subject.draw(data, NUMBERS, "x")).requires_grad_()
    before = torch._C._get_autograd_fallback_mode()
    with torch.library._scoped_library(SPACE, "FRAGMENT") as lib:
        lib.define("silent(Tensor x) -> Tensor")
        lib.impl("silent", lambda x: 2 * x.detach(), torch._C._dispatch_key_for_device(x.device.type))
        try:
            torch._C._set_autograd_fallback_mode(mode)
            y = getattr(torch.ops, SPACE).silent(x)
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                if y.requires_grad:
                    y.sum().backward()
        finally:
            torch._C._set_autograd_fallback_mode(before)
    subject.assert_same("output", got=y.detach(), expected=2 * x.detach())
    subject.assert_equal("requires_grad of the output", got=y.requires_grad, expected=mode == "warn")
    told = ["an autograd kernel was not registered" in str(each.message) for each in said]
    subject.assert_equal("warnings of backward", got=told, expected=[True] if mode == "warn" else [])
    subject.assert_that(x.grad is None, "gradient", got=x.grad, expected=None)


def _without_formula():
    """An operator with tensors of each kind among its arguments, and a list of results."""

    def doubled(x: Tensor, more: list[Tensor], y: Optional[Tensor] = None) -> list[Tensor]:  # noqa: UP045
        return [2 * each for each in (x, *more, *(() if y is None else (y,)))]

    return torch.library.custom_op(f"{SPACE}::unregistered", doubled, mutates_args=())


@keeps("LIB-02", variant="places")
def test_without_a_formula_backward_raises_wherever_the_tensor_was(subject, data):
    """A pass through any result raises where a tensor of any kind requires grad, and without recording none does."""
    tracked = subject.draw(data, ("more", "y", "x"), "requires grad")
    recorded = subject.draw(data, (True, False), "gradients are recorded")
    keyword = subject.draw(data, st.booleans(), "y by keyword")
    values = subject.draw(data, st.tuples(NUMBERS, NUMBERS, NUMBERS), "x, more and y")
    names = ("x", "more", "y")
    x, more, y = (t.requires_grad_(name == tracked) for name, t in zip(names, subject.tensors(values), strict=True))
    with nullcontext() if recorded else torch.no_grad():
        op = _without_formula()
        results = subject.assert_accepted(lambda: op(x, [more], y=y) if keyword else op(x, [more], y), "a call")
    subject.assert_all_same("results", got=results, expected=[2 * np.array(each) for each in values])
    flags = [result.requires_grad for result in results]
    subject.assert_equal("requires_grad of the results", got=flags, expected=[recorded] * 3)
    if recorded:
        used = results[subject.draw(data, st.integers(0, 2), "result that is used")]
        what = "a backward pass through an operator without a formula"
        naming = ["unregistered", "register_autograd"]
        subject.assert_raises(RuntimeError, lambda: used.sum().backward(), what, naming=naming)
