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
from functools import cache, cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np

from autograd_conformance.harness.check.oracle.jumps import jumps
from autograd_conformance.harness.check.oracle.perturb import (
    alike,
    can_move,
    error_of,
    is_floating,
    moved,
    numeric,
    signs,
    value_of,
)
from autograd_conformance.harness.check.oracle.tolerances import MARGIN, NOISE, REACH, ROUNDINGS
from autograd_conformance.harness.testing.attempts import attempted
from autograd_conformance.harness.testing.expected import within_domain
from autograd_conformance.harness.testing.kinks import typical
from autograd_conformance.implementations.protocol import Implementation, as_tuple
from autograd_conformance.reference.deferred import Deferred
from autograd_conformance.reference.definitions import Array, Static, as_given
from autograd_conformance.reference.kinks import REACHES, Near
from autograd_conformance.reference.rounding import PRECISION, SAFETY, Precision, Tracked

# Smaller moves would be lost in the rounding of double precision; the inputs move by this, and the change is scaled.
_SMALLEST_MOVE = 2.0**-26

_KEPT = 64

Arrays = tuple[Any, ...]


class Oracle:
    """The reference of one Function on one device: forward, VJP and JVP of NumPy arrays.

    Results have errors if an argument does. ``f`` is called with all arguments. ``dtype`` is the most precise one that
    it takes. ``outputs`` says which outputs are differentiable, ``normwise`` that rounding may have the effect of
    changing every entry of a tensor by a rounding of the largest one.
    """

    def __init__(
        self, implementation: Implementation, f: Callable[..., Any], arguments: Sequence[Array | Static], *,
        outputs: Sequence[bool], dtype: str, device: str, conditioning: float = 1.0,
        normwise: bool = False,
    ) -> None:  # fmt: skip
        self.implementation, self.f, self.arguments = implementation, f, tuple(arguments)
        self.differentiable, self.dtype, self.device = tuple(outputs), dtype, device
        self.conditioning, self.normwise = conditioning, normwise
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
        values = [value_of(x) for x in given]
        moves = [None if t is None else value_of(t) for t in tangents]
        slopes = [self._difference(values, moves, step) for step in (2.0**-8, 2.0**-9, 2.0**-10)]
        first = [[(4 * fine - coarse) / 3 for coarse, fine in zip(a, b, strict=True)] for a, b in pairwise(slopes)]
        found = [(16 * fine - coarse) / 15 for coarse, fine in zip(*first, strict=True)]
        precision = _precision(given)
        outputs = self.forward(*given)
        if precision is None:
            return tuple(found)
        unit = self._units(precision)[0]
        look = cache(lambda: self._nearby(values, moves, found, unit))

        def nearby(number: int) -> Any:
            return look()[number]

        rows = enumerate(zip(found, first[1], outputs, strict=True))
        return tuple(self._tangent(t, fine, y, precision, partial(nearby, n)) for n, (t, fine, y) in rows)

    def _tangent(self, value: Any, near: Any, output: Any, precision: Precision, nearby: Callable[[], Any]) -> Tracked:
        """A tangent whose widest bound takes in the slopes nearby: a rule may choose any of them at a kink."""
        noise = NOISE * PRECISION["float64"].unit * np.max(np.abs(value_of(output)), initial=1.0)
        rounding = noise + self._floor(precision, value, ())
        error = 8 * np.abs(value - near) + rounding

        def bound(name: str) -> Any:
            if name == "least":
                return error
            wider = error + 8 * error_of(output)
            # A comparison multiplies a bound, and the slopes nearby are known.
            return wider if name == "error" else np.fmax(wider, nearby() / SAFETY + rounding)

        return Deferred(value, precision, bound)

    def _nearby(self, values: Sequence[Any], moves: Sequence[Any], found: Sequence[Any], unit: float) -> Arrays:
        """How far the slopes near the values are from those that were found; infinite where there are none."""
        reach = REACHES.get(self.dtype)
        if reach is None:
            return tuple(np.zeros(np.shape(t)) for t in found)
        pairs = zip(self.arguments, values, strict=False)
        scales = tuple(
            within_domain(a, np.full(np.shape(x), typical(x))) if isinstance(a, Array) and can_move(x, a) else None
            for a, x in pairs
        )
        points = tuple(None if s is None else x for x, s in zip(values, scales, strict=True))

        def at(points: Sequence[Any]) -> Arrays:
            found = self._forward([x if p is None else p for x, p in zip(values, points, strict=True)], ())
            return tuple(y if d else np.zeros(0) for y, d in zip(found, self.differentiable, strict=True))

        # No step may be longer than the way to the nearby points.
        sizes = [(typical(x), float(np.max(np.abs(m), initial=0.0)))
                 for x, m, s in zip(values, moves, scales, strict=True) if m is not None and s is not None]  # fmt: skip
        part = min((size / length for size, length in sizes if length), default=1.0)
        near = Near(at, points, (None,) * len(found), scales, reach.beyond(REACH * unit))
        spreads = near.spreads(tuple(None if m is None else part * m for m in moves), seed=0)
        if spreads is None:
            return tuple(np.full(np.shape(t), np.inf) for t in found)
        rows = zip(spreads, found, self.differentiable, strict=True)
        return tuple(s.off(part * t) / part if d else 0.0 for s, t, d in rows)

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
        # An in-place Function changes these tensors, which are new.
        args = self._tensors(values)
        with self.implementation.no_grad():
            outputs = self._call(args, (), ())
        return tuple(self.implementation.numpy(y) for y in outputs)

    def _vjp(self, values: Sequence[Any], cotangents: Sequence[Any]) -> Arrays:
        slots, outputs, pullback = self._run(values)
        kinds = [self.implementation.describe(y) for y in outputs]
        if any(g is not None and np.shape(g) != y.shape for g, y in zip(cotangents, kinds, strict=True)):
            raise ArithmeticError("an output has another shape with these values")
        given = [
            None if g is None or not d else self.implementation.array(np.array(g, order="C"), kind, self.device)
            for g, d, kind in zip(cotangents, self.differentiable, (y.dtype for y in kinds), strict=True)
        ]
        found: list[Any] = [None] * len(self.arguments)
        for slot, gradient in zip(slots, pullback(given), strict=True):
            if self.arguments[slot].differentiable:
                zeros = np.zeros(np.shape(values[slot]), np.asarray(values[slot]).dtype)
                found[slot] = zeros if gradient is None else self.implementation.numpy(gradient)
        return tuple(found)

    def second(self, weights: Sequence[Any], cotangents: Sequence[Any], *given: Any) -> Arrays:
        """The derivative of <weights, VJP>: one gradient per argument, None for arguments without one."""
        implementation = self.implementation
        args, slots = self._tensors(given), self._floating(given)
        track = [self.arguments[n].differentiable for n in slots]

        def placed(values: Sequence[Any], of: Sequence[Any]) -> list[Any]:
            dtypes = [implementation.describe(x).dtype for x in of]
            rows = zip(values, dtypes, strict=True)
            return [None if v is None else implementation.array(np.array(v), d, self.device) for v, d in rows]

        def vjp(*primals: Any) -> tuple[Any, ...]:
            outputs, pullback = implementation.vjp(lambda *xs: self._call(args, slots, xs), primals, track=track)
            gradients = pullback(placed(cotangents, outputs), differentiable=True)
            rows = zip(gradients, primals, strict=True)
            # The product keeps what does not depend on the inputs in the graph.
            return tuple(0 * x if g is None else g + 0 * x for g, x in rows)

        primals = [args[n] for n in slots]
        _, pullback = implementation.vjp(vjp, primals, track=track)
        gradients = pullback(placed([weights[n] for n in slots], primals))
        found: list[Any] = [None] * len(self.arguments)
        for slot, gradient in zip(slots, gradients, strict=True):
            if self.arguments[slot].differentiable:
                found[slot] = np.zeros(np.shape(given[slot])) if gradient is None else implementation.numpy(gradient)
        return tuple(found)

    # With errors.

    def _bounded(self, compute: Callable[..., Arrays], given: Sequence[Any], cotangents: Sequence[Any]) -> Arrays:
        values, ends = [value_of(x) for x in given], [value_of(g) for g in cotangents]
        precision = _precision((*given, *cotangents))
        if precision is None:
            return compute(values, ends)
        key = (compute.__name__, precision.unit, *map(_key, (*given, *cotangents)))
        if key not in self._known:
            found = compute(values, ends)
            floors = [0.0 if y is None else self._floor(precision, y, ends, given) for y in found]
            errors = _Errors(
                lambda: self._measured(compute, given, cotangents, precision, found, floors),
                lambda: self._jumps(compute, given, cotangents, precision, floors),
            )
            rows = enumerate(zip(found, floors, strict=True))
            self._known[key] = tuple(self._bound(y, floor, errors, n, precision) for n, (y, floor) in rows)
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return tuple(None if x is None else x.around(x.value) for x in self._known[key])

    def _bound(self, value: Any, floor: float, errors: _Errors, number: int, precision: Precision) -> Tracked | None:
        if value is None:
            return None
        return Deferred(value, precision, errors.of(number, self.conditioning * floor if is_floating(value) else 0.0))

    def _measured(
        self, compute: Callable[..., Arrays], given: Sequence[Any], cotangents: Sequence[Any], precision: Precision,
        found: Arrays, floors: Sequence[float],
    ) -> Arrays:  # fmt: skip
        """The errors of the results ``found``; None for None, and 0 for integers."""
        unit, move = self._units(precision)
        # An effect of earlier calls must not count as rounding. So the plain call runs again after a plain call, and
        # moved results are compared with the nearer of the two.
        values, ends = [value_of(x) for x in given], [value_of(g) for g in cotangents]
        compute(values, ends)
        again = compute(values, ends)
        near = [each for each in self._near(compute, given, cotangents, move, unit) if alike(each, found)]
        # The error is unknown if an argument's error is infinite (after an overflow), or if every move raises.
        known = bool(near) and all(np.all(np.isfinite(error_of(x))) for x in (*given, *cotangents))
        errors: list[Any] = []
        for n, (y, floor) in enumerate(zip(found, floors, strict=True)):
            if y is None or not is_floating(y):
                errors.append(None if y is None else np.zeros(y.shape))
                continue
            error = MARGIN * _spread((y, again[n]), [each[n] for each in near]) * (unit / move) + floor
            # A result that may overflow in the dtype has an infinite error.
            fits = np.abs(y) + error <= precision.largest
            errors.append(self.conditioning * np.where(fits & known, error, np.inf))
        return tuple(errors)

    def _units(self, precision: Precision) -> tuple[float, float]:
        """The unit of the dtype under test, and by how much the inputs move."""
        unit = max(precision.unit, PRECISION[self.dtype].unit)
        return unit, max(unit, _SMALLEST_MOVE)

    def _jumps(
        self, compute: Callable[..., Arrays], given: Sequence[Any], cotangents: Sequence[Any], precision: Precision,
        floors: Sequence[float],
    ) -> Arrays:  # fmt: skip
        unit, move = self._units(precision)
        arguments = (*self.arguments[: len(given)], *(None for _ in cotangents))
        count = len(given)
        return jumps(
            lambda inputs: compute(inputs[:count], inputs[count:]),
            list(zip((*given, *cotangents), arguments, strict=True)),
            max(REACH * unit, move),
            floors,
            erratic=self.normwise,
        )

    def _near(
        self, compute: Callable[..., Arrays], given: Sequence[Any], cotangents: Sequence[Any], move: float, unit: float
    ) -> Iterator[Arrays]:
        """The results at moved inputs; moves that the Function refuses are left out."""
        arguments = (*self.arguments[: len(given)], *(None for _ in cotangents))
        for directions in signs((*given, *cotangents)):
            rows = zip((*given, *cotangents), arguments, directions, strict=True)
            other = [moved(x, argument, sign, move, unit, normwise=self.normwise) for x, argument, sign in rows]
            near = attempted(compute, other[: len(given)], other[len(given) :])
            # The move may have left the Function's domain.
            if near is not None:
                yield near

    def _floor(self, precision: Precision, value: Any, cotangents: Sequence[Any], given: Sequence[Any] = ()) -> float:
        """The rounding error that moving the inputs does not show: results below one may come from larger terms."""
        unit = max(precision.unit, PRECISION[self.dtype].unit)
        values = [value_of(x) for x in (*given, *cotangents) if x is not None]
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
    """The errors of all results of a computation, and where they jump: measured when the first one is needed."""

    def __init__(self, measure: Callable[[], Arrays], look: Callable[[], Arrays]) -> None:
        self._measure, self._look = measure, look

    @cached_property
    def found(self) -> Arrays:
        return self._measure()

    @cached_property
    def jumps(self) -> Arrays:
        return self._look()

    def of(self, number: int, least: float) -> Callable[[str], Any]:
        """The bounds of one result, by their names; ``least`` is what the error is at least."""

        def bound(name: str) -> Any:
            if name == "least":
                return least
            error = self.found[number]
            return error if name == "error" else np.where(self.jumps[number], np.inf, error)

        return bound


def joined(values: Deferred, other: Tracked) -> Deferred:
    """The values with their own errors and those of ``other``, where these are finite."""

    def bound(name: str) -> Any:
        own = getattr(values, name)
        return own if name == "least" else own + np.where(np.isfinite(other.error), other.error, 0.0)

    return Deferred(values.value, values.precision, bound)


def inexact(unit: float, terms: int) -> float:
    """The relative error that an approximation, or a sum of so many terms, may have.

    Half of the digits must be right, including the safety factor of comparisons: an operation inside may magnify an
    error that a later one hides from the moves. The roundings of terms add up like random numbers.
    """
    return max((ROUNDINGS + 4 * math.sqrt(terms)) * unit, math.sqrt(unit) / SAFETY)


def _precision(given: Sequence[Any]) -> Precision | None:
    return next((x.precision for x in given if isinstance(x, Tracked)), None)


def _key(x: Any) -> Any:
    if isinstance(x, Tracked):
        return x.value.tobytes(), x.value.shape, x.value.dtype.kind, x.error.tobytes()
    return (x.tobytes(), x.shape, x.dtype.str) if isinstance(x, np.ndarray) else repr(x)


def _spread(plain: Sequence[Any], moved: Sequence[Any]) -> Any:
    """The largest distance of the moved results from the nearer plain result, for each entry."""
    found = np.zeros(plain[0].shape)
    with np.errstate(all="ignore"):
        for near in moved:
            off = [np.abs(numeric(near) - numeric(y)) for y in plain]
            found = np.fmax(found, np.fmin(*off))
    return found
