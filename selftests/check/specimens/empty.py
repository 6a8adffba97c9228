"""Calls whose tensors lack elements: a sum of nothing is zero, and an early return is no excuse."""

from __future__ import annotations

from dataclasses import replace

import torch

from autograd_conformance.harness.check.explain.hints import NOT_ZERO
from autograd_conformance.selftests.check.specimens import right, seeded, wrong
from autograd_conformance.selftests.check.specimens.functions import custom, function

TWO, MATRIX = ("float[n,m]", "float[m]"), ("float[n,m]",)


def _weighted(of_weights, name="Made"):
    """x * w with that gradient of w."""
    return function(lambda x, w: x * w, lambda g, _, x, w: (g * w, of_weights(g * x)), name)


def _sum(each):
    return each.sum(0)


def _unwritten(each):
    """Other numbers than zero where there are no rows, as new memory may have."""
    return each.sum(0) if len(each) else torch.full_like(each.sum(0), 3.0)


def _doubled(gradient):
    return function(lambda x: x + x, lambda g, *_: gradient(g))


def flat(g):
    """There is no answer for the length of nothing."""
    return 2 * g.reshape(g.shape[0], -1).reshape(g.shape)


ASKED = "FWD-LAYOUT* FWD-EMPTY* VJP-REF* VJP-FD* VJP-REPEAT* ENV-RANDOM* VJP-COTANGENT-LAYOUT*"
SIZES = {"n": (0, 1, 2), "m": (1, 3)}
# The mean has to be a sum: NaN follows from the wrong slope.
_MEAN = wrong(
    "a mean of nothing",
    "FWD-EMPTY",
    _weighted(lambda each: each.mean(0), "Mean"),
    *TWO,
    shrink=True,
    exactly={"kind": "nan", "follows": "VJP-FD"},
)

SPECIMENS = (
    *seeded(
        (
            wrong(
                name,
                "FWD-EMPTY",
                _weighted(of_weights),
                *TWO,
                word=word,
                exactly={"follows": "VJP-FD", "guess": NOT_ZERO},
                says="(0",
            )
            for name, of_weights, word in (
                ("a mean times a length", lambda each: each.mean(0) * len(each), "not finite"),
                ("not written", _unwritten, "wrong"),
            )
        ),
        2,
    ),
    right("a sum of nothing", "FWD-EMPTY* VJP-FD* VJP-FINITE*", _weighted(_sum), *TWO, decided=False),
    # What is declared to be no linear backward may give anything.
    right("not written, nonlinear", "FWD-EMPTY", _weighted(_unwritten), *TWO, nonlinear=True, decided=False),
    _MEAN,
    wrong(
        "another shape",
        "FWD-EMPTY",
        custom(
            forward=lambda _, x: x - (x.mean() if x.numel() else 0.0),
            backward=lambda _, g: g - g.mean() if g.numel() else g.new_zeros(1),
        ),
        "float[n]",
        tests="FWD-EMPTY*",
        shrink=True,
        alone=True,
    ),
    replace(
        _MEAN, name="a mean of nothing at special values", tests=("VJP-FINITE",), heads=("VJP-FINITE",),
        profile="quick", seed=3,
    ),
    # What raises for empty tensors hides no other fault.
    wrong(
        "raises, and has another factor",
        "VJP-FD FWD-EMPTY",
        _doubled(lambda g: 1.5 * flat(g)),
        *MATRIX,
        tests="FWD-EMPTY* VJP-FD* VJP-CHAIN*",
        word="wrong, edge",
        profile="quick",
    ),
    wrong(
        "raises",
        "FWD-EMPTY",
        _doubled(flat),
        *MATRIX,
        sizes=SIZES,
        tests=ASKED,
        word="edge",
        alone=True,
        profile="quick",
        says="for tensors without elements alone; only where dimension -2 of argument 0 (x) is 0; return early",
    ),
    right("a whole shape", ASKED, _doubled(lambda g: 2 * g.reshape(*g.shape)), *MATRIX, sizes=SIZES, decided=False),
    wrong(
        "raises for a layout",
        "VJP-COTANGENT-LAYOUT",
        _doubled(lambda g: 2 * g.view(g.numel()).reshape(g.shape)),
        *MATRIX,
        sizes=SIZES,
        tests="FWD-EMPTY* VJP-COTANGENT-LAYOUT*",
        alone=True,
        profile="quick",
    ),
)  # fmt: skip
