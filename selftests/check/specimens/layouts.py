"""Layouts that forward may refuse, and faults in others: negated and conjugated lazily, strided, transposed."""

from __future__ import annotations

import numpy as np
import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from autograd_conformance.harness.check import Declaration
from autograd_conformance.selftests.check.specimens import right, wrong
from autograd_conformance.selftests.check.specimens.functions import Sine, SineSlope, custom

# What forward refuses.


def _through_numpy(ctx, x):
    """The framework raises."""
    ctx.save_for_backward(x)
    return torch.as_tensor(np.sin(x.detach().numpy()))


def _refused_in_words(ctx, x):
    if x.is_neg() or x.is_conj():
        raise RuntimeError("neither negated nor conjugated tensors")
    return Sine.forward(ctx, x)


def _new_in_forward(ctx, x):
    """A method of the framework knows no such tensors."""
    return Sine.forward(ctx, x) * x.new_tensor(1.0)


REFUSING = {
    f.__name__[1:]: custom(f.__name__[1:], Sine, forward=f)
    for f in (_through_numpy, _refused_in_words, _new_in_forward)
}


# What forward accepted.


@once_differentiable
def _through_numpy_in_backward(ctx, g):
    """This takes no such cotangent."""
    x = ctx.saved_tensors[0].conj().resolve_conj().resolve_neg()
    return torch.from_numpy(g.numpy() * np.cos(x.numpy()))


@once_differentiable
def _new_in_backward(ctx, g):
    """This takes no such saved tensor."""
    return Sine.backward(ctx, g) * ctx.saved_tensors[0].new_tensor(1.0)


class _SineSlope(SineSlope):
    """Its backward takes no x that is negated lazily."""

    @staticmethod
    def backward(ctx, h):
        x, g = ctx.saved_tensors
        return -torch.from_numpy(np.sin(x.detach().numpy())) * g * h, x.cos() * h


class _RefusesOneReadsTheOther(Function):
    """x.sin() * w. forward refuses such an x, and takes the memory of such a w for its numbers."""

    @staticmethod
    def forward(ctx, x, w):
        sine = torch.as_tensor(np.sin(x.detach().numpy()), dtype=x.dtype)
        w = -w if w.is_neg() else w
        ctx.save_for_backward(x, w)
        return sine * w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * x.cos() * w, g * x.sin()


# What is read wrongly.


def _stored(x):
    """The tensor without the bits that negate and conjugate it."""
    x = -x if x.is_neg() else x
    return x.conj().resolve_conj() if x.is_conj() else x


def _read_as_stored(ctx, x):
    """The memory of a contiguous tensor is read, as a kernel does through data_ptr()."""
    return Sine.forward(ctx, _stored(x.contiguous()))


def _cotangent_read_as_stored(ctx, g):
    return Sine.backward(ctx, _stored(g.contiguous()))


def _read_in_one_order(ctx, x):
    """The memory is read in one order, whatever the layout."""
    return Sine.forward(ctx, _stored(x).as_strided(x.shape, x.contiguous().stride()))


# Layouts that are refused.


def _contiguous(ctx, *given):
    """x * w + b."""
    if not all(x.is_contiguous() for x in given):
        raise ValueError("contiguous tensors only")
    ctx.save_for_backward(*given)
    return given[0] * given[1] + given[2]


def _of_contiguous(ctx, g):
    x, w, _ = ctx.saved_tensors
    return g * w, g * x, g


contiguous = Declaration(custom(forward=_contiguous, backward=_of_contiguous), *("float[n,m]",) * 3)


class OneRefused(Function):
    """x * w, which refuses a transposed x. Right."""

    @staticmethod
    def forward(ctx, x, w):
        if min(x.shape, default=0) > 1 and x.stride(0) < x.stride(-1):
            raise ValueError("x must not be transposed")
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * w, g * x


def _wrong_for_strided(ctx, g):
    x, w = ctx.saved_tensors
    return g * w * (1.5 if w.numel() and w.stride(-1) == 2 else 1), g * x


def _refuses_one_mask(ctx, x, w):
    """Refuses to run if only one of its tensors requires grad."""
    if ctx.needs_input_grad[0] != ctx.needs_input_grad[1]:
        raise ValueError("both or none")
    return OneRefused.forward(ctx, x, w)


ONE, MATRIX = ("float[n]",), ("float[n,m]",)
one_refused_wrong = Declaration(custom("OneRefused", OneRefused, backward=_wrong_for_strided), *MATRIX * 2)

ASKED = "FWD-VALUE* FWD-LAYOUT* VJP-REF* VJP-COTANGENT-LAYOUT* DBL-CORRECT*"
CURES = {"negated": "call resolve_neg() first", "conjugated": "call resolve_conj() first"}
NEGATED = f"a tensor is negated lazily: {CURES['negated']}"
RESOLVE = f"forward accepted this call, so backward must not raise; {NEGATED}"


def _twice(ctx, g):
    """The second derivative takes no such tensor, the first one does."""
    return _SineSlope.apply(ctx.saved_tensors[0], g)


def _found(name, head, f, *arguments, **options):
    """One finding, in the smallest call."""
    return wrong(name, head, f, *arguments, tests=f"{head}*", alone=True, shrink=True, **options)


SPECIMENS = (
    *(
        right(f"{name} refuses {argument}", ASKED, f, argument, decided=False)
        for name, f in REFUSING.items()
        for argument in ("float[n,m]", "complex[n,m]")
    ),
    *(
        _found(
            f"negated in backward, {head}",
            head,
            custom("Sine", Sine, backward=backward),
            *MATRIX,
            word="raises",
            exactly={"hint": hint},
        )
        for backward, head, hint in (
            (_through_numpy_in_backward, "VJP-COTANGENT-LAYOUT", RESOLVE),
            (_new_in_backward, "FWD-LAYOUT", RESOLVE),
            (_twice, "DBL-CORRECT", NEGATED),
        )
    ),
    # What forward refuses of one argument hides no fault of another.
    _found(
        "one is refused, and the other read as stored",
        "FWD-LAYOUT",
        _RefusesOneReadsTheOther,
        *ONE * 2,
        word="wrong",
        says="layout='negated'",
    ),
    *(
        _found(
            f"{layout}, read as stored, {head}",
            head,
            custom("Sine", Sine, **methods),
            argument,
            word="wrong",
            exactly={"kind": "wrong"},
            says=(f"a tensor that is {layout} lazily", CURES[layout]),
        )
        for methods, head, argument, layout in (
            ({"forward": _read_as_stored}, "FWD-LAYOUT", "float[n]", "negated"),
            ({"forward": _read_as_stored}, "FWD-LAYOUT", "complex[n]", "conjugated"),
            ({"backward": _cotangent_read_as_stored}, "VJP-COTANGENT-LAYOUT", "float[n]", "negated"),
        )
    ),
    _found(
        "other layouts, read in one order",
        "FWD-LAYOUT",
        custom("Sine", Sine, forward=_read_in_one_order),
        *MATRIX,
        says="call contiguous() first",
        unsaid="lazily",
    ),
    right("contiguous alone", "VJP-REF* FWD-LAYOUT* DBL-CORRECT* VJP-CHAIN*", contiguous, taken=True),
    wrong("one is refused, and the other wrong", "FWD-LAYOUT", one_refused_wrong, tests="FWD-LAYOUT*", alone=True),
    right("one is refused", "FWD-LAYOUT* VJP-REF*", OneRefused, *MATRIX * 2, decided=False),
    # A mask that is refused is not taken for another refusal.
    wrong(
        "a mask is refused",
        "DBL-CORRECT",
        custom("Picky", OneRefused, forward=_refuses_one_mask),
        *ONE * 2,
        tests="VJP-PURE* DBL-CORRECT*",
        word="raises",
        met_by=("VJP-PURE", "DBL-CORRECT"),
        profile="quick",
    ),
)
