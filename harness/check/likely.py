"""The likely cause of a wrong number, where the failing call points to one that its property does not name."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from autograd_conformance.harness.check import lazy
from autograd_conformance.reference.definitions import Function
from autograd_conformance.strategies.calls import Call, reshaped, with_cotangents, with_inputs
from autograd_conformance.strategies.layouts import LAYOUTS
from autograd_conformance.strategies.shapes import shape_tuples

# The other shapes in which a layout is tried.
_SHAPES = 3


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
