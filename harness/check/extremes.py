"""What is promised of gradients at large and small values, where only the code of a Function is known.

A gradient must be finite where

* the outputs are finite, and right: where an intermediate value overflows, the formula of forward has lost its digits;
* the slope in double precision, by finite differences, fits the dtype;
* the same formula in built-in operations, if it is known, has a finite gradient too.

The most precise dtype has nothing to compare it with. There, values are such that their powers do not overflow.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from autograd_conformance.harness.check.formula import gradients_of_formula
from autograd_conformance.harness.checking.example import Example
from autograd_conformance.harness.checking.policy import Unexpected
from autograd_conformance.reference.rounding import PRECISION

# The most non-finite entries of a gradient to look at.
_PLACES = 4
# The power of a number that the most precise dtype has to hold, and that of its inverse.
_POWER = 8
# The share by which a right output may be off, in any dtype.
_OFF = 0.25


def comparable(example: Example) -> bool:
    """Whether the outputs of a call say what its gradients should be."""
    dtype = example.call.dtype
    precise = PRECISION[dtype].unit <= PRECISION[example.function.computes_in].unit
    if precise and not all(map(_in_range, example.values, [dtype] * len(example.values))):
        return False
    rows = zip(example.outputs(), example.expected.outputs, strict=True)
    with np.errstate(all="ignore"):
        return all(bool(np.all(right(example.implementation.numpy(y), e.value, dtype))) for y, e in rows)


def right(values: Any, expected: Any, dtype: str) -> Any:
    """Which values in a dtype are not far from those in double precision."""
    if expected.dtype.kind not in "fc":
        return np.ones(expected.shape, bool)
    return np.abs(values - expected) <= _OFF * np.abs(expected) + 2 * PRECISION[dtype].subnormal


def _in_range(values: Any, dtype: str) -> bool:
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "fc":
        return True
    largest = 2.0 ** (math.frexp(PRECISION[dtype].largest)[1] // _POWER)
    size = np.abs(values)
    return bool(np.all((size == 0) | ((size >= 1 / largest) & (size <= largest))))


def unexpected(example: Example, number: int, array: Any) -> list[Unexpected]:
    """The entries of a gradient that are not finite, but should be."""
    # A surrogate gradient without a soft function must only not be NaN.
    unknown = example.function.surrogate and example.function.soft is None
    places = list(np.argwhere(np.isnan(array) if unknown else ~np.isfinite(array)))[:_PLACES]
    formula = gradients_of_formula(example) if places else None
    found = []
    for index in (tuple(int(i) for i in place) for place in places):
        if formula is not None and formula[number] is not None and not np.isfinite(formula[number][index]):
            continue
        slope = 0.0 if unknown else _slope(example, number, index)
        if slope is not None and abs(slope) < PRECISION[example.call.dtype].largest / 4:
            found.append(Unexpected(index, f"about {slope:.3g}", _hint(example, number, index)))
    return found


def _hint(example: Example, number: int, index: tuple[int, ...]) -> str:
    value = example.values[example.slots[number]][index]
    where = f"the entry is {value:.6g} in {example.call.tensors[number].dtype}"
    return f"{where}, and the outputs are finite here; look for an overflow or a 0 / 0 inside backward"


def _slope(example: Example, number: int, index: tuple[int, ...]) -> float | None:
    """The slope of <cotangents, outputs> along one entry in double precision; None if it is unclear or not finite.

    Differences to both sides, with two steps each, must agree, or come closer as the step does.
    """
    compute, slot = example.function.soft or example.function.forward, example.slots[number]
    arguments = example.expected.reference_arguments(exact=True)
    x = np.array(arguments[slot])
    if np.iscomplexobj(x):
        return None
    size = abs(float(x[index])) or 1.0
    found = []
    with np.errstate(all="ignore"):
        for step in (2.0**-12 * size, -(2.0**-12) * size, 2.0**-16 * size, -(2.0**-16) * size):
            ends = []
            for moved in (step, 0.0):
                other = x.copy()
                other[index] += moved
                outputs = compute(*(other if n == slot else a for n, a in enumerate(arguments)))
                pairs = zip(example.expected.cotangents, outputs, strict=True)
                ends.append(sum(float(np.sum(np.real(np.conj(g) * y))) for g, y in pairs if g is not None))
            found.append((ends[0] - ends[1]) / step)
    if not np.all(np.isfinite(found)):
        return None
    spread, mean = max(found) - min(found), sum(found) / len(found)
    coarse, fine = abs(found[0] - found[1]), abs(found[2] - found[3])
    return mean if spread <= 0.05 * abs(mean) or fine <= coarse / 8 else None
