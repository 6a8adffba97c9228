"""Systematic errors among rounding errors: those of rounding average out over many entries, those of a fault do not.

The errors of many calls are averaged: as a factor (the regression of the errors on the expected values, through the
origin) and as a bias (their mean). The calls are independent samples, so the spread between them gives the standard
error, whatever rounding errors inside a call have in common.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from autograd_conformance.reference.rounding import Precision

# An average counts from so many standard errors on. With the errors of 32 calls, chance exceeds it about once in
# a million times, and only for a Function that is off by all that is allowed.
SIGMAS = 6.0
CALLS = 32

# The systematic error that a right Function may have, in units of roundoff: an operation that truncates is 0.7 units
# off on average, and each rounded constant up to one.
ALLOWED = 4.0
# Or this share of the effect of moving all inputs towards zero by one unit.
_OF_MOVED = 1.3

# Below, each call shows too little for a standard error.
_LEAST_CALLS = 24
# Axes of which each index is looked at.
_LONGEST = 8
# Errors this many times above the median come from choices that rounding flips, not from rounding itself.
_OUTLIER = 6.0


@dataclass(frozen=True)
class Systematic:
    """A systematic error of some entries, relative to them or (a bias) to the typical entry, and its limit."""

    where: str
    bias: bool
    value: float
    limit: float
    # The part of the limit that does not come from the spread of the errors.
    least: float

    @property
    def ratio(self) -> float:
        """The error in units of its limit; rounding may explain up to 1."""
        return abs(self.value) / self.limit

    def excusing(self, moved: float) -> Systematic:
        """The same error with a larger limit, if moving the inputs by one unit has the effect ``moved``."""
        more = max(0.0, _OF_MOVED * abs(moved) - self.least)
        return replace(self, limit=self.limit + more)

    def beside(self, other: float) -> Systematic:
        """The same error with a limit that is larger by that of ``other`` operations."""
        return replace(self, limit=self.limit + abs(other))


def systematic(got: Any, expected: Any, precision: Precision, *, conditioning: float = 1.0) -> Iterator[Systematic]:
    """The systematic errors of real results, whose first axis counts calls: of all entries, and of parts of them."""
    scale = typical(expected)
    if scale <= 16 * precision.normal:
        return
    size = np.maximum(np.abs(expected), scale)
    with np.errstate(all="ignore"):
        share, error = expected / size, (got - expected) / size
    usable = np.isfinite(error)
    for where, part in _parts(expected):
        for bias, along in ((False, share), (True, np.ones_like(share))):
            found = _average(error, along, usable & part, precision.unit)
            if found is not None:
                value, deviation, squares = found
                least = conditioning * ALLOWED * precision.unit
                yield Systematic(where, bias, value, least + SIGMAS * deviation + 4 * squares, least)


def typical(expected: Any) -> float:
    """The median of the sizes of numbers other than zero; 0 if there are none."""
    sizes = np.abs(expected)[np.isfinite(expected) & (expected != 0)]
    return float(np.median(sizes)) if sizes.size else 0.0


def _parts(expected: Any) -> Iterator[tuple[str, Any]]:
    """All entries, those of each sign, and those of each index along each axis."""
    everything = np.ones(expected.shape, bool)
    yield "everywhere", everything
    yield "where positive", expected > 0
    yield "where negative", expected < 0
    for axis, side in enumerate(expected.shape[1:]):
        for index in range(side if 1 < side <= _LONGEST else 0):
            mask = np.zeros(expected.shape, bool)
            mask[(slice(None),) * (axis + 1) + (index,)] = True
            yield f"at index {index} of dimension {axis}", mask


def _average(error: Any, along: Any, mask: Any, unit: float) -> tuple[float, float, float] | None:
    """The average error, its standard error, and the mean square of the others; None if too little is known."""
    clear = mask & (np.abs(along) > 0.5)
    if np.count_nonzero(clear.reshape(len(clear), -1).any(1)) < _LEAST_CALLS:
        return None
    middle = float(np.median(error[clear] / along[clear]))
    rest = np.where(mask, error - middle * along, 0.0)
    largest = np.maximum(_OUTLIER * np.median(np.abs(rest[clear])), unit / 4)
    kept = mask & (np.abs(rest) <= largest)
    weights, errors = np.where(kept, along, 0.0), np.where(kept, error, 0.0)
    total = float(np.sum(weights**2))
    # Entries far below the typical one would show its rounding errors magnified.
    if total < 0.25 * np.count_nonzero(kept) or np.count_nonzero(kept) < 0.5 * np.count_nonzero(mask):
        return None
    value = float(np.sum(weights * errors)) / total
    rest = errors - value * weights
    of_calls = (weights * rest).reshape(len(rest), -1).sum(1)
    calls = int(np.count_nonzero(kept.reshape(len(kept), -1).any(1)))
    deviation = math.sqrt(float(np.sum(of_calls**2)) * calls / max(calls - 1, 1)) / total
    return value, deviation, float(np.mean(rest[kept] ** 2))
