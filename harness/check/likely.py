"""The likely cause of a wrong number, where the failing call points to one that its property does not name."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from autograd_conformance.harness.check import lazy
from autograd_conformance.harness.check.declaration import Declaration, Own
from autograd_conformance.harness.checking.example import Example
from autograd_conformance.harness.checking.expected import Expected
from autograd_conformance.harness.checking.integers import repeating
from autograd_conformance.reference.definitions import Function
from autograd_conformance.strategies.calls import Call, recast, reshaped, with_cotangents, with_inputs
from autograd_conformance.strategies.layouts import LAYOUTS
from autograd_conformance.strategies.shapes import shape_tuples

# The other shapes in which a layout is tried.
_SHAPES = 3
# How far a point moves to show whether outputs change with it.
_MOVED = 2.0**-8

# So many calls with equal indices, and so many without, of those tried; the elements of a small tensor, and its seeds.
_CALLS, _TRIED, _SMALL, _SEEDS = 6, 400, 12, 4
_REAL = {"complex128": "float64", "complex64": "float32"}

# Relative errors of the size of a rounding to float32, and the dtypes in which they say something.
_SINGLE = 2.0**-32, 2.0**-22
_DOUBLE = ("float64", "complex128")


def of_size(call: Call, got: Any, expected: Any) -> str:
    """The cause if a result in double precision is off by a rounding to float32; empty otherwise."""
    if call.dtype not in _DOUBLE or not all(isinstance(x, int | float | complex | np.number) for x in (got, expected)):
        return ""
    least, most = _SINGLE
    error = abs(got - expected)
    if not least * abs(expected) <= error <= most * abs(expected) or error == 0:
        return ""
    return (
        f"something is computed in float32: the relative error {error / abs(expected):.1g} is that of its rounding; a "
        "Python number that becomes a tensor (torch.tensor, full, where) is float32 unless dtype=x.dtype is given"
    )


def of_declared(declaration: Declaration, about: str) -> str:
    """The cause of a wrong slope if backward is declared to be another function's derivative; empty otherwise."""
    if about != "VJP-FD" or declaration.soft is None:
        return ""
    return (
        "backward is not the derivative of the function declared as soft=: a factor, a sign, a condition; or soft= "
        "is not the function that is meant (finite differences see what it computes behind detach(), too)"
    )


def missing(example: Example) -> frozenset[int]:
    """The positions of arguments for which backward returns None, although the outputs change with them."""
    expected = example.expected
    try:
        gradients, points = example.run()[1], expected.points()
        moves = expected.directions(points)
        rows = zip(expected.slots, example.track, gradients, strict=True)
        none = [number for number, (_, tracked, g) in enumerate(rows) if tracked and g is None]
        return frozenset(expected.slots[n] for n in none if _changes(expected, points, n, moves[n]))
    except Exception:  # noqa: BLE001 - a user's Function may raise anything
        return frozenset()


def _changes(expected: Expected, points: Sequence[Any], number: int, move: Any) -> bool:
    """Whether the outputs of the function to differentiate change if this point moves."""
    moved = [x + _MOVED * move if n == number else x for n, x in enumerate(points)]
    pairs = zip(expected.outputs_at(points), expected.outputs_at(moved), strict=True)
    return any(not np.array_equal(a, b, equal_nan=True) for a, b in pairs)


def of_missing(function: Own, slots: Collection[int]) -> str:
    """The cause if all that is wrong is that backward returns None for the arguments at these positions."""
    names = " and ".join(f"argument {slot} ({function.arguments[slot].name})" for slot in sorted(slots))
    declared = " and ".join(repr(f"{function.declaration.arguments[slot]} constant") for slot in sorted(slots))
    return (
        f"backward returned None for {names}, whose gradient is not zero; return the gradient; if it is meant to have "
        f"no gradient, declare it constant: {declared}"
    )


def of_overflow(call: Call, about: str, got: Any, expected: Any) -> str:
    """The cause if a result is infinite where a number is expected; empty otherwise."""
    if not all(isinstance(x, int | float | complex | np.number) for x in (got, expected)):
        return ""
    if not np.isinf(got) or not np.isfinite(expected):
        return ""
    where = "forward" if about.startswith("FWD") else "backward"
    return (
        f"{where} divides by a number that is 0 or tiny, or a product, power or sum overflows in {call.dtype}; divide "
        "or scale first, or compute that part in a wider dtype"
    )


def of_equal_indices(function: Function, call: Call, right: Callable[[Call], bool]) -> str:
    """The cause if small calls are wrong where an index has equal entries, and only there; empty otherwise.

    ``right`` says whether a call is not found to be wrong.
    """
    slots = repeating(function, call)
    if not slots:
        return ""
    found: dict[bool, list[bool]] = {True: [], False: []}
    for each in islice(_small(function, call), _TRIED):
        kind = found[bool(repeating(function, each) & slots)]
        if len(kind) < _CALLS:
            kind.append(right(each))
        if False in found[False] or all(len(kind) == _CALLS for kind in found.values()):
            break
    enough = all(len(kind) > _CALLS // 2 for kind in found.values())
    # Equal entries that are masked, or beyond a length, may be right.
    if not enough or not all(found[False]) or sum(found[True]) > len(found[True]) // 2:
        return ""
    names = " and ".join(f"argument {slot} ({function.arguments[slot].name})" for slot in sorted(slots))
    return (
        f"where entries of {names} are equal, their gradients are assigned, where they have to be added: index_add_, "
        "scatter_add_, or index_put_ with accumulate=True"
    )


def _small(function: Function, call: Call) -> Iterator[Call]:
    """The call in small shapes, with several numbers in each."""
    for shapes in shape_tuples(function):
        if all(0 < math.prod(shape) <= _SMALL for shape in shapes):
            moved = reshaped(call, shapes, function)
            if moved is not None:
                yield from (replace(moved, seed=seed) for seed in range(_SEEDS))


def of_conjugates(function: Function, call: Call, right: Callable[[Call], bool]) -> str:
    """The cause if a call is wrong in complex numbers, and not in real ones, if there are any; empty otherwise.

    ``right`` says whether a call is not found to be wrong.
    """
    if call.dtype in _REAL and _REAL[call.dtype] not in function.dtypes:
        return (
            "backward is not the derivative of forward: a factor that is not conjugated (g * x.conj() for x * y), a "
            "sign, a missing sum over a broadcast dimension"
        )
    if call.dtype not in _REAL or not right(recast(call, _REAL[call.dtype], function)):
        return ""
    return (
        "right in real numbers: a factor of backward is not conjugated (g * x.conj() for x * y), or its real part, or "
        "a factor of 2, is missing or too many"
    )


def of_layouts(function: Function, call: Call, right: Callable[[Call], bool]) -> str:
    """The cause if, of all layouts, the lazy ones alone are wrong; empty otherwise.

    ``right`` says whether a call is not found to be wrong.
    """
    layouts, plain = lazy.layouts_of(call), lazy.resolved(call)
    if not layouts or not right(plain) or not all(map(right, _in_other_layouts(function, plain))):
        return ""
    return (
        f"the memory of a tensor that is {' or '.join(sorted(layouts))} lazily is read, which holds other numbers; "
        f"{lazy.advice(layouts)}; contiguous() is not enough"
    )


def _in_other_layouts(function: Function, call: Call) -> Iterator[Call]:
    """The call in each layout that is not lazy, in its own shapes and in some that have more orders."""
    larger = sorted(shape_tuples(function), key=lambda shapes: -sum(side > 1 for shape in shapes for side in shape))
    moved = (reshaped(call, shapes, function) for shapes in larger if not any(0 in shape for shape in shapes))
    others = [other for other, _ in zip(filter(None, moved), range(_SHAPES), strict=False)]
    for each in (call, *others):
        for layout in LAYOUTS:
            if not lazy.advice([layout]):
                yield with_cotangents(each, layout)
                # An expanded input has other values, which its domain may not have.
                yield each if layout == "expanded" else with_inputs(each, layout)
