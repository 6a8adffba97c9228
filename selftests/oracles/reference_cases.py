"""Calls of the declared Functions with what their references give for them, in plain NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from zlib import crc32

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings

from autograd_conformance.reference.definitions import Array, Function
from autograd_conformance.reference.ladder import directions
from autograd_conformance.reference.rounding import PRECISION, SAFETY, Tracked
from autograd_conformance.strategies.calls import Call, Tensor, calls, cotangent_values, tensor_values

DOUBLE = ("float64", "complex128")


def for_calls(function: Function, check: Callable[[Call], Any], *, examples: int = 40, **restrictions: Any) -> None:
    """Check the same drawn calls on every machine."""

    @seed(crc32(function.name.encode()))
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(calls(function, **restrictions))
    def run(call: Call) -> None:
        check(call)

    run()


def doubles(function: Function) -> tuple[str, ...]:
    return tuple(d for d in function.dtypes if d in DOUBLE)


def arguments(function: Function, call: Call) -> tuple[Any, ...]:
    """All arguments of the call in plain NumPy, with the defaults of those that it omits."""
    passed = tensor_values(call, function)
    rest = function.arguments[len(passed) :]
    return (*passed, *(None if isinstance(a, Array) else a.default for a in rest))


def differentiable_slots(function: Function, call: Call) -> list[int]:
    """The positions of the differentiable arguments that the call gives as tensors."""
    tensors = enumerate(zip(function.arguments, call.args, strict=False))
    return [i for i, (a, t) in tensors if a.differentiable and isinstance(t, Tensor)]


class Case:
    """A call's arguments, cotangents and reference results in plain NumPy."""

    def __init__(self, function: Function, call: Call) -> None:
        self.function, self.call = function, call
        self.args = arguments(function, call)
        self.slots = differentiable_slots(function, call)
        self.outputs = function.forward(*self.args)
        shapes = [np.shape(y) for y in self.outputs]
        dtypes = [np.asarray(y).dtype.name for y in self.outputs]
        found = cotangent_values(call, shapes, dtypes)
        self.cotangents = tuple(
            g if g is not None or not o.differentiable else np.zeros(shape, dtype)
            for g, o, shape, dtype in zip(found, function.outputs, shapes, dtypes, strict=True)
        )
        self.points = tuple(self.args[i] for i in self.slots)
        self.direction = directions(self.points, seed=call.seed)

    def at(self, points: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments with the differentiable ones replaced."""
        args = list(self.args)
        for slot, point in zip(self.slots, points, strict=True):
            args[slot] = point
        return tuple(args)

    def f(self, points: tuple[Any, ...]) -> tuple[Any, ...]:
        return self.function.forward(*self.at(points))

    def gradients(self, cotangents: tuple[Any, ...] | None = None) -> tuple[Any, ...]:
        found = self.function.vjp(self.cotangents if cotangents is None else cotangents, *self.args)
        return tuple(np.asarray(found[i]) for i in self.slots)

    def tangents(self, direction: tuple[Any, ...]) -> tuple[Any, ...]:
        """One entry per argument, as `Function.jvp` takes them."""
        found: list[Any] = [None] * len(self.args)
        for slot, u in zip(self.slots, direction, strict=True):
            found[slot] = u
        return tuple(found)

    def tracked(self, arrays: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(Tracked.exact(a, "float64") if _floating(a) else a for a in arrays)

    def tracked_arguments(self) -> tuple[Any, ...]:
        return self.at(self.tracked(self.points))

    def gradient_rounding(self, cotangents: tuple[Any, ...], along: tuple[Any, ...]) -> float:
        """What the inner product of the computed gradients and a direction may be off by, and summing it."""
        found = self.function.vjp(self.tracked(cotangents), *self.tracked_arguments())
        return rounding_along([found[i] for i in self.slots], along)

    def tangent_rounding(self, direction: tuple[Any, ...], along: tuple[Any, ...]) -> float:
        assert self.function.jvp is not None
        found = self.function.jvp(self.tracked(self.tangents(direction)), *self.tracked_arguments())
        return rounding_along(found, along)


def _floating(value: Any) -> bool:
    return isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "fc"


def rounding_along(arrays: Any, along: Any) -> float:
    total = 0.0
    for array, u in zip(arrays, along, strict=True):
        if array is not None and u is not None and np.size(u):
            value, error = (array.value, array.error) if isinstance(array, Tracked) else (array, 0.0)
            size = np.abs(u)
            passed = np.sum(np.where(size > 0, error, 0.0) * size)
            total += SAFETY * float(passed + np.size(u) * PRECISION["float64"].unit * np.sum(np.abs(value) * size))
    return total
