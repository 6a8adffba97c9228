"""Calls at matrices with equal eigenvalues, where formulas divide by their differences."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np

from autograd_conformance.reference.definitions import Array, Function, Shapes
from autograd_conformance.strategies.calls import Call, Tensor, reshaped
from autograd_conformance.strategies.shapes import shape_tuples
from autograd_conformance.strategies.values import MATRICES

# The sides of matrices that are large enough, and small enough to look at every direction.
_SIDES = (2, 3, 4)


@lru_cache
def matrix_shapes(function: Function) -> tuple[Shapes, ...]:
    """The shapes of a Function in which an argument has square matrices that may be any, or any definite ones."""
    slots = [n for n, argument in enumerate(function.arrays) if _admits(argument)]
    return tuple(
        shapes
        for shapes in shape_tuples(function)
        if slots and all(0 not in shape for shape in shapes) and any(shapes[n][-1] in _SIDES for n in slots)
    )


def _admits(argument: Any) -> bool:
    if not (isinstance(argument, Array) and argument.differentiable):
        return False
    sides = argument.dims.split()[-2:]
    free = argument.make is None and argument.wrap is None and argument.bounds is None
    square = len(sides) == 2 and sides[0] == sides[1] and sides[0][0] not in "*~"
    return free and square and argument.values in ("any", "free", "definite", "symmetric", "full")


def at_matrices(call: Call, function: Function) -> tuple[Call, ...]:
    """The call with each such matrix of each side in one argument or more; one that has them already stays as it is."""
    if any(tensor.fill in MATRICES for tensor in call.tensors):
        return (call,)
    rng, sized = np.random.default_rng(call.seed), {side: _of_side(call, function, side) for side in _SIDES}
    found = []
    for name, matrix in MATRICES.items():
        for side, moved in sized.items():
            slots = [n for n in _slots(moved, function, side) if matrix.definite or _takes_zero(function, n)]
            if slots and side >= matrix.least:
                first, *others = rng.permutation(slots)
                found.append(_filled(moved, name, {first, *(n for n in others if rng.random() < 0.5)}))
    return tuple(found)


def _of_side(call: Call, function: Function, side: int) -> Call:
    """The call with matrices of that side, in the same ranks, if it can have them."""
    ranks = [len(tensor.shape) for tensor in call.tensors]
    fitting = (shapes for shapes in matrix_shapes(function) if [len(shape) for shape in shapes] == ranks)
    moved = (reshaped(call, shapes, function) for shapes in fitting)
    return next((c for c in chain([call], moved) if c is not None and _slots(c, function, side)), call)


def _slots(call: Call, function: Function, side: int) -> list[int]:
    """The arguments that have matrices of that side, and may have any."""
    rows = enumerate(zip(function.arguments, call.args, strict=False))
    return [n for n, (argument, x) in rows if isinstance(x, Tensor) and _admits(argument) and x.shape[-1] == side]


def _filled(call: Call, name: str, slots: set[int]) -> Call:
    args = (replace(x, fill=name, specials=()) if n in slots else x for n, x in enumerate(call.args))
    return replace(call, args=tuple(args))


def _takes_zero(function: Function, slot: int) -> bool:
    argument = function.arguments[slot]
    return isinstance(argument, Array) and argument.values not in ("definite", "full")
