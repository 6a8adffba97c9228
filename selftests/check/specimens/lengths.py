"""Tensors that are longer than a block of a kernel: what is wrong there alone, and what short ones show as well."""

from __future__ import annotations

import torch

from autograd_conformance.selftests.check.specimens import right, wrong
from autograd_conformance.selftests.check.specimens.functions import custom, function

ONE, MATRIX = ("float[n]",), ("float[n,m]",)


def blocked(block, along=-1, *, forget=False, shift=False, limit=None):
    """The sum of squares along a dimension, whose backward works in blocks; it may be wrong in the last one."""

    def gradients(g, _, x):
        x, gx = x.movedim(along, -1), torch.zeros_like(x.movedim(along, -1))
        length = x.shape[-1]
        for start in range(0, length, block):
            end = min(start + block, length)
            partial = end - start < block and start > 0
            if (forget and partial) or (limit is not None and start >= limit):
                continue
            taken = slice(length - block, length) if shift and partial else slice(start, end)
            gx[..., start:end] = 2 * x[..., taken][..., : end - start]
        return (gx * g.unsqueeze(-1)).movedim(-1, along)

    return function(lambda x: (x * x).sum(along), gradients, "Blocked")


WRONG = {
    "the last block of 64 is forgotten": blocked(64, forget=True),
    "the last block of 128 is read elsewhere": blocked(128, shift=True),
    "the last block of 256 is forgotten, along the first dimension": blocked(256, 0, forget=True),
    "nothing beyond 1024": blocked(32, limit=1024),
    "nothing beyond 50": blocked(50, limit=50),
}


def _from_each_on(x, dim):
    """A sum from each entry on."""
    return x.flip(dim).cumsum(dim).flip(dim)


def _wrong_for_even_lengths(g, _y, _x, dim):
    """Wrong in the last dimension if that is even and longer than 2."""
    wrong = dim == -1 and g.shape[-1] % 2 == 0 and g.shape[-1] > 2
    return g.cumsum(dim) * (1.01 if wrong else 1.0), None


def _cut(x):
    return (x * x)[..., :1000].sum(-1)


# What raises for long tensors alone.

TOO_LONG = ValueError("too many rows")
MISTAKE = NameError("name 'rows' is not defined")
PRODUCT = ("float[n,m]", "float[m]")


def _raising(*, forward=None, backward=None):
    """A product of rows whose forward or backward raises this for more than 1000 rows."""

    def run(ctx, x, w):
        if forward is not None and len(x) > 1000:
            raise forward
        ctx.save_for_backward(x, w)
        return x * w

    def gradients(ctx, g):
        x, w = ctx.saved_tensors
        if backward is not None and len(x) > 1000:
            raise backward
        return g * w, (g * x).sum(0)

    return custom("Raising", forward=run, backward=gradients)


RAISES = {
    "backward raises for long tensors": (
        _raising(backward=TOO_LONG),
        "forward accepted this call, so backward must not raise",
    ),
    "a mistake in forward for long tensors": (_raising(forward=MISTAKE), "a mistake in the code, not a refusal"),
}

SPECIMENS = (
    *(
        wrong(
            name,
            "VJP-FD/long",
            f,
            *MATRIX,
            tests="VJP-FD* VJP-REF* VJP-CHAIN*",
            word="wrong",
            alone=True,
            profile="quick",
            says=("short tensors are right, and this length is not", "the worst entry is argument 0"),
        )
        for name, f in WRONG.items()
    ),
    *(
        wrong(name, "VJP-FD", f, *arguments, tests="VJP-FD VJP-FD/long", shrink=True, unsaid="short tensors are right")
        for name, f, arguments in (
            ("even lengths", function(_from_each_on, _wrong_for_even_lengths), (*MATRIX, "-1")),
            (
                "a number that few entries are near to",
                function(lambda x: x * x, lambda g, _, x: g * torch.where((x - 0.3).abs() < 1e-2, 3 * x, 2 * x)),
                ONE,
            ),
        )
    ),
    wrong(
        "a wrong formula, which is one fault",
        "VJP-FD",
        function(lambda x: (x * x).sum(-1), lambda g, _, x: 0.5 * g.unsqueeze(-1) * x),
        *MATRIX,
        tests="VJP-FD*",
        met_by=("VJP-FD/long",),
        profile="quick",
    ),
    wrong(
        "a reference of long tensors",
        "FWD-VALUE/long",
        _cut,
        *MATRIX,
        reference=lambda x: (x * x).sum(-1),
        tests="FWD-VALUE FWD-VALUE/long",
        alone=True,
        profile="quick",
    ),
    *(
        wrong(
            name,
            "VJP-FD/long",
            f,
            *PRODUCT,
            tests="FWD-EMPTY* VJP-FD* VJP-REF*",
            word="raises",
            alone=True,
            profile="quick",
            says=(said, "(1025, 2)"),
        )
        for name, (f, said) in RAISES.items()
    ),
    wrong(
        "a surrogate that raises for long tensors",
        "VJP-REF/long",
        _raising(backward=TOO_LONG),
        *PRODUCT,
        surrogate=True,
        tests="VJP-REF*",
        word="raises",
        alone=True,
        profile="quick",
    ),
    right("a surrogate of long tensors", "VJP-REF*", _raising(), *PRODUCT, surrogate=True, decided=False),
    right("forward refuses long tensors", "VJP-FD* VJP-REF*", _raising(forward=TOO_LONG), *PRODUCT, decided=False),
)
