"""The oracle for a user's Function, of which only the code is known.

The reference is the Function's plain call in double precision: contiguous tensors that all require grad, and nothing
before or after the call. Finite differences of the forward check this call itself, and so does a reference if the user
gives one. All other tests check whether another call (another mask, layout, precision, order, thread) agrees with it.

The error that rounding may cause is measured, because the operations inside are unknown. The inputs are moved a few
times by one rounding of the dtype under test. The change of the result shows the effect of rounding the inputs, and
the intermediate results that depend on them. Added to this are the roundings of a sum over all elements of the size of
the largest result, or half of its digits if that is more. This follows the stochastic arithmetic of J. Vignes, Math.
Comput. Simul. 35 (1993) 233.

Where a result jumps within a few roundings of the inputs (at ties, kinks, thresholds), rounding decides which side it
gets. Its error is infinite there: nothing is claimed.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from autograd_conformance.implementations.protocol import Implementation, as_tuple
from autograd_conformance.reference.definitions import Array, Static, as_given
from autograd_conformance.reference.rounding import PRECISION, SAFETY, Precision, Tracked
from autograd_conformance.strategies.values import DOMAINS

# The pairs of moves of the inputs, the factor on the largest change that they cause, and the roundings of any result.
PAIRS, MARGIN, ROUNDINGS = 2, 6.0, 8

# A change of which more than half lies in one of so many parts of the way is a jump. The way is so many roundings long,
# and is gone in so many directions and back.
PARTS, REACH, WAYS = 8, 16, 3

# Smaller moves would be lost in the rounding of double precision; the inputs move by this, and the change is scaled.
_SMALLEST_MOVE = 2.0**-26

# The roundings of double precision that differences of computed values may show, for each unit moved.
NOISE = 2.0**12

_KEPT = 64

Arrays = tuple[Any, ...]


class Oracle:
    """The reference of one Function on one device: forward, VJP and JVP of NumPy arrays.

    Results have errors if an argument does. ``f`` is called with all arguments. ``dtype`` is the most precise one that
    it takes. ``outputs`` says which outputs are differentiable.
    """

    def __init__(
        self, implementation: Implementation, f: Callable[..., Any], arguments: Sequence[Array | Static], *,
        outputs: Sequence[bool], dtype: str, device: str, conditioning: float = 1.0,
    ) -> None:  # fmt: skip
        self.implementation, self.f, self.arguments = implementation, f, tuple(arguments)
        self.differentiable, self.dtype, self.device = tuple(outputs), dtype, device
        self.conditioning = conditioning
        self._known: OrderedDict[Any, Arrays] = OrderedDict()

    # The interface of `reference.definitions.Function`.

    def forward(self, *given: Any) -> Arrays:
        """The outputs; with errors if an argument has errors."""
        return self._bounded(self._forward, given, ())

    def vjp(self, cotangents: Sequence[Any], *given: Any) -> Arrays:
        """One gradient per argument, None for arguments without one."""
        return self._bounded(self._vjp, given, tuple(cotangents))

    def jvp(self, tangents: Sequence[Any], *given: Any) -> Arrays:
        """One tangent per output, by extrapolated central differences."""
        values = [_value(x) for x in given]
        moves = [None if t is None else _value(t) for t in tangents]
        slopes = [self._difference(values, moves, step) for step in (2.0**-8, 2.0**-9, 2.0**-10)]
        first = [[(4 * fine - coarse) / 3 for coarse, fine in zip(a, b, strict=True)] for a, b in pairwise(slopes)]
        found = [(16 * fine - coarse) / 15 for coarse, fine in zip(*first, strict=True)]
        precision = _precision(given)
        outputs = self.forward(*given)
        if precision is None:
            return tuple(found)
        rows = zip(found, first[1], outputs, strict=True)
        return tuple(self._tangent(t, near, y, precision) for t, near, y in rows)

    def _tangent(self, value: Any, near: Any, output: Any, precision: Precision) -> Tracked:
        noise = NOISE * PRECISION["float64"].unit * np.max(np.abs(_value(output)), initial=1.0)
        error = 8 * np.abs(value - near) + noise + self._floor(precision, value, ()) + 8 * _error(output)
        return Tracked(value, np.broadcast_to(error, np.shape(value)).copy(), precision)

    def _difference(self, values: Sequence[Any], moves: Sequence[Any], step: float) -> Arrays:
        ahead, behind = (
            self._forward([x if t is None else x + s * t for x, t in zip(values, moves, strict=True)], ())
            for s in (step, -step)
        )
        rows = zip(ahead, behind, self.differentiable, strict=True)
        return tuple((a - b) / (2 * step) if d else np.zeros(a.shape) for a, b, d in rows)

    # On the implementation.

    def _tensors(self, values: Sequence[Any]) -> list[Any]:
        """All arguments, the floating ones as contiguous tensors in double precision."""
        found = []
        for argument, value in zip(self.arguments, values, strict=False):
            if value is None or isinstance(argument, Static):
                found.append(value)
            else:
                dtype = argument.dtype or self._dtype(value)
                found.append(self.implementation.array(np.array(value, order="C"), dtype, self.device))
        return found

    def _dtype(self, value: Any) -> str:
        if np.iscomplexobj(value):
            return {"float64": "complex128", "float32": "complex64"}.get(self.dtype, self.dtype)
        return {"complex128": "float64", "complex64": "float32"}.get(self.dtype, self.dtype)

    def _call(self, args: Sequence[Any], slots: Sequence[int], primals: Sequence[Any]) -> Arrays:
        merged = list(args)
        for slot, primal in zip(slots, primals, strict=True):
            merged[slot] = primal
        return as_tuple(self.f(*as_given(self.arguments, merged)))

    def _floating(self, values: Sequence[Any]) -> list[int]:
        pairs = enumerate(zip(self.arguments, values, strict=False))
        return [n for n, (a, v) in pairs if isinstance(a, Array) and a.dtype is None and v is not None]

    def _run(self, values: Sequence[Any]) -> tuple[list[int], Arrays, Callable[..., Any]]:
        args, slots = self._tensors(values), self._floating(values)
        primals = [args[n] for n in slots]
        # In-place Functions change copies.
        copy = self.implementation.xp.copy
        track = [self.arguments[n].differentiable for n in slots]
        outputs, pullback = self.implementation.vjp(
            lambda *xs: self._call(args, slots, [copy(x) for x in xs]), primals, track=track
        )
        return slots, outputs, pullback

    def _forward(self, values: Sequence[Any], _: Any) -> Arrays:
        args, slots = self._tensors(values), self._floating(values)
        copy = self.implementation.xp.copy
        with self.implementation.no_grad():
            outputs = self._call(args, slots, [copy(args[n]) for n in slots])
        return tuple(self.implementation.numpy(y) for y in outputs)

    def _vjp(self, values: Sequence[Any], cotangents: Sequence[Any]) -> Arrays:
        slots, outputs, pullback = self._run(values)
        dtypes = [self.implementation.describe(y).dtype for y in outputs]
        given = [
            None if g is None or not d else self.implementation.array(np.array(g, order="C"), kind, self.device)
            for g, d, kind in zip(cotangents, self.differentiable, dtypes, strict=True)
        ]
        found: list[Any] = [None] * len(self.arguments)
        for slot, gradient in zip(slots, pullback(given), strict=True):
            if self.arguments[slot].differentiable:
                zeros = np.zeros(np.shape(values[slot]), np.asarray(values[slot]).dtype)
                found[slot] = zeros if gradient is None else self.implementation.numpy(gradient)
        return tuple(found)

    # With errors.

    def _bounded(self, compute: Callable[..., Arrays], given: Sequence[Any], cotangents: Sequence[Any]) -> Arrays:
        values, ends = [_value(x) for x in given], [_value(g) for g in cotangents]
        precision = _precision((*given, *cotangents))
        if precision is None:
            return compute(values, ends)
        key = (compute.__name__, precision.unit, *map(_key, (*given, *cotangents)))
        if key not in self._known:
            found = compute(values, ends)
            floors = [0.0 if y is None else self._floor(precision, y, ends, given) for y in found]
            errors = _Errors(lambda: self._measured(compute, given, cotangents, precision, found, floors))
            rows = enumerate(zip(found, floors, strict=True))
            self._known[key] = tuple(self._bound(y, floor, errors, n, precision) for n, (y, floor) in rows)
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return tuple(None if x is None else x.around(x.value) for x in self._known[key])

    def _bound(self, value: Any, floor: float, errors: _Errors, number: int, precision: Precision) -> Tracked | None:
        if value is None:
            return None
        return Bounded(value, self.conditioning * floor if _is_floating(value) else 0.0, precision, errors, number)

    def _measured(
        self, compute: Callable[..., Arrays], given: Sequence[Any], cotangents: Sequence[Any], precision: Precision,
        found: Arrays, floors: Sequence[float],
    ) -> Arrays:  # fmt: skip
        """The errors of the results ``found``; None for None. Those of integers are 0 or infinite."""
        unit = max(precision.unit, PRECISION[self.dtype].unit)
        move = max(unit, _SMALLEST_MOVE)
        # An effect of earlier calls must not count as rounding. So the plain call runs again after a plain call, and
        # moved results are compared with the nearer of the two.
        values, ends = [_value(x) for x in given], [_value(g) for g in cotangents]
        compute(values, ends)
        again = compute(values, ends)
        moved = list(self._near(compute, given, cotangents, move, unit))
        # The error is unknown if an argument's error is infinite (after an overflow), or if every move raises.
        known = bool(moved) and all(np.all(np.isfinite(_error(x))) for x in (*given, *cotangents))
        jumps = self._jumps(compute, given, cotangents, max(REACH * unit, move), (found, again), floors)
        errors: list[Any] = []
        for n, (y, floor, jump) in enumerate(zip(found, floors, jumps, strict=True)):
            if y is None or not _is_floating(y):
                errors.append(None if y is None else np.where(jump, np.inf, 0.0))
                continue
            error = MARGIN * _spread((y, again[n]), [near[n] for near in moved]) * (unit / move) + floor
            # A result that may overflow in the dtype has an infinite error.
            fits = np.abs(y) + error <= precision.largest
            errors.append(self.conditioning * np.where(fits & known & ~jump, error, np.inf))
        return tuple(errors)

    def _jumps(
        self, compute: Callable[..., Arrays], given: Sequence[Any], cotangents: Sequence[Any], reach: float,
        plain: Sequence[Arrays], floors: Sequence[float],
    ) -> list[Any]:  # fmt: skip
        """Which entries of each result jump while the inputs move by ``reach``, relative to the largest input.

        ``plain`` are the results of two plain calls. Where these differ, an effect of earlier calls is no jump.
        """
        arguments = (*self.arguments[: len(given)], *(None for _ in cotangents))
        pairs = list(zip((*given, *cotangents), arguments, strict=True))
        steady = [None if a is None else _steps(a, b) <= floor for a, b, floor in zip(*plain, floors, strict=True)]
        found = [None if y is None else np.zeros(y.shape, dtype=bool) for y in plain[0]]
        for seed in range(2 * WAYS):
            rng, side = np.random.default_rng(seed // 2), reach * (-1) ** seed
            # What is computed from several arguments is as coarse as the largest of them.
            least = 0.0 if seed < 2 else max((_largest(x) for x, a in pairs if _moves(_value(x), a)), default=0.0)
            ways = [_way(x, argument, rng, least) for x, argument in pairs]
            line = [plain[1]]
            for part in range(1, PARTS + 1):
                moved = [_shifted(x, a, w, side * part / PARTS) for (x, a), w in zip(pairs, ways, strict=True)]
                try:
                    line.append(compute(moved[: len(given)], moved[len(given) :]))
                except Exception:  # noqa: BLE001 - the move may have left the Function's domain
                    break
            for n, (jump, calm) in enumerate(zip(found, steady, strict=True)):
                if jump is not None and len(line) > 2:
                    steps = [_steps(a[n], b[n]) for a, b in pairwise(line)]
                    most, floor = np.max(steps, axis=0), floors[n] * _is_floating(plain[0][n])
                    here = calm & (most > floor) & (2 * most > np.sum(steps, axis=0))
                    jump |= here | _passed_on(line[0][n], line[-1][n], here)
        return found

    def _near(
        self, compute: Callable[..., Arrays], given: Sequence[Any], cotangents: Sequence[Any], move: float, unit: float
    ) -> Iterator[Arrays]:
        """The results at moved inputs; moves that the Function refuses are left out."""
        arguments = (*self.arguments[: len(given)], *(None for _ in cotangents))
        for signs in _signs((*given, *cotangents)):
            rows = zip((*given, *cotangents), arguments, signs, strict=True)
            moved = [_moved(x, argument, sign, move, unit) for x, argument, sign in rows]
            try:
                near = compute(moved[: len(given)], moved[len(given) :])
            except Exception:  # noqa: BLE001 - the move may have left the Function's domain
                continue
            yield near

    def _floor(self, precision: Precision, value: Any, cotangents: Sequence[Any], given: Sequence[Any] = ()) -> float:
        """The rounding error that moving the inputs does not show: results below one may come from larger terms."""
        unit = max(precision.unit, PRECISION[self.dtype].unit)
        values = [_value(x) for x in (*given, *cotangents) if x is not None]
        arrays = [x for x in values if isinstance(x, np.ndarray | np.generic)]
        terms = max([1, *(x.size for x in arrays)])
        finite = np.abs(value)[np.isfinite(value)] if np.size(value) else np.zeros(0)
        scale = max([1.0, *(float(np.max(np.abs(g), initial=0.0)) for g in cotangents if g is not None)])
        largest = float(np.max(finite, initial=0.0))
        # A value that underflows inside may be divided by an input.
        sizes = [float(np.min(np.abs(x), initial=1.0, where=x != 0)) for x in arrays if x.dtype.kind in "fc"]
        lost = precision.subnormal * scale / min([1.0, *sizes])
        return float(inexact(unit, terms) * (scale + largest) + lost)


class _Errors:
    """The errors of all results of a computation, measured when the first one is needed."""

    def __init__(self, measure: Callable[[], Arrays]) -> None:
        self._measure = measure

    @cached_property
    def found(self) -> Arrays:
        return self._measure()


class Bounded(Tracked):
    """Values whose errors are measured when they are needed; ``least`` is a lower bound of them."""

    __slots__ = ("_errors", "_least", "_number")

    def __init__(self, value: Any, least: float, precision: Precision, errors: _Errors, number: int) -> None:
        self.value, self.precision = np.asarray(value), precision
        self._least, self._errors, self._number = least, errors, number

    @property
    def error(self) -> Any:  # type: ignore[override]
        return self._errors.found[self._number]

    @property
    def least(self) -> Any:
        return np.broadcast_to(self._least, self.value.shape)

    def around(self, value: Any) -> Bounded:
        return Bounded(value, self._least, self.precision, self._errors, self._number)

    def mapped(self, project: Callable[[Any], Any]) -> Bounded:
        """The projection of the values onto the directions of a domain."""
        return Bounded(project(self.value), self._least, self.precision, _Errors(lambda: (project(self.error),)), 0)


def joined(values: Bounded, other: Tracked) -> Bounded:
    """The values with their own errors and those of ``other``, where these are finite."""
    errors = _Errors(lambda: (values.error + np.where(np.isfinite(other.error), other.error, 0.0),))
    return Bounded(values.value, values._least, values.precision, errors, 0)


def inexact(unit: float, terms: int) -> float:
    """The relative error that an approximation, or a sum of so many terms, may have.

    Half of the digits must be right, including the safety factor of comparisons: an operation inside may magnify an
    error that a later one hides from the moves. The roundings of terms add up like random numbers.
    """
    return max((ROUNDINGS + 4 * math.sqrt(terms)) * unit, math.sqrt(unit) / SAFETY)


def _value(x: Any) -> Any:
    return x.value if isinstance(x, Tracked) else x


def _error(x: Any) -> Any:
    return x.error if isinstance(x, Tracked) else 0.0


def _is_floating(x: Any) -> bool:
    return x.dtype.kind in "fc"


def _numeric(x: Any) -> Any:
    return x.astype(np.float64) if x.dtype.kind == "b" else x


def _precision(given: Sequence[Any]) -> Precision | None:
    return next((x.precision for x in given if isinstance(x, Tracked)), None)


def _key(x: Any) -> Any:
    if isinstance(x, Tracked):
        return x.value.tobytes(), x.value.shape, x.value.dtype.kind, x.error.tobytes()
    return (x.tobytes(), x.shape, x.dtype.str) if isinstance(x, np.ndarray) else repr(x)


def _signs(given: Sequence[Any]) -> Iterator[list[Any]]:
    """The direction of each element, 1 or -1, for each move.

    The first move of a pair is random. In the second move, neighbours along an axis that had the same direction get
    opposite ones, and so do elements of two arguments at the same index. In the other pair this holds for every second
    neighbour and argument. So one of the moves shows an effect of differences and of products.
    """
    for pair in range(PAIRS):
        rng = np.random.default_rng(pair)
        drawn = [rng.choice((-1.0, 1.0), getattr(_value(x), "shape", ())) for x in given]
        yield drawn
        tensors = [n for n, x in enumerate(given) if isinstance(_value(x), np.ndarray | np.generic)]
        # Arguments that are not tensors do not move.
        number = {n: place >> pair for place, n in enumerate(tensors)}
        yield [
            (-1.0) ** (number.get(n, 0) + (np.indices(signs.shape) >> pair).sum(0)) * signs
            for n, signs in enumerate(drawn)
        ]


def _spread(plain: Sequence[Any], moved: Sequence[Any]) -> Any:
    """The largest distance of the moved results from the nearer plain result, for each entry."""
    found = np.zeros(plain[0].shape)
    with np.errstate(all="ignore"):
        for near in moved:
            off = [np.abs(_numeric(near) - _numeric(y)) for y in plain]
            found = np.fmax(found, np.fmin(*off))
    return found


def _moved(x: Any, argument: Any, signs: Any, move: float, unit: float) -> Any:
    """The value moved within its domain, in the directions ``signs``: by ``move``, relative to it, and by its error."""
    value = _value(x)
    if not _moves(value, argument):
        return value
    if isinstance(argument, Array) and argument.values == "definite":
        signs = np.tril(signs) + np.swapaxes(np.tril(signs, -1), -1, -2)
    with np.errstate(all="ignore"):
        return _inside(argument, value, signs * (move * value + np.minimum(_error(x), 1e300) * (move / unit)))


def _moves(value: Any, argument: Any) -> bool:
    if value is None or isinstance(argument, Static) or not _is_floating(np.asarray(value)):
        return False
    return not isinstance(argument, Array) or argument.dtype is None


def _inside(argument: Any, value: Any, change: Any) -> Any:
    """The changed value; with the opposite change where it would leave the argument's bounds."""
    if not isinstance(argument, Array) or argument.bounds is None:
        return value + change
    low, high = argument.bounds
    return np.where(_between(value + change, low, high), value + change, value - change)


def _largest(x: Any) -> float:
    return float(np.max(np.abs(_value(x)), initial=0.0, where=np.isfinite(_value(x))))


def _way(x: Any, argument: Any, rng: np.random.Generator, least: float) -> Any:
    """A random direction within the argument's domain, as long as its largest number; None for what cannot move."""
    value = _value(x)
    if not _moves(value, argument):
        return None
    size = max(_largest(x), least) or 1.0
    way = size * rng.uniform(0.5, 1.5, value.shape) * rng.choice((-1, 1), value.shape)
    if not isinstance(argument, Array):
        return way
    # The zeros of a sparse tensor stay.
    return way * (value != 0) if argument.wrap is not None else DOMAINS[argument.values].tangent(way)


def _passed_on(start: Any, end: Any, jump: Any) -> bool:
    """Whether some of the entries that jump lose what others get, as with ties; any other entry may get it, too."""
    with np.errstate(all="ignore"):
        change = (np.abs(_numeric(end)) - np.abs(_numeric(start)))[jump]
    return bool(np.any(change > 0) and np.any(change < 0))


def _shifted(x: Any, argument: Any, way: Any, length: float) -> Any:
    with np.errstate(all="ignore"):
        return _value(x) if way is None else _inside(argument, _value(x), length * way)


def _steps(a: Any, b: Any) -> Any:
    """How far apart the entries of two results are; 0 where this is no number."""
    with np.errstate(all="ignore"):
        return np.nan_to_num(np.abs(_numeric(a) - _numeric(b)), nan=0.0)


def _between(values: Any, low: float, high: float) -> Any:
    # The bounds of complex numbers are those of the real part.
    return (np.real(values) > low) & (np.real(values) < high)
