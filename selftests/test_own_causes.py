"""The headline of a fault is the property nearest to its cause."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch

from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.check.printing import headlines
from autograd_conformance.harness.check.verdicts import verdict
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.suites.declared import Checked

# Most of the faults below break most of these.
ASKED = (
    "VJP-FD", "VJP-REF", "FWD-LAYOUT", "VJP-NONE", "VJP-MASK", "VJP-COTANGENT-LAYOUT", "VJP-UNUSED", "VJP-LINEAR",
    "VJP-FIT", "VJP-PURE", "VJP-REPEAT", "VJP-CHAIN", "ENV-THREADS", "ENV-RANDOM",
    "MEM-WRITTEN", "ENV-SETTINGS",
)  # fmt: skip


class Product(torch.autograd.Function):
    """A right Function, whose backward each fault overrides."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x, w)
        return x * w, x + w

    @staticmethod
    def backward(ctx, g, h):
        x, w = ctx.saved_tensors
        g, h = (torch.zeros_like(x) if c is None else c for c in (g, h))
        return (g * w + h) if ctx.needs_input_grad[0] else None, (g * x + h) if ctx.needs_input_grad[1] else None


def right(ctx, g, h):
    x, w = ctx.saved_tensors
    g, h = (torch.zeros_like(x) if c is None else c for c in (g, h))
    return g * w + h, g * x + h


def computes_both_or_none(ctx, g, h):
    return right(ctx, g, h) if ctx.needs_input_grad[0] else (None, None)


def needs_the_other_gradient(ctx, g, h):
    found, other = right(ctx, g, h)
    kept = found if ctx.needs_input_grad[0] else None
    return kept, other + 0 * kept


def takes_every_cotangent(ctx, g, h):
    x, w = ctx.saved_tensors
    return g * w + h, g * x + h


def uses_an_unknown_name(ctx, g, h):
    return right(ctx, g, h) * missing  # noqa: F821 - the fault


def returns_one_gradient_only(ctx, g, h):
    return right(ctx, g, h)[0]


def takes_contiguous_cotangents_only(ctx, g, h):
    return right(ctx, *(c if c is None else c.view(-1).view(c.shape) for c in (g, h)))


def runs_once(ctx, g, h):
    if hasattr(ctx, "ran"):
        raise RuntimeError("the buffer is gone")
    ctx.ran = True
    return right(ctx, g, h)


def is_right_once(ctx, g, h):
    factor, ctx.ran = (3 if hasattr(ctx, "ran") else 1), True
    return tuple(factor * gradient for gradient in right(ctx, g, h))


def has_the_wrong_formula(ctx, g, h):
    return tuple(2 * gradient for gradient in right(ctx, g, h))


def is_clipped(ctx, g, h):
    return tuple(gradient.clamp(-1, 1) for gradient in right(ctx, g, h))


def writes_into_its_cotangent(ctx, g, h):
    x, w = ctx.saved_tensors
    if g is None:
        return h, h
    found, other = g * w, g.mul_(x)
    return (found, other) if h is None else (found + h, other + h)


KEPT = {}


def keeps_an_input_for_all_calls(ctx, g, h):
    KEPT.setdefault(ctx.saved_tensors[0].shape, ctx.saved_tensors[0].detach().clone())
    found, _ = right(ctx, g, h)
    return found, (0 if g is None else g * KEPT[ctx.saved_tensors[0].shape]) + (0 if h is None else h)


CAUSES = {
    is_clipped: "VJP-LINEAR",
    writes_into_its_cotangent: "VJP-PURE",
    computes_both_or_none: "VJP-MASK",
    needs_the_other_gradient: "VJP-MASK",
    takes_every_cotangent: "VJP-UNUSED",
    uses_an_unknown_name: "VJP-REF",
    returns_one_gradient_only: "VJP-NONE",
    takes_contiguous_cotangents_only: "VJP-COTANGENT-LAYOUT",
    runs_once: "VJP-REPEAT",
    is_right_once: "VJP-REPEAT",
    has_the_wrong_formula: "VJP-FD",
}


def found(backward):
    """The properties that head a group of failures of `Product` with this backward."""
    cls = type("Faulty", (Product,), {"backward": staticmethod(backward)})
    lines = list(Checked(Declaration(cls, "float[n,m]", "float[n,m]"), seed=1).lines(*ASKED))
    judged = [(line, verdict(line)) for line in lines]
    return [ndjson.test_of(line) for line in headlines([(line, v) for line, v in judged if v and v.fault])]


@pytest.mark.parametrize("backward", CAUSES, ids=lambda backward: backward.__name__)
def test_one_cause_has_one_headline(backward):
    assert found(backward) == [CAUSES[backward]]


def test_what_is_right_has_none():
    assert found(Product.backward) == []


def another_error_for_zeros(ctx, g, h):
    if g is not None and not g.any():
        return right(ctx, g, h)[0]
    if g is not None and not g.is_contiguous():
        return right(ctx, g, h)[0][:, :0], None
    return right(ctx, g, h)


def test_two_errors_of_the_engine_are_two_faults():
    assert len(found(another_error_for_zeros)) > 1
