"""Tensors without elements, and the calls like one with them that have elements."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator

from autograd_conformance.reference.definitions import Array, Function, Shapes
from autograd_conformance.strategies.calls import Call, Tensor, reshaped
from autograd_conformance.strategies.shapes import shape_tuples

# How many calls with elements must run where one without them raises.
_FULL = 3


def has_empty(call: Call) -> bool:
    """Whether a tensor of the call has no elements."""
    return any(0 in tensor.shape for tensor in call.tensors)


def with_elements(function: Function, call: Call) -> Iterator[Call]:
    """The call in shapes of the same ranks with elements."""
    arrays = zip(function.arguments, call.args, strict=False)
    given = [a if isinstance(a, Tensor) else None for argument, a in arrays if isinstance(argument, Array)]
    for shapes in shape_tuples(function):
        # A tensor that is not given may have any shape.
        pairs = list(zip(given, shapes, strict=False))
        alike = all(tensor is None or len(tensor.shape) == len(shape) for tensor, shape in pairs)
        if alike and not any(0 in shape for _, shape in pairs):
            full = reshaped(call, shapes, function)
            if full is not None:
                yield full


def lacks_elements(function: Function, call: Call, runs: Callable[[Call], bool]) -> bool:
    """Whether a call that does not run lacks elements alone: calls like it that have elements run."""
    full = list(itertools.islice(with_elements(function, call), _FULL)) if has_empty(call) else []
    return bool(full) and all(map(runs, full))


def pattern(shapes: Shapes) -> tuple[tuple[bool, ...], ...]:
    """Which dimensions of the shapes are empty."""
    return tuple(tuple(side == 0 for side in shape) for shape in shapes)


def where(function: Function, raising: Iterable[Shapes]) -> str:
    """Of which tensor which dimension is empty in these shapes, and in no others; empty if it is not one alone."""
    known, found = patterns(function), set(map(pattern, raising))
    for number, array in enumerate(function.arrays):
        # From the end, as the last one is of any rank.
        for axis in range(-1, -1 - max((len(each[number]) for each in known), default=0), -1):
            if found and found == {each for each in known if len(each[number]) >= -axis and each[number][axis]}:
                if all(len(each[number]) < 2 for each in known):
                    # Of one dimension that goes without saying.
                    return ""
                which = {-1: "the last dimension"}.get(axis, f"dimension {axis}")
                return f"only where {which} of argument {function.arguments.index(array)} ({array.name}) is 0"
    return "whatever dimension is 0" if found and found == set(known) else ""


def patterns(function: Function) -> dict[tuple[tuple[bool, ...], ...], Shapes]:
    """The simplest shapes without elements for each `pattern`."""
    found = dict[tuple[tuple[bool, ...], ...], Shapes]()
    for shapes in shape_tuples(function):
        if any(0 in shape for shape in shapes):
            found.setdefault(pattern(shapes), shapes)
    return found
