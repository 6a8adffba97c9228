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


# Half precision has none: its steps would be as large as the distance to other kinks.
REACHES = {
    "float64": Reach((2.0**-12, 2.0**-15), 2.0**-20, 2.0**-53),
    "float32": Reach((2.0**-6, 2.0**-9), 2.0**-13, 2.0**-24),
}

# The nearby points to look at, and those to look at before a claim is called wrong.
_FEW, _MANY = 8, 256

# From one radius to the next, the change from the point itself shrinks by this factor at least; otherwise it is a jump.
_SHRINKS = 3.0


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

    def _look(self, place: Arrays, direction: Arrays, found: _Found) -> bool:
        """Add the slopes near one place; False if the function has none there."""
        slopes, changes = [], []
        for radius in self._reach.radii:
            step = self._reach.step * radius / self._reach.radii[-1]
            try:
                ahead, behind = (
                    [np.array(y) for y in self._f(self._moved(place, radius, direction, s))] for s in (step, -step)
                )
            except Exception:  # noqa: BLE001 - the nearby point may lie outside the function's domain
                return False
            if not all(list(map(np.shape, nearby)) == list(map(np.shape, self._start)) for nearby in (ahead, behind)):
                return False
            slopes.append(self._difference(ahead, behind) / (2 * step))
            changes.append(self._changes(ahead))
        found.add(slopes, changes)
        return bool(np.all(np.isfinite(slopes)) and np.all(np.isfinite(changes)))

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
