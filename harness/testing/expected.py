"""The expected results of a call: outputs and gradients of the reference, with the errors that rounding may cause."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from autograd_conformance.implementations.misbehaving import Varies
from autograd_conformance.implementations.protocol import Description
from autograd_conformance.reference.definitions import REAL_OF, Array, Function, Static
from autograd_conformance.reference.ladder import DOUBLE, RESOLUTIONS, directions
from autograd_conformance.reference.rounding import PRECISION, Tracked, round_to
from autograd_conformance.strategies.calls import Call, Tensor, cotangent_values, tensor_values
from autograd_conformance.strategies.values import DOMAINS

_COMPLEX_OF = {real: dtype for dtype, real in REAL_OF.items()}


class Expected:
    """The values of a call in NumPy, and the results of the reference for them.

    ``precision`` is the dtype whose rounding the error bounds cover, by default that of the results that come back.
    ``values`` replaces the values that the call describes.
    """

    def __init__(
        self, function: Function, call: Call, *, values: tuple[Any, ...] | None = None, precision: str | None = None
    ) -> None:
        self.function, self.call = function, call
        self.precision = precision or function.accuracy(call.dtype)
        self.values = tensor_values(call, function) if values is None else values
        self.slots = tuple(i for i, given in enumerate(call.args) if isinstance(given, Tensor))
        arrays = (function.arguments[i] for i in self.slots)
        self.arguments = tuple(a for a in arrays if isinstance(a, Array))
        self.track = tuple(t.requires_grad for t in call.tensors)

    @property
    def undifferentiable(self) -> list[int]:
        """The positions of arguments that are not tensors, or not differentiable."""
        given = enumerate(zip(self.function.arguments, self.call.args, strict=False))
        return [n for n, (argument, value) in given if not (argument.differentiable and isinstance(value, Tensor))]

    def needs(self, count: int) -> tuple[bool, ...]:
        """The expected ``needs_input_grad`` of this length: the call's mask, then False for omitted arguments."""
        return self.call.mask + (False,) * (min(count, len(self.function.arguments)) - len(self.call.args))

    @property
    def unused(self) -> list[int]:
        """The differentiable outputs without a cotangent; empty if the call has no backward."""
        runs = any(self.track) and any(g is not None for g in self.cotangents)
        rows = enumerate(zip(self.function.outputs, self.cotangents, strict=True))
        return [n for n, (output, g) in rows if runs and output.differentiable and g is None]

    def reference_arguments(self, *, exact: bool = False) -> list[Any]:
        """All arguments for the reference, with tracked errors unless ``exact``; None for omitted tensors."""
        found = []
        for number, argument in enumerate(self.function.arguments):
            given = number < len(self.values)
            if not given:
                found.append(None if isinstance(argument, Array) else argument.default)
                continue
            value = self.values[number]
            floating = isinstance(self.call.args[number], Tensor) and argument.differentiable and not exact
            found.append(self._start(value) if floating else value)
        return found

    def _start(self, value: Any) -> Tracked:
        """An input of the reference. If it is cast to a lower precision first, its error is one rounding."""
        start = Tracked.exact(value, self.precision)
        if self.precision != self.call.dtype:
            start.error = start.precision.unit * np.abs(value)
        return start

    @cached_property
    def outputs(self) -> tuple[Tracked, ...]:
        """The reference outputs, with tracked errors; those of integer outputs are zero."""
        outputs = self.function.forward(*self.reference_arguments())
        if len(outputs) != len(self.function.outputs):
            raise Varies(f"{len(outputs)} tensors here, {len(self.function.outputs)} before")
        return tuple(y if isinstance(y, Tracked) else Tracked.exact(y, self.precision) for y in outputs)

    @cached_property
    def output_dtypes(self) -> tuple[str, ...]:
        dtype = self.call.dtype
        pairs = zip(self.outputs, self.function.outputs, strict=True)
        return tuple(output.dtypes.get(dtype) or _dtype_of(y.value, dtype) for y, output in pairs)

    @property
    def descriptions(self) -> list[Description]:
        """The expected shape, dtype and device of each output."""
        device, usual = self.call.device, self.call.dtype
        rows = zip(self.outputs, self.function.outputs, self.output_dtypes, strict=True)
        return [Description(y.shape, d if o.casts else _dtype_of(y.value, usual), device) for y, o, d in rows]

    @cached_property
    def cotangents(self) -> tuple[Any, ...]:
        """The call's cotangents in NumPy, None for unused outputs."""
        return cotangent_values(self.call, [y.shape for y in self.outputs], self.output_dtypes)

    def rounded(self, values: Any, dtype: str) -> Tracked:
        """Values computed in double precision, with the errors of that and of rounding them to a dtype."""
        error = np.abs(values - round_to(values, dtype)) + PRECISION["float64"].unit * np.abs(values)
        return Tracked(values, error, PRECISION[self.precision])

    def dense(self, cotangents: Sequence[Any]) -> tuple[Any, ...]:
        """The cotangents, with zeros for unused differentiable outputs."""
        rows = zip(cotangents, self.function.outputs, self.outputs, strict=True)
        return tuple(np.zeros(y.shape, y.dtype) if g is None and o.differentiable else g for g, o, y in rows)

    def constant_cotangents(self, value: float) -> tuple[Any, ...]:
        """Cotangents with the same number everywhere, None for outputs that are not differentiable."""
        rows = zip(self.function.outputs, self.outputs, strict=True)
        return tuple(np.full(y.shape, value, y.dtype) if o.differentiable else None for o, y in rows)

    def other_cotangents(self) -> tuple[Any, ...]:
        """Other cotangents for the same outputs."""
        other = replace(self.call, seed=self.call.seed + 2, cotangents=self.call.cotangents)
        other = replace(other, cotangents=tuple(c and replace(c, fill="normal") for c in other.cotangents))
        return cotangent_values(other, [y.shape for y in self.outputs], self.output_dtypes)

    @staticmethod
    def blended(first: Sequence[Any], second: Sequence[Any], weight: float = 2.0) -> tuple[Any, ...]:
        """``weight * first + second``, in double precision."""
        pairs = zip(first, second, strict=True)
        return tuple(None if a is None or b is None else weight * a + b for a, b in pairs)

    def points(self) -> tuple[Any, ...]:
        """The tensor arguments that require grad, in NumPy; None for the others."""
        return tuple(self.values[i] if t else None for i, t in zip(self.slots, self.track, strict=True))

    def arguments_at(self, points: Sequence[Any]) -> list[Any]:
        """All arguments for the reference, with these points in place of those that require grad."""
        arguments = self.reference_arguments(exact=True)
        for slot, point in zip(self.slots, points, strict=True):
            if point is not None:
                arguments[slot] = point
        return arguments

    def outputs_at(self, points: Sequence[Any]) -> tuple[Any, ...]:
        """The outputs of the function to differentiate (``soft`` or the forward) at these points."""
        return tuple((self.function.soft or self.function.forward)(*self.arguments_at(points)))

    def directions(self, points: Sequence[Any]) -> tuple[Any, ...]:
        """Directions in which points can move within their arguments' domains; see `reference.ladder.directions`.

        The points are those of the tensor arguments; more points can follow.
        """
        bits = RESOLUTIONS.get(self.function.computes_in, DOUBLE).bits
        found = directions(tuple(points), seed=self.call.seed, bits=bits)
        return (*self.within(found[: len(self.slots)]), *found[len(self.slots) :])

    def within(self, moves: Sequence[Any]) -> tuple[Any, ...]:
        """Moves of the tensor arguments, projected to their domains; those of a symmetric matrix become symmetric."""
        rows = zip(self.arguments, entries(self, moves), strict=True)
        return tuple(None if u is None else within_domain(a, u) for a, u in rows)

    def gradients(self, cotangents: Sequence[Any] | None = None) -> tuple[Tracked | None, ...]:
        """The reference VJP for each tensor argument, None where the argument does not require grad."""
        full = self.vjp(self.cotangents if cotangents is None else cotangents)
        return tuple(g if tracked else None for g, tracked in zip(full, self.track, strict=True))

    def results(self) -> tuple[Tracked | None, ...]:
        """The reference outputs, then its VJP for each tensor argument."""
        return (*self.outputs, *self.gradients())

    def vjp(self, cotangents: Sequence[Any], *, exact: bool = False) -> tuple[Any, ...]:
        """The reference VJP for each tensor argument; a cotangent None counts as zero."""
        dense = self.reference_cotangents(cotangents, exact=exact)
        gradients = self.function.vjp(dense, *self.reference_arguments(exact=exact))
        return tuple(gradients[i] if exact else _lifted(gradients[i], self.precision) for i in self.slots)

    def reference_cotangents(self, cotangents: Sequence[Any], *, exact: bool = False) -> tuple[Any, ...]:
        """The cotangents for the reference, with tracked errors unless ``exact``; a cotangent None counts as zero."""
        rows = zip(cotangents, self.function.outputs, self.outputs, strict=True)
        return tuple(self._dense(g, output.differentiable, y, exact) for g, output, y in rows)

    def _dense(self, cotangent: Any, differentiable: bool, output: Tracked, exact: bool) -> Any:
        if not differentiable:
            return None
        if isinstance(cotangent, Tracked):
            return cotangent
        values = np.zeros(output.shape, output.dtype) if cotangent is None else cotangent
        return values if exact else Tracked.exact(values, self.precision)


def entries(expected: Expected, moves: Sequence[Any]) -> tuple[Any, ...]:
    """Moves of the tensor arguments, without those of numbers that a sparse tensor does not hold."""
    rows = zip(expected.arguments, expected.slots, moves, strict=True)
    return tuple(None if u is None else a.entries(expected.values[slot], u) for a, slot, u in rows)


def _lifted(gradient: Any, precision: str) -> Any:
    return gradient if gradient is None or isinstance(gradient, Tracked) else Tracked.exact(gradient, precision)


def within_domain(argument: Array, move: Any) -> Any:
    """A move of an argument, projected to its domain: that of a symmetric matrix becomes symmetric."""
    move = DOMAINS[argument.values].tangent(move)
    if argument.bounds is None or not np.any(move):
        return move
    low, high = argument.bounds
    # A power of two does not round.
    return move * 2.0 ** min(0.0, np.floor(np.log2((high - low) / np.max(np.abs(move)))))


def _dtype_of(value: Any, dtype: str) -> str:
    """The dtype that an output has when the call's is ``dtype`` and the reference gives ``value``."""
    if value.dtype.kind == "c":
        return _COMPLEX_OF.get(dtype, dtype)
    return REAL_OF.get(dtype, dtype) if value.dtype.kind == "f" else value.dtype.name


def without_gradient(expected: Expected) -> list[int]:
    """The positions of arguments for which backward has nothing to return: all but floating-point tensors."""
    arguments, given = expected.function.arguments, expected.call.args
    return [n for n in expected.undifferentiable if not _floats(arguments[n], given[n])]


def _floats(argument: Array | Static, given: Any) -> bool:
    return isinstance(argument, Array) and argument.dtype is None and isinstance(given, Tensor)
