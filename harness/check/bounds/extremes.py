"""What is promised of gradients at large and small values, where only the code of a Function is known.

A gradient must be finite where

* the outputs are finite, and right: where an intermediate value overflows, the formula of forward has lost its digits;
* the slope in double precision, by finite differences, fits the dtype;
* the same formula in built-in operations has a finite gradient too; if it is not known, no gradient of the call is too
  large for the dtype.

The most precise dtype has nothing else to compare it with. There, the formula must be known, or values are such that
their powers do not overflow; else such a call is counted as not judged.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from autograd_conformance.harness.check.bounds.builtin_autograd import gradients_of_formula
from autograd_conformance.harness.check.bounds.sweeping import Sweep, swept, with_numbers
from autograd_conformance.harness.check.declaration.declaration import Own
from autograd_conformance.harness.check.oracle.tolerances import BETTER, NOISE_OF_EXTREMES, NOTHING, OFF, OFF_SLOPE
from autograd_conformance.harness.testing.example import Example
from autograd_conformance.harness.testing.policy import Unexpected
from autograd_conformance.reference.rounding import PRECISION

# The most non-finite entries of a gradient to look at, and the most ranges of numbers.
_PLACES, _RANGES = 4, 16
# The power of a number that the most precise dtype has to hold, and that of its inverse.
_POWER = 8


def comparable(example: Example) -> bool | None:
    """Whether the outputs of a call say what its gradients should be; None if nothing is known of such values."""
    dtype = example.call.dtype
    precise = PRECISION[dtype].unit <= PRECISION[example.function.computes_in].unit
    in_range = all(map(_in_range, example.values, [dtype] * len(example.values)))
    if precise and not in_range and gradients_of_formula(example) is None:
        return None
    rows = zip(example.outputs(), example.expected.outputs, strict=True)
    with np.errstate(all="ignore"):
        return all(bool(np.all(right(example.implementation.numpy(y), e.value, dtype))) for y, e in rows)


def right(values: Any, expected: Any, dtype: str) -> Any:
    """Which values in a dtype are not far from those in double precision."""
    if expected.dtype.kind not in "fc":
        return np.ones(expected.shape, bool)
    precision, size = PRECISION[dtype], np.abs(expected)
    # What is far below the subnormal numbers may be 0 because a divisor overflowed.
    near = (size == 0) | (size >= precision.subnormal * precision.unit)
    return np.abs(values - expected) <= OFF * size + np.where(near, 2 * precision.subnormal, 0.0)


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
    if places and formula is None and _some_overflow(example):
        return []
    found = []
    for index in (tuple(int(i) for i in place) for place in places):
        if formula is not None and formula[number] is not None and not np.isfinite(formula[number][index]):
            continue
        slope = _Slope(0.0, 0.0) if unknown else _slope(example, number, index)
        if slope is None and formula is not None and (np.isnan(array[index]) or _is_compared(example)):
            # At a kink too: no convention is NaN where that of built-in operations is a number.
            slope = _Slope(float(abs(formula[number][index])), 0.0)
        if slope is not None and abs(slope.value) < PRECISION[example.call.dtype].largest / 4:
            found.append(Unexpected(index, str(slope), _hint(example, number, index)))
    return found


def _some_overflow(example: Example) -> bool:
    """Whether a gradient in double precision is too large for the dtype: on the way to others it may overflow, too.

    A NaN is not too large: it excuses nothing.
    """
    largest = PRECISION[example.call.dtype].largest / 4
    claims = example.expected.vjp(example.expected.cotangents, exact=True)
    return any(bool(np.any(np.abs(g) >= largest)) for g in claims if g is not None)


def _is_compared(example: Example) -> bool:
    """Whether the formula is that of a reference."""
    assert isinstance(example.function, Own)
    return example.function.declaration.reference is not None and not example.function.surrogate


def lost(example: Example) -> list[float]:
    """Numbers at which a gradient is not finite, but should be, out of a call of every number."""
    found = swept(example)
    with np.errstate(all="ignore"):
        wrong = _decided(found) & ~np.isfinite(found.gradient)
    formula = _formula(example) if np.any(wrong) else None
    return _some(found.inputs[wrong if formula is None else wrong & np.isfinite(formula)])


def imprecise(example: Example) -> list[float]:
    """Numbers at which a gradient is far off, and that of built-in operations is not, out of a call of every number."""
    found, formula = swept(example), _formula(example)
    if formula is None:
        return []
    with np.errstate(all="ignore"):
        off = np.abs(found.gradient - found.gradient_expected)
        allowed = math.sqrt(PRECISION[found.dtype].unit) * (1 + np.abs(found.gradient_expected))
        better = np.abs(formula - found.gradient_expected) <= off / BETTER
        wrong = _decided(found) & np.isfinite(found.gradient) & (off > allowed) & better
    return _some(found.inputs[wrong])


def _decided(found: Sweep) -> Any:
    """Where the output is right and the gradient fits the dtype."""
    fits = np.abs(found.gradient_expected) < PRECISION[found.dtype].largest / 4
    return fits & right(found.output, found.output_expected, found.dtype)


def _formula(example: Example) -> Any:
    """The gradient of the formula for a call of every number; None if it is not known."""
    found = gradients_of_formula(with_numbers(example))
    return None if found is None or found[0] is None else found[0].astype(np.float64).ravel()


def steep(example: Example) -> list[float]:
    """Numbers at which the gradient in double precision is not the slope, out of a call of every number."""
    example = with_numbers(example)
    x, arguments = example.values[example.slots[0]], example.expected.reference_arguments(exact=True)
    compute, slot = example.function.soft or example.function.forward, example.slots[0]

    def at(values: Any) -> Any:
        return compute(*(values if n == slot else a for n, a in enumerate(arguments)))[0]

    (claim,) = example.expected.vjp(example.expected.cotangents, exact=True)
    with np.errstate(all="ignore"):
        middle, slopes = at(x), []
        for bits in (12, 16):
            step = 2.0**-bits * np.maximum(np.abs(x), 2.0**-4)
            slopes.append(((at(x + step) - middle) / step, (middle - at(x - step)) / step))
        (ahead, behind), (near_ahead, near_behind) = slopes
        slope, rough = (near_ahead + near_behind) / 2, (ahead + behind) / 2
        noise = NOISE_OF_EXTREMES * PRECISION[example.function.computes_in].unit * np.abs(middle) / step
        gap = np.abs(near_ahead - near_behind)
        smooth = gap <= np.maximum(np.abs(ahead - behind) / 8, noise)
        off = np.abs(claim - slope) > OFF_SLOPE * np.maximum(np.abs(slope), np.abs(claim)) + 4 * np.abs(slope - rough)
        off &= np.abs(claim - slope) > 4 * noise
        wrong = smooth & (off | ~np.isfinite(claim)) & (np.abs(slope) < _largest(example) / 4)
    return _some(x[wrong])


def _largest(example: Example) -> float:
    """The largest number of the gradients that come back."""
    return PRECISION[example.expected.precision].largest


def _some(values: Any) -> list[float]:
    """The smallest number in size from each range between powers of two, spread over all of these ranges.

    What explains the numbers of one range, such as an overflow, may not explain those of another. The smallest in size
    come first: these are met most often.
    """
    ranges: dict[tuple[bool, int], float] = {}
    for x in sorted(set(values), key=abs):
        ranges.setdefault((bool(np.signbit(x)), int(np.frexp(x)[1])), float(x))
    each = list(ranges.values())
    return each if len(each) <= _RANGES else [each[n * len(each) // _RANGES] for n in range(_RANGES)]


def _hint(example: Example, number: int, index: tuple[int, ...]) -> str:
    value = example.values[example.slots[number]][index]
    where = f"the entry is {value:.6g} in {example.call.tensors[number].dtype}"
    return f"{where}, and the outputs are finite here; look for an overflow or a 0 / 0 inside backward"


class _Slope(NamedTuple):
    """A slope, and by how much the rounding of the outputs may change it."""

    value: float
    noise: float

    def __str__(self) -> str:
        known = self.noise <= max(0.05 * abs(self.value), NOTHING)
        return f"about {self.value:.3g}" if known else "a finite number"


def _slope(example: Example, number: int, index: tuple[int, ...]) -> _Slope | None:
    """The slope of <cotangents, outputs> along one entry in double precision; None if it is unclear or not finite.

    Differences to both sides, with two steps each, must agree, or come closer as the step does.
    """
    compute, slot = example.function.soft or example.function.forward, example.slots[number]
    arguments = example.expected.reference_arguments(exact=True)
    x = np.array(arguments[slot])
    if np.iscomplexobj(x):
        return None
    size = abs(float(x[index])) or 1.0
    found, largest = [], 0.0
    with np.errstate(all="ignore"):
        for step in (2.0**-12 * size, -(2.0**-12) * size, 2.0**-16 * size, -(2.0**-16) * size):
            ends = []
            for moved in (step, 0.0):
                other = x.copy()
                other[index] += moved
                outputs = compute(*(other if n == slot else a for n, a in enumerate(arguments)))
                pairs = zip(example.expected.cotangents, outputs, strict=True)
                ends.append(sum(float(np.sum(np.real(np.conj(g) * y))) for g, y in pairs if g is not None))
            largest = max(largest, *map(abs, ends))
            found.append((ends[0] - ends[1]) / step)
    if not np.all(np.isfinite(found)):
        return None
    spread, mean = max(found) - min(found), sum(found) / len(found)
    coarse, fine = abs(found[0] - found[1]), abs(found[2] - found[3])
    noise = PRECISION["float64"].unit * largest / (2.0**-16 * size)
    return _Slope(mean, noise) if spread <= 0.05 * abs(mean) or fine <= coarse / 8 else None
