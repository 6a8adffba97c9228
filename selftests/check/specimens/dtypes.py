"""Functions of some dtypes alone, whose gradient is verified in those, or not at all."""

from __future__ import annotations

import torch
from torch.autograd import Function

from autograd_conformance.harness.check import Declaration
from autograd_conformance.selftests.check.specimens import right, whole, wrong
from autograd_conformance.selftests.check.specimens.functions import HALF, custom, function


class Single(Function):
    """x.sin() * w, in single precision only. Right."""

    @staticmethod
    def forward(ctx, x, w):
        if x.dtype != torch.float32:
            raise TypeError("float32 alone")
        ctx.save_for_backward(x, w)
        return x.sin() * w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * x.cos() * w, g * x.sin()


class SingleWrong(Single):
    """Both gradients are plainly wrong."""

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return 3 * g * x.cos() * w, -g * x.sin()


class _CubeSlope(Function):
    """3 * x**2 * g, with a wrong derivative."""

    @staticmethod
    def forward(ctx, x, g):
        ctx.save_for_backward(x, g)
        return 3 * x * x * g

    @staticmethod
    def backward(ctx, h):
        x, g = ctx.saved_tensors
        return 5 * x * g * h, 3 * x * x * h


class SingleTwiceWrong(Function):
    """x**3 in single precision only: its second derivative is wrong."""

    @staticmethod
    def forward(ctx, x):
        if x.dtype != torch.float32:
            raise TypeError("float32 alone")
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        return _CubeSlope.apply(ctx.saved_tensors[0], g)


class SquareOfSingles(Function):
    """z * z of complex numbers in single precision only, without the conjugate in backward."""

    @staticmethod
    def forward(ctx, z):
        if z.dtype != torch.complex64:
            raise TypeError("complex64 alone")
        ctx.save_for_backward(z)
        return z * z

    @staticmethod
    def backward(ctx, g):
        return 2 * g * ctx.saved_tensors[0]


class Half(Function):
    """x.sin() in half precision only. Right, but nothing shows that."""

    @staticmethod
    def forward(ctx, x):
        if x.dtype not in (torch.float16, torch.bfloat16):
            raise TypeError("half precision alone")
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0].cos()


class Rough(Function):
    """Adds waves that are shorter than every step, so that finite differences never settle."""

    @staticmethod
    def forward(_, x):
        return x + 1e-3 * torch.sin(1e13 * x)

    @staticmethod
    def backward(_, g):
        return 5 * g


class Scaled(Function):
    """z * w of complex and real numbers. Right."""

    @staticmethod
    def forward(ctx, z, w):
        ctx.save_for_backward(z, w)
        return z * w

    @staticmethod
    def backward(ctx, g):
        z, w = ctx.saved_tensors
        gw = g * z.conj()
        return g * w, gw.real if gw.is_complex() else gw


class ScaledWrong(Scaled):
    """Twice the gradient, for complex numbers only."""

    @staticmethod
    def backward(ctx, g):
        gz, gw = Scaled.backward(ctx, g)
        return gz * (2 if gz.is_complex() else 1), gw


single = Declaration(Single, "float[...]", "float[...]")
half = Declaration(Half, "float[n]")
half_compared = Declaration(Half, "float[n]", reference=torch.sin, name="HalfCompared")

DECISIVE = "FWD-VALUE FWD-LAYOUT FWD-EMPTY FWD-DTYPE VJP-REF VJP-FD VJP-CHAIN DBL-CORRECT"


def _wrong_in(dtype):
    """A product with a gradient that is wrong in one dtype."""
    return function(
        lambda x, w: x * w, lambda g, _, x, w: (g * w * (1.75 if x.dtype == dtype else 1.0), g * x), "Wrong"
    )


def _kept(ctx, x, _):
    kept = x > 0
    ctx.save_for_backward(kept)
    ctx.mark_non_differentiable(kept)
    return x * kept, kept


# A mask is returned, and a ragged list is given.
kept = Declaration(
    custom("Kept", forward=_kept, backward=lambda ctx, g, _: (g * ctx.saved_tensors[0], None)),
    "float[...]",
    "[[1, 2], [3]]",
)

SPECIMENS = (
    *(
        wrong(
            f"a product that is wrong in {name}",
            heads,
            _wrong_in(HALF[name]),
            "float[n]",
            "float[n]",
            tests="VJP-REF*",
            says=f"dtype='{name}'",
            unsaid=("dtype='float32'", f"dtype='{other}'"),
        )
        for name, other, heads in (
            ("float16", "bfloat16", "VJP-REF VJP-REF/averages VJP-REF/range"),
            ("bfloat16", "float16", "VJP-REF VJP-REF/averages"),
        )
    ),
    whole(kept, "quick", passing=42),
    wrong("single", "VJP-FD", SingleWrong, "float[n]", "float[n]", word="wrong"),
    wrong("single, twice", "DBL-CORRECT", SingleTwiceWrong, "float[n]", word="wrong"),
    wrong("squares of single numbers", "VJP-FD", SquareOfSingles, "complex[n]", word="wrong"),
    wrong("numbers by real numbers", "VJP-FD", ScaledWrong, "number[n]", "float[n]", word="wrong"),
    wrong("complex by real numbers", "VJP-FD", ScaledWrong, "complex[n]", "float[n]", word="wrong"),
    right("single, right", DECISIVE, single),
    right("numbers by real numbers, right", DECISIVE, Scaled, "number[...]", "float[...]"),
    right("complex by real numbers, right", DECISIVE, Scaled, "complex[n,m]", "float[m]"),
    right("real numbers by numbers", DECISIVE, torch.mul, "float[~]", "number[~]"),
    right("complex numbers of two", DECISIVE, torch.complex, "float[n]", "float[n]"),
)
