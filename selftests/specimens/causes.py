"""A Function of two factors with one fault in backward, which has one headline: the property nearest to its cause."""

from __future__ import annotations

from dataclasses import replace

import torch

from autograd_conformance.selftests.checking import each_test_of
from autograd_conformance.selftests.specimens import right, wrong

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


def gradients(ctx, g, h):
    x, w = ctx.saved_tensors
    g, h = (torch.zeros_like(x) if c is None else c for c in (g, h))
    return g * w + h, g * x + h


def computes_both_or_none(ctx, g, h):
    return gradients(ctx, g, h) if ctx.needs_input_grad[0] else (None, None)


def needs_the_other_gradient(ctx, g, h):
    found, other = gradients(ctx, g, h)
    kept = found if ctx.needs_input_grad[0] else None
    return kept, other + 0 * kept


def takes_every_cotangent(ctx, g, h):
    x, w = ctx.saved_tensors
    return g * w + h, g * x + h


def uses_an_unknown_name(ctx, g, h):
    return gradients(ctx, g, h) * missing  # noqa: F821 - the fault


def returns_one_gradient_only(ctx, g, h):
    return gradients(ctx, g, h)[0]


def takes_contiguous_cotangents_only(ctx, g, h):
    return gradients(ctx, *(c if c is None else c.view(-1).view(c.shape) for c in (g, h)))


def runs_once(ctx, g, h):
    if hasattr(ctx, "ran"):
        raise RuntimeError("the buffer is gone")
    ctx.ran = True
    return gradients(ctx, g, h)


def is_right_once(ctx, g, h):
    factor, ctx.ran = (3 if hasattr(ctx, "ran") else 1), True
    return tuple(factor * gradient for gradient in gradients(ctx, g, h))


def has_the_wrong_formula(ctx, g, h):
    return tuple(2 * gradient for gradient in gradients(ctx, g, h))


def is_clipped(ctx, g, h):
    return tuple(gradient.clamp(-1, 1) for gradient in gradients(ctx, g, h))


def writes_into_its_cotangent(ctx, g, h):
    x, w = ctx.saved_tensors
    if g is None:
        return h, h
    found, other = g * w, g.mul_(x)
    return (found, other) if h is None else (found + h, other + h)


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


def _faulty(backward):
    return type("Faulty", (Product,), {"backward": staticmethod(backward)})


_TWO = ("float[n,m]", "float[n,m]")
_DRAWN = [
    wrong(f.__name__, head, _faulty(f), *_TWO, tests=" ".join(ASKED), profile="quick", seed=1)
    for f, head in CAUSES.items()
]
_EVERY = tuple(test for property_id in ASKED for test in each_test_of(property_id))
SPECIMENS = (
    *_DRAWN,
    *(replace(each, name=f"{each.name}, smallest", tests=_EVERY, profile="gate", shrink=True) for each in _DRAWN),
    right("right", " ".join(ASKED), Product, *_TWO, decided=False),
)
