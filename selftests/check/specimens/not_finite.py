"""What is not finite at a number, or loses its digits: which property names it, and what is said of the cause."""

from __future__ import annotations

import torch
from torch.nn import functional

from autograd_conformance.selftests.check.specimens import right, wrong
from autograd_conformance.selftests.check.specimens.functions import column, custom, function, in_single

ONE, ROWS = ("float[...]",), ("float[b,n]",)
LOOKING = "VJP-UNUSED* VJP-LINEAR* VJP-FINITE*"


def _norm(safe):
    """The norm of rows, which has a kink at 0. Backward divides by it, or by what ``safe`` makes of it."""
    return function(lambda x: torch.linalg.vector_norm(x, dim=-1), lambda g, n, x: column(g / safe(n)) * x, "Norm")


def _of_product(g, y, x):
    return (g * y).flip(-1).cumsum(-1).flip(-1) / x


def _of_softplus(g, _, x, beta):
    """Infinity is divided by infinity for large numbers."""
    e = torch.exp(beta * x)
    return g * e / (1 + e), None


def _draws(ctx, x):
    """The mask of backward is that of the last call, and the gradient too large."""
    _draws.mask = (torch.rand_like(x, dtype=torch.float32) < 0.5).to(x.dtype)
    ctx.save_for_backward(x)
    return x * x * _draws.mask


def _rate(x):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    return torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6).to(x.dtype)


def _of_cubes(g, _, x, w):
    """Three large numbers are multiplied."""
    r = _rate(x)
    gw = r * g * w
    return gw - x * (gw * x / r).mean(-1, keepdim=True) * r**3, (g * x * r).sum(0)


def _of_rates(g, _, x, w):
    """Numbers of ordinary size are multiplied."""
    r = _rate(x)
    gw, y = r * g * w, x * r
    return gw - y * (gw * y).mean(-1, keepdim=True), (g * y).sum(0)


def _of_matrices(g, _, x, y):
    """The second gradient is that of a matrix, whose entries are large."""
    matrix = 4 * x[..., :, None] * x[..., None, :]
    return g * y, (matrix @ g[..., None])[..., 0]


def _rows_of_one_size(gradients):
    """Weighted rows of one size, computed in single precision at least."""
    return function(lambda x, w: x * _rate(x) * w, gradients, "CubedNorm")


def _root_mean_square(x):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5)


def _mean_of_first(ctx, x, lengths):
    """The mean of the first entries of each row."""
    kept = (torch.arange(x.shape[1])[None] < lengths[:, None]).to(x.dtype)
    ctx.save_for_backward(kept, lengths)
    return (x * kept).sum(1) / lengths.clamp(min=1).to(x.dtype)


def _divides_by_no_length(ctx, g):
    kept, lengths = ctx.saved_tensors
    return (g / lengths.to(g.dtype))[:, None] * kept, None


def _size(safe):
    """The norm of each row, whose gradient is 0 / 0 in a row of zeros, if ``safe`` does not change that."""
    return function(lambda x: (x * x).sum(-1, keepdim=True).sqrt(), lambda g, y, x: safe(y, g * x), "Norm")


def _by_library(x):
    return torch.linalg.vector_norm(x, dim=-1, keepdim=True)


SPECIMENS = (
    # NaN is one fault and not one of each property.
    wrong(
        "a division by a length of zero",
        "VJP-FD",
        custom("Mean", forward=_mean_of_first, backward=_divides_by_no_length),
        "float[b,t]",
        "int[b](0..t)",
        tests="VJP-FD* VJP-LINEAR* VJP-UNUSED*",
        profile="quick",
        seed=1,
        word="not finite",
        exactly={"kind": "nan"},
        says="backward divides 0 by 0",
        unsaid="nonlinear=True",
    ),
    # NaN is no convention where the reference has a number.
    wrong(
        "NaN where the reference has a number",
        "VJP-FINITE",
        _size(lambda y, gx: gx / y),
        "float[...,n]",
        reference=_by_library,
        tests="VJP-FINITE*",
        profile="quick",
        seed=1,
        exactly={"kind": "nan"},
    ),
    right(
        "zero where the reference has a number",
        "VJP-FINITE*",
        _size(lambda y, gx: torch.where(y == 0, 0, gx / torch.where(y == 0, 1, y))),
        "float[...,n]",
        reference=_by_library,
        decided=False,
    ),
    # Squares of the numbers underflow, but not in the formula of forward.
    wrong(
        "a constant of backward underflows in half precision",
        "VJP-REF/sweep",
        function(
            in_single(lambda x: (x * x + 1e-8).sqrt()),
            lambda g, _, x: g * x / (x * x + 1e-8).sqrt().clamp_min(1e-4),
            "SmoothAbs",
        ),
        *ONE,
        tests="VJP-REF*",
        shrink=True,
        alone=True,
    ),
    # Random numbers of a formula excuse nothing.
    wrong(
        "the mask of another call",
        "VJP-FD",
        custom(forward=_draws, backward=lambda ctx, g: 2.2 * g * ctx.saved_tensors[0] * _draws.mask),
        "float[n]",
        stochastic=True,
        dtypes="float32",
        tests="VJP-FD* VJP-REF*",
        profile="quick",
    ),
    wrong(
        "entries that depend on each other, declared independent",
        "DECL-INDEPENDENT",
        custom(forward=lambda _, x: x - x.mean(), backward=lambda _, g: g - g.mean()),
        "float[b]",
        independent="b",
        tests="FWD-VALUE* FWD-LAYOUT* VJP-FD* VJP-REF* VJP-CHAIN* DECL-INDEPENDENT*",
    ),
    wrong(
        "infinity by infinity",
        "VJP-FD/sweep",
        function(lambda x, beta: functional.softplus(beta * x) / beta, _of_softplus),
        *ONE,
        "float(0.5..2)",
        tests="VJP-FD*",
        shrink=True,
        word="not finite",
        exactly={"follows": "VJP-FINITE"},
        says="overflows",
    ),
    *(
        wrong(
            name,
            "VJP-FINITE",
            f,
            *ROWS,
            dtypes="float64",
            tests=LOOKING,
            shrink=True,
            says="the entry is 0 in float64",
            # Another shape only lacks the number.
            exactly={"right_with": None},
        )
        for name, f in (
            ("a product divided by its factors", function(lambda x: x.cumprod(-1), _of_product)),
            ("a direction divided by its norm", _norm(lambda n: n)),
        )
    ),
    # The gradient at 0 is 0, as that of built-in operations.
    right(
        "a direction at a kink",
        LOOKING,
        _norm(lambda n: n.clamp_min(torch.finfo(n.dtype).tiny)),
        *ROWS,
        dtypes="float64",
        decided=False,
    ),
    wrong(
        "three large numbers",
        "VJP-FINITE/far",
        _rows_of_one_size(_of_cubes),
        "float[n,m]",
        "float[m]",
        word="not finite",
        says="((0, -128.0),)), Tensor((1,), dtype='float16', requires_grad=True, specials=((0, -128.0)",
    ),
    # With cotangents other than ones it is NaN, in the first backward pass as in others.
    wrong(
        "a product of matrices",
        "VJP-FINITE/far",
        function(lambda x, y: x * y, _of_matrices, "Matrices"),
        "float[n,4]",
        "float[n,4]",
        word="not finite",
        exactly={"follows": None},
    ),
    right(
        "rates of ordinary size",
        "VJP-FINITE/far",
        _rows_of_one_size(_of_rates),
        "float[n,m]",
        "float[m]",
        decided=False,
    ),
    right(
        "numbers that overflow inside",
        "FWD-VALUE* VJP-REF*",
        _root_mean_square,
        "float[n]",
        dtypes=["float64", "float32"],
        decided=False,
    ),
)
