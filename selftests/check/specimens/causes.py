"""A Function of two factors with one fault in backward, which has one headline: the property nearest to its cause."""

from __future__ import annotations

from dataclasses import replace

import torch

from autograd_conformance.harness.check import Declaration
from autograd_conformance.selftests.check.checking import each_test_of
from autograd_conformance.selftests.check.specimens import right, wrong
from autograd_conformance.selftests.check.specimens.functions import custom

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


def raises_other_errors_for_zeros_and_layouts(ctx, g, h):
    if g is not None and not g.any():
        return gradients(ctx, g, h)[0]
    if g is not None and not g.is_contiguous():
        return gradients(ctx, g, h)[0][:, :0], None
    return gradients(ctx, g, h)


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
    return custom("Faulty", Product, backward=backward)


def _masked_twice(ctx, g):
    """The gradient of w is zero, and so cannot be differentiated, if x needs none."""
    x, w = ctx.saved_tensors
    return (g * w, g * x) if ctx.needs_input_grad[0] else (None, None)


def _two(ctx, x, w):
    ctx.save_for_backward(x, w)
    return x * w


def _dropped(ctx, x):
    ctx.save_for_backward(x)
    return x * x * (torch.rand_like(x) >= 0.4)


def _drawn_again(ctx, g):
    (x,) = ctx.saved_tensors
    return 2 * g * x * (torch.rand_like(x) >= 0.4)


# Dropout that draws its mask again in backward.
dropped = Declaration(custom("Dropped", forward=_dropped, backward=_drawn_again), "float[n]", stochastic=True)


def _scaled(constant, factor=1.0):
    """x times a constant, whose backward has a factor too many."""
    return custom("Scaled", forward=lambda _, x: x * constant(x), backward=lambda _, g: g * 0.3 * factor)


_IN_SINGLE = "something is computed in float32"
# The gradients are off by the rounding of 0.3 in single precision, or by more.
_OFF = {
    "a number in single precision, where small": (
        _scaled(lambda x: torch.where(x < 9, 0.3, 9.0).to(x.dtype)), "float[n]", _IN_SINGLE
    ),
    "a complex number in single precision": (_scaled(lambda x: torch.tensor(0.3).to(x)), "complex[n]", _IN_SINGLE),
    "a number in single precision": (_scaled(lambda x: torch.tensor(0.3).to(x)), "float[]", _IN_SINGLE),
    "a thousandth too much": (_scaled(lambda _: 0.3, factor=1.001), "float[n]", "times 0.999001"),
    "a little too much": (_scaled(lambda _: 0.3, factor=1 + 1e-5), "float[n]", "times 0.99999"),
}  # fmt: skip

_TWO = ("float[n,m]", "float[n,m]")
_DRAWN = [
    wrong(f.__name__, head, _faulty(f), *_TWO, tests=" ".join(ASKED), profile="quick", seed=1)
    for f, head in CAUSES.items()
]
_EVERY = tuple(test for property_id in ASKED for test in each_test_of(property_id))
SPECIMENS = (
    *_DRAWN,
    *(replace(each, name=f"{each.name}, smallest", tests=_EVERY, profile="gate", shrink=True) for each in _DRAWN),
    wrong(
        "two errors of the engine, which are two faults", "VJP-COTANGENT-LAYOUT VJP-REF VJP-REPEAT",
        _faulty(raises_other_errors_for_zeros_and_layouts), *_TWO, tests=" ".join(ASKED), profile="quick", seed=1,
    ),
    wrong(
        "a second derivative that a mask takes away", "VJP-MASK", custom(forward=_two, backward=_masked_twice),
        *("float[n]",) * 2, tests="VJP-MASK* DBL-CORRECT*", met_by=("DBL-CORRECT",), profile="quick",
    ),
    wrong(
        "a mask that is drawn again", "VJP-FD", dropped, tests="VJP-FD* DBL-CORRECT*", profile="quick", shrink=True,
        met_by=("VJP-FD/kinks", "VJP-FD/long", "VJP-FD/small"), unsaid="stochastic",
        exactly={
            "follows": "ENV-RANDOM",
            "guess": "let forward save what it drew (save_for_backward), and let backward use that instead of drawing "
            "again",
        },
    ),
    *(wrong(name, "VJP-FD", f, argument, word="wrong", says=says) for name, (f, argument, says) in _OFF.items()),
    right("right", " ".join(ASKED), Product, *_TWO, decided=False),
)  # fmt: skip
