"""Calls with every number of a 16-bit dtype in one tensor, for Functions that map single entries."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from autograd_conformance.reference.definitions import Array, Function, Shape
from autograd_conformance.strategies.calls import Call, Cotangent, Tensor
from autograd_conformance.strategies.shapes import long_shape, shape_tuples
from autograd_conformance.strategies.values import DOMAINS

HALF = ("float16", "bfloat16")
# The numbers of a 16-bit dtype.
NUMBERS = 2**16

# The most entries of a tensor to try.
_MANY = 81

# Fixed lengths beside the long one, as in float[n,768], whose product is larger make a sweep too long.
_MOST_BESIDE = 16
# The values of the domains that do not take every number.
_ADMITTED = {
    "positive": lambda x: x >= 0.125,
    "nonzero": lambda x: np.abs(x) >= 0.125,
    "unit": lambda x: (x > 0) & (x < 1),
}


def mapped(function: Function) -> int | None:
    """The position of the only tensor of a Function, if each of its entries may have any number of its domain."""
    found = [n for n, argument in enumerate(function.arguments) if isinstance(argument, Array)]
    argument = function.arguments[found[0]]
    assert isinstance(argument, Array)
    free = argument.differentiable and argument.make is None and argument.wrap is None
    domain = argument.values in (*_ADMITTED, "any", "free") and DOMAINS[argument.values].elementwise
    return found[0] if len(found) == 1 and free and domain and len(function.outputs) == 1 else None


def numbers(dtype: str, argument: Array) -> Any:
    """Every number of a 16-bit dtype that the argument takes, some of them repeatedly; in double precision."""
    return np.resize(_admitted(dtype, argument), NUMBERS)


def _admitted(dtype: str, argument: Array) -> Any:
    """The numbers of a 16-bit dtype that the argument takes."""
    bits = np.arange(NUMBERS, dtype=np.uint32)
    kept = bits.astype(np.uint16).view(np.float16) if dtype == "float16" else (bits << 16).view(np.float32)
    found = kept[np.isfinite(kept)].astype(np.float64)
    if argument.bounds is not None:
        low, high = argument.bounds
        found = found[(found > low) & (found < high)]
    elif argument.values in _ADMITTED:
        found = found[_ADMITTED[argument.values](found)]
    return found


def swept_calls(function: Function, dtype: str, length: int = NUMBERS, device: str = "cpu") -> Iterator[Call]:
    """Calls of a long tensor in that dtype, one for each choice of the other arguments."""
    slot, shape = mapped(function), long_shape(function, length)
    if slot is None or shape is None or math.prod(shape) > _MOST_BESIDE * length:
        return
    argument = function.arguments[slot]
    assert isinstance(argument, Array)
    if len(_admitted(dtype, argument)):
        yield from _calls(function, slot, shape, dtype, device)


def tried_calls(function: Function, dtype: str) -> Iterator[Call]:
    """Calls of tensors with several entries along each dimension, as far as the shapes admit, for each rank."""
    slot = mapped(function)
    by_rank: dict[int, Shape] = {}
    for (shape,) in shape_tuples(function):
        known = by_rank.get(len(shape), ())
        if 0 not in shape and np.prod(shape) <= _MANY and _sides(shape) > _sides(known):
            by_rank[len(shape)] = shape
    for shape in by_rank.values():
        if slot is not None:
            yield from _calls(function, slot, shape, dtype, "cpu")


def _sides(shape: Shape) -> tuple[int, int]:
    """How many sides have several entries, and the number of all entries."""
    return sum(side > 1 for side in shape), math.prod(shape)


def _calls(function: Function, slot: int, shape: Shape, dtype: str, device: str) -> Iterator[Call]:
    given = [
        [Tensor(shape, dtype, True)] if n == slot else argument.choices((shape,))  # type: ignore[union-attr]
        for n, argument in enumerate(function.arguments)
    ]
    for args in itertools.product(*given):
        yield Call(function.name, args, (Cotangent(),), device)


def at_number(call: Call, value: float, function: Function) -> Call:
    """The call of a single entry with this value, or of as few equal ones as the shapes admit."""
    rank = len(call.tensors[0].shape)
    among = [shape for (shape,) in shape_tuples(function) if all(shape)]
    shape = next((shape for shape in among if len(shape) == rank), among[0])
    size = int(np.prod(shape))
    args = tuple(
        replace(a, shape=shape, specials=tuple((place, value) for place in range(size))) if isinstance(a, Tensor) else a
        for a in call.args
    )
    return replace(call, args=args)
