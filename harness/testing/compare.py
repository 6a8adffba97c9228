"""Comparison of arrays with a reference and its error bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from autograd_conformance.reference.rounding import SAFETY, Tracked


@dataclass(frozen=True)
class Difference:
    """The element with the largest ratio of error to bound."""

    index: tuple[int, ...]
    got: Any
    expected: Any
    bound: float
    ratio: float

    @property
    def holds(self) -> bool:
        return self.ratio <= 1


def difference(got: Any, expected: Tracked, *, slack: float = SAFETY) -> Difference | None:
    """The worst element of ``got`` against ``expected``; None for empty arrays. The shapes must agree.

    The bound of an element is ``slack`` times its tracked error. An element whose reference computation may overflow
    in the dtype under test has an infinite bound and admits anything.
    """
    if got.size == 0:
        return None
    # The cheap lower bound comes first: computing the others may need more runs of the Function.
    for bound in ("least", "error", "widest"):
        found = _worst(got, expected.value, slack * getattr(expected, bound))
        if found.holds:
            break
    return found


def _worst(got: Any, value: Any, bound: Any) -> Difference:
    if got.dtype.kind == "b":
        got, value = got.astype(np.int8), value.astype(np.int8)
    with np.errstate(all="ignore"):
        distance = np.abs(got - value)
        agree = (got == value) | (np.isnan(got) & np.isnan(value)) | np.isinf(bound) | np.isnan(bound)
        ratio = np.where(agree | (distance <= bound), 0.0, np.inf)
        measured = np.isfinite(distance) & (bound > 0) & ~agree
        ratio = np.where(measured, distance / np.where(bound > 0, bound, 1), ratio)
    index = np.unravel_index(int(np.argmax(ratio)), ratio.shape)
    place = tuple(int(i) for i in index)
    return Difference(place, got[index], value[index], float(bound[index]), float(ratio[index]))


def same_bits(a: Any, b: Any) -> bool:
    """Whether two arrays are equal bit for bit, except the payload of NaNs."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind == "c":
        return same_bits(a.real, b.real) and same_bits(a.imag, b.imag)
    equal = a == b
    if a.dtype.kind == "f":
        equal = (equal & (np.signbit(a) == np.signbit(b))) | (np.isnan(a) & np.isnan(b))
    return bool(np.all(equal))
