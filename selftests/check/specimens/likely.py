"""The likely cause of a wrong gradient, such as a factor or equal indices, is said only where it explains it."""

from __future__ import annotations

import torch
from torch.nn import functional

from autograd_conformance.selftests.check.specimens import right, wrong
from autograd_conformance.selftests.check.specimens.functions import custom, function

ONE, MATRIX = ("float[n]",), ("float[n,m]",)
INDEXED = ("float[n]", "int[b](0..n-1)")
COMPLEX = ("number[n]", "number[n]")


def _rows(gradient):
    """x[index] with that gradient of x."""
    return function(lambda x, index: x[index], lambda g, _, x, index: (gradient(g.new_zeros(len(x)), index, g), None))


def _product(gradients):
    return function(lambda x, y: x * y, lambda g, _, x, y: gradients(g, x, y))


def _square(cotangent):
    """The square, with that cotangent instead of its own."""
    return function(lambda x: x * x, lambda g, _, x: 2 * x * cotangent(g, x))


EQUAL = "right where all entries of argument 1 (index) are different, and wrong where some are equal"
ADDING = "index_add_, scatter_add_, or accumulate=True"
MEAN = "the length of a dimension (a mean for a sum, or the other way round)"
CONSTANT = "right where all entries of grad_output are equal, and wrong where they are not: backward "
CONJUGATED = (
    "right in real numbers: a factor of backward is not conjugated (g * x.conj() for x * y), or its real part, or a "
    "factor of 2, is missing or too many"
)

# The Function, its arguments, and all that is said of the likely cause.
PROBED = {
    "of equal indices one is kept": (
        _rows(lambda zeros, index, g: zeros.index_put((index,), g)),
        INDEXED,
        f"{EQUAL}: one gradient is kept, where all have to be added: {ADDING}",
    ),
    "products of numbers of one index, without the other factors": (
        function(
            lambda x, index: x.new_ones(4).scatter_reduce(0, index, x, "prod"),
            lambda g, _y, _x, index: (g[index], None),
        ),
        ("float[n]", "int[n](0..3)"),
        EQUAL,
    ),
    "indices added and doubled": (
        _rows(lambda zeros, index, g: zeros.index_add(0, index, 2 * g)),
        INDEXED,
        "right would be the gradient of argument 0 (x) times 0.5",
    ),
    "one not conjugated": (_product(lambda g, x, y: (g * y, g * x.conj())), COMPLEX, CONJUGATED),
    "half of one": (
        _product(lambda g, x, y: (g * y.conj(), g * x.conj() / 2)),
        COMPLEX,
        "right would be the gradient of argument 1 (y) times 2",
    ),
    "a mean for a sum": (
        function(lambda x, w: (x * w).sum(0), lambda g, _, x, w: (g * w.expand_as(x), (g * x).mean(0))),
        ("float[n,m]", "float[m]"),
        f"right would be the gradient of argument 1 (w) times {MEAN}",
    ),
    "the first cotangent for all": (
        _square(lambda g, _: g[0] if len(g) else 1),
        ONE,
        f"{CONSTANT}uses one entry of it for all",
    ),
    "the mean cotangent for all": (
        _square(lambda g, _: g.mean()),
        ONE,
        f"{CONSTANT}uses the mean of grad_output for all",
    ),
    "cotangents backwards": (
        _square(lambda g, _: g.flip(0)),
        ONE,
        f"{CONSTANT}puts its entries in each other's places, or adds them up",
    ),
    "a sign is lost, which no probe shows": (_square(lambda g, x: x.sign() * g), ONE, None),
}


def _targets(factor=1):
    """softplus(x) - x t. There is no gradient for t."""
    return function(
        lambda x, t: functional.softplus(x) - x * t, lambda g, _, x, t: (factor * g * (x.sigmoid() - t), None)
    )


def _shift(ctx, x, t, b):
    ctx.save_for_backward(x, t)
    return x * t + b


def _by_the_next_flag(ctx, g):
    x, t = ctx.saved_tensors
    need = (*ctx.needs_input_grad[1:], False)
    return g * t if need[0] else None, g * x if need[1] else None, g if need[2] else None


def _kept_seldom(_, x):
    """One number of twenty is kept."""
    return x * (torch.rand_like(x) > 0.95)


TARGETS = ("float[n]", "float[n] unit")
SPECIMENS = (
    *(
        wrong(name, "VJP-FD", f, *arguments, profile="quick", shrink=True, exactly={"likely": words})
        for name, (f, arguments, words) in PROBED.items()
    ),
    # Other seeds seldom show it.
    wrong(
        "another draw",
        "VJP-FD",
        custom(forward=_kept_seldom, backward=_kept_seldom),
        *ONE,
        stochastic=True,
        tests="VJP-FD*",
        shrink=True,
        says="backward seems to use another draw than forward",
    ),
    wrong(
        "right for square matrices alone, which is one fault of several shapes",
        "VJP-FD",
        function(lambda x: x * x, lambda g, _, x: 2 * g * x * (1.0 + 0.5 * (x.shape[0] - x.shape[1]))),
        *MATRIX,
        tests="VJP-FD*",
        profile="quick",
    ),
    wrong(
        "no gradient",
        "VJP-FD",
        _targets(),
        *TARGETS,
        tests="VJP-FD*",
        profile="quick",
        shrink=True,
        says=(
            "backward returned None for argument 1 (t)",
            "if it is meant to have no gradient, declare it constant: 'float[n] unit constant'",
        ),
        unsaid="surrogate",
    ),
    wrong(
        "no gradient, and the other one is wrong",
        "VJP-FD",
        _targets(2),
        *TARGETS,
        tests="VJP-FD*",
        profile="quick",
        shrink=True,
        unsaid="returned None",
    ),
    wrong(
        "each gradient by the flag of the next argument",
        "VJP-FD",
        custom(forward=_shift, backward=_by_the_next_flag),
        *ONE * 3,
        profile="quick",
        shrink=True,
        says="backward returned None for argument 2 (b)",
    ),
    wrong(
        "a factor of a product of matrices not conjugated",
        "VJP-FD",
        function(lambda x, y: x @ y, lambda g, _, x, y: (g @ y.mH, x.mT @ g)),
        "complex[n,m]",
        "complex[m,k]",
        profile="quick",
        shrink=True,
        says="conjugated",
    ),
    right(
        "None for a gradient of zero",
        "VJP-FD*",
        function(lambda x, t: x + t.sign(), lambda g, _y, _x, t: (g.sum_to_size(t.shape), None)),
        "float[n]",
        "float[n] nonzero",
        decided=False,
    ),
    right("None for a constant", "VJP-FD*", _targets(), "float[n]", "float[n] unit constant", decided=False),
)
