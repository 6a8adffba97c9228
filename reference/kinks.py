"""The slopes that a function has near a point where it may have a kink, and whether a claimed slope is among them.

A function that is smooth in pieces has a gradient at almost every point near a kink. A convention at the kink chooses
one of these gradients, or a mean of them. So along each direction the claimed slope has to lie between the smallest and
the largest slope nearby (F. H. Clarke, Optimization and Nonsmooth Analysis, 1983). The two one-sided slopes at the
point itself are not enough: relu(x) - relu(y) has the slope 1 to both sides of 0 along (1, -1), but 0 is a gradient of
each relu.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from autograd_conformance.reference.ladder import Arrays, Mapping, Verdict


@dataclass(frozen=True)
class Reach:
    """How far the nearby points are, for a function that rounds to ``unit``: two radii, and the step of differences."""

    radii: tuple[float, float]
    step: float
    unit: float

    @property
    def noise(self) -> float:
        """The error that rounding causes in a slope, relative to the numbers that are rounded."""
        return 16 * self.unit / self.step

    def beyond(self, least: float) -> Reach:
        """The reach of which no radius is below ``least``; the steps stay."""
        factor = max(1.0, least / self.radii[-1])
        return Reach((self.radii[0] * factor, self.radii[1] * factor), self.step, self.unit)


# Half precision has none: its steps would be as large as the distance to other kinks.
REACHES = {
    "float64": Reach((2.0**-12, 2.0**-15), 2.0**-20, 2.0**-53),
    "float32": Reach((2.0**-6, 2.0**-9), 2.0**-13, 2.0**-24),
}

# The nearby points to look at, those for the slopes of every entry, and those before a claim is called wrong.
_FEW, _SOME, _MANY = 8, 32, 256

# From one radius to the next, the change from the point itself shrinks by this factor at least; otherwise it is a jump.
_SHRINKS = 3.0
# Slopes that differ from place to place by more than this factor of what a radius changes have a kink between them. No
# smooth function has such, and rounding causes none.
_APART = 4.0
# Where a radius changes more than this share of the slopes, rounding may hide a kink.
_CLEAR = 1 / 16


@dataclass(frozen=True)
class Slopes:
    """The smallest and the largest slope near a point, each with an error of at most ``tolerance``."""

    low: float
    high: float
    tolerance: float

    def admit(self, claim: float) -> bool:
        """Whether the claim lies between the slopes."""
        return self.low - self.tolerance <= claim <= self.high + self.tolerance

    def nearest(self, claim: float) -> float:
        """The slope that is nearest to the claim, to the digits that count."""
        nearest = self.low if abs(claim - self.low) <= abs(claim - self.high) else self.high
        return float(f"{nearest:.9g}")

    @property
    def agree(self) -> bool:
        """Whether there is no kink: all slopes are the same."""
        return self.high - self.low <= self.tolerance


@dataclass(frozen=True)
class Spread:
    """The smallest and the largest slope of each entry of an output near a point, and their errors.

    The error is infinite where the output jumps. At ``kinks`` the slopes do not come together as the places do, or
    nothing shows whether they do.
    """

    low: Any
    high: Any
    tolerance: Any
    kinks: Any

    def off(self, value: Any) -> Any:
        """How far the slopes are from a value, at most; 0 where there is no kink, and the value is one of them."""
        far = np.maximum(np.abs(self.low - value), np.abs(self.high - value)) + self.tolerance
        among = (self.low - self.tolerance <= value) & (value <= self.high + self.tolerance)
        return np.where(self.kinks | ~among, far, 0.0)


class Near:
    """The points near a point, at which a weighted sum of the outputs of ``f`` is differentiated."""

    def __init__(self, f: Mapping, points: Arrays, weights: Arrays, scales: Arrays, reach: Reach) -> None:
        self._f, self._points, self._scales, self._reach = f, points, scales, reach
        self._weights = tuple(None if v is None else np.asarray(v) for v in weights)
        self._start = [np.array(y) for y in f(points)]
        moved = [(x, s) for x, s in zip(points, scales, strict=True) if x is not None and s is not None and np.any(s)]
        self._length = max((float(np.max(np.abs(x)) / np.max(np.abs(s))) for x, s in moved), default=0.0)
        rows = zip(self._weights, self._start, strict=True)
        self._size = sum(float(np.sum(np.abs(v) * np.abs(y))) for v, y in rows if v is not None)

    def judge(self, claim: float, direction: Arrays, *, rounding: float, seed: int) -> tuple[Verdict, Slopes | None]:
        """Compare a claimed slope with those nearby.

        There are none where the function jumps, leaves its domain, or has outputs of other shapes.
        """
        with np.errstate(all="ignore"):
            found = _Found(self._size, self._length, self._reach)
            for number, place in enumerate(self._places(direction, seed)):
                if number >= (_FEW if found.slopes(rounding).admit(claim) else _MANY):
                    break
                if not self._look(place, direction, found):
                    return Verdict.INCONCLUSIVE, None
        slopes = found.slopes(rounding)
        if found.jumps:
            return Verdict.INCONCLUSIVE, None
        if slopes.admit(claim):
            return Verdict.AGREES, slopes
        # NaN is a convention at a kink as well.
        unclear = not math.isfinite(slopes.tolerance) or (not math.isfinite(claim) and not slopes.agree)
        return (Verdict.INCONCLUSIVE if unclear else Verdict.DISAGREES), slopes

    def _places(self, direction: Arrays, seed: int) -> Iterator[Arrays]:
        """Directions from the point to those nearby: along the slope, all entries up, all down, and random ones.

        Of a convex function, the slopes ahead and behind are the largest and the smallest.
        """
        rng = np.random.default_rng(seed)
        for sign in (1, -1):
            yield tuple(
                None if s is None or d is None else sign * d for s, d in zip(self._scales, direction, strict=True)
            )
        yield self._scales
        yield tuple(None if s is None else -s for s in self._scales)
        while True:
            yield tuple(None if s is None else s * rng.uniform(-1, 1, np.shape(s)) for s in self._scales)

    def spreads(self, direction: Arrays, *, seed: int) -> tuple[Spread, ...] | None:
        """The slopes of each entry of each output; None where the function leaves its domain or has other shapes."""
        with np.errstate(all="ignore"):
            rows = [self._sides(place, direction) for place in islice(self._places(direction, seed), _SOME)]
            if None in rows:
                return None
            return tuple(self._spread(number, [row for row in rows if row]) for number in range(len(self._start)))

    def _spread(self, number: int, rows: list[tuple[_Side, _Side]]) -> Spread:
        """The slopes of one output at both radii of each place."""
        far, near = (np.array([row[n].slope(number) for row in rows]) for n in (0, 1))
        outer, inner = (np.array([abs(row[n].ahead[number] - self._start[number]) for row in rows]) for n in (0, 1))
        size, largest = np.max(np.abs(self._start[number]), initial=0.0), np.max(np.abs(near), axis=0)
        coarse = 1e-6 * largest + self._reach.noise * (size + self._length * largest)
        jumps = np.max(inner, axis=0) > np.max(outer, axis=0) / _SHRINKS + 64 * self._reach.unit * size
        changes = np.abs(far - near)
        low, high, tolerance = np.min(near, axis=0), np.max(near, axis=0), 4 * np.max(changes, axis=0) + coarse
        # A few of the differences may be taken across the kink.
        usual, most = np.quantile(changes, 0.9, axis=0), np.maximum(np.abs(low), np.abs(high))
        unclear = (usual > most * _CLEAR) | (coarse > most / 4)
        kinks = unclear | (high - low > _APART * usual)
        return Spread(low, high, np.where(jumps, np.inf, tolerance), jumps | kinks)

    def _look(self, place: Arrays, direction: Arrays, found: _Found) -> bool:
        """Add the slopes near one place; False if the function has none there."""
        sides = self._sides(place, direction)
        if sides is None:
            return False
        slopes = [self._difference(side.ahead, side.behind) / (2 * side.step) for side in sides]
        changes = [self._changes(side.ahead) for side in sides]
        found.add(slopes, changes)
        return bool(np.all(np.isfinite(slopes)) and np.all(np.isfinite(changes)))

    def _sides(self, place: Arrays, direction: Arrays) -> tuple[_Side, _Side] | None:
        """The outputs at both radii of one place; None if the function has none there."""
        found = []
        for radius in self._reach.radii:
            step = self._reach.step * radius / self._reach.radii[-1]
            try:
                ahead, behind = (
                    [np.array(y) for y in self._f(self._moved(place, radius, direction, s))] for s in (step, -step)
                )
            except Exception:  # noqa: BLE001 - the nearby point may lie outside the function's domain
                return None
            if not all(list(map(np.shape, nearby)) == list(map(np.shape, self._start)) for nearby in (ahead, behind)):
                return None
            found.append(_Side(ahead, behind, step))
        return found[0], found[1]

    def _moved(self, place: Arrays, radius: float, direction: Arrays, step: float) -> Arrays:
        rows = zip(self._points, place, direction, strict=True)
        return tuple(x if x is None or p is None or d is None else x + (radius * p + step * d) for x, p, d in rows)

    def _changes(self, ahead: Any) -> Any:
        """The change of each weighted entry of the outputs: in a sum, many that move would hide one that jumps."""
        rows = zip(self._weights, ahead, self._start, strict=True)
        sizes = [np.ravel(np.abs(v) * np.abs(a - b)) for v, a, b in rows if v is not None]
        return np.concatenate([np.zeros(1), *sizes])

    def _difference(self, ahead: Any, behind: Any) -> float:
        rows = zip(self._weights, ahead, behind, strict=True)
        return sum(float(np.vdot(v, a - b).real) for v, a, b in rows if v is not None)


@dataclass(frozen=True)
class _Side:
    """The outputs a step ahead of a place and behind it."""

    ahead: list[Any]
    behind: list[Any]
    step: float

    def slope(self, number: int) -> Any:
        return (self.ahead[number] - self.behind[number]) / (2 * self.step)


class _Found:
    """The slopes and changes at the places looked at.

    ``size`` is that of the outputs, ``length`` that of the inputs in units of what they may move.
    """

    def __init__(self, size: float, length: float, reach: Reach) -> None:
        self._reach, self._length = reach, length
        self._slopes: list[list[float]] = []
        self._changes: list[list[Any]] = []
        self._size = size

    def add(self, slopes: list[float], changes: list[Any]) -> None:
        self._slopes.append(slopes)
        self._changes.append(changes)

    def slopes(self, rounding: float) -> Slopes:
        if not self._slopes:
            return Slopes(math.inf, -math.inf, 0.0)
        far, near = np.array(self._slopes).T
        largest = float(np.max(np.abs(near)))
        # A curved function has other slopes at the larger radius; so has one whose rounding shows.
        coarse = 1e-6 * largest + self._reach.noise * (self._size + self._length * largest)
        tolerance = 4 * float(np.max(np.abs(far - near))) + coarse + rounding
        return Slopes(float(np.min(near)), float(np.max(near)), tolerance)

    @property
    def jumps(self) -> bool:
        """Whether an entry of the function does not come close to its value at the point."""
        far, near = np.max(self._changes, axis=0)
        return bool(np.any(near > far / _SHRINKS + 64 * self._reach.unit * self._size))
