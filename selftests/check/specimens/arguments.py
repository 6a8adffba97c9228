"""What declarations say of arguments: constant, changed in place."""

from __future__ import annotations

import torch

from autograd_conformance.harness.check import Declaration
from autograd_conformance.selftests.check.specimens import right, wrong
from autograd_conformance.selftests.check.specimens.functions import custom, function

ONE = ("float[n]",)
CONSTANT = (*ONE, "float[n] constant")

multiplied = function(lambda x, w: x * w, lambda g, _, x, w: (g * w, g * x))
of_first = function(lambda x, w: x * w, lambda g, _y, _x, w: (g * w, None))


class Negative(torch.autograd.Function):
    """-x in place, without mark_dirty."""

    @staticmethod
    def forward(_, x):
        return x.neg_()

    @staticmethod
    def backward(_, g):
        return -g


negative = Declaration(Negative, *ONE, inplace=(0,))


def _unnoticed(_, x):
    """-x in place, behind autograd's back."""
    x.data.neg_()
    return x


SPECIMENS = (
    *(
        right(name, "VJP-NONE* VJP-FD* VJP-NEEDS*", f, *CONSTANT, decided=False)
        for name, f in (("a gradient of a constant", multiplied), ("no gradient of a constant", of_first))
    ),
    wrong(
        "a gradient of a number", "VJP-NONE",
        function(lambda x, k: x * k, lambda g, _y, _x, k: (g * k, g.new_ones(()))), *ONE, "2.0",
        tests="VJP-NONE*", word="raises", alone=True, shrink=True,
    ),
    wrong(
        "an input that does not come back", "FWD-PURE", negative, tests="FWD-PURE*", word="mutates", alone=True,
        shrink=True,
        exactly={
            "got": "x was changed in place, but what forward returns is not x",
            "hint": "call ctx.mark_dirty(x) in forward, and return x",
        },
    ),
    wrong(
        "a change that autograd does not notice", "FWD-PURE", custom(forward=_unnoticed, backward=Negative.backward),
        *ONE, inplace=(0,), tests="FWD-PURE*", word="mutates", alone=True, shrink=True, exactly={"guess": None},
        says="a change of x through .data, detach() or NumPy goes unnoticed",
    ),
)  # fmt: skip
