"""Calls that are simpler than a given one: towards those that Hypothesis finds by shrinking, in fewer steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from autograd_conformance.reference.definitions import Array, Function
from autograd_conformance.strategies.calls import (
    Call,
    Tensor,
    contiguous,
    recast,
    reshaped,
    same,
    with_cotangents,
    with_fill_of_cotangents,
    with_inputs,
)
from autograd_conformance.strategies.changes import masking_nothing, shapes_of, using_every_output, with_argument
from autograd_conformance.strategies.shapes import smaller_shape_tuples
from autograd_conformance.strategies.values import fills_of

Simpler = Callable[[Function, Call], Call]


def simpler(function: Function, call: Call, dtypes: Sequence[str], *, special: bool) -> Iterator[Call]:
    """Calls that are simpler than this one, in one of the ``dtypes``: first what is simplest, then in one thing each.

    Shrinks towards the first dtype, every tensor requiring grad, every output used, contiguous layouts, the simplest
    values and few elements. If the test is about ``special`` values, these stay.
    """
    earlier = map(_recast_to, dtypes[: dtypes.index(call.dtype)] if call.dtype in dtypes else ())
    ways = [*_LAYOUTS, *_MASKS, *([] if special else _VALUES), *_DRAWN, *earlier]
    plain = call
    for way in (*ways, *map(_recast_to, dtypes[:1])):
        plain = way(function, plain)
    each = (way(function, call) for way in ways)
    # By their text, since 0 and False are equal.
    others = {repr(other): other for other in (plain, *each)}
    yield from (other for text, other in others.items() if text != repr(call))
    yield from _with_earlier_choices(function, call)
    yield from _in_smaller_shapes(function, call)


def _recast_to(dtype: str) -> Simpler:
    return lambda function, call: recast(call, dtype, function)


def _without_specials(function: Function, call: Call) -> Call:
    # Values that a declaration lists are written as special ones.
    listed = {n for n, argument in enumerate(function.arguments) if getattr(argument, "drawn", None) is not None}
    args = (
        replace(a, specials=()) if isinstance(a, Tensor) and n not in listed else a for n, a in enumerate(call.args)
    )
    return replace(call, args=tuple(args))


def _with_simple_fills(function: Function, call: Call) -> Call:
    pairs = zip(function.arguments, call.args, strict=False)
    return replace(call, args=tuple(_simply_filled(argument, given, call.smooth) for argument, given in pairs))


def _simply_filled(argument: Any, given: Any, smooth: bool) -> Any:
    if not isinstance(given, Tensor) or argument.dtype is not None:
        return given
    return replace(given, fill=fills_of(argument, smooth)[0])


_LAYOUTS: tuple[Simpler, ...] = (
    lambda _, call: contiguous(call),
    lambda _, call: with_cotangents(call, "contiguous"),
    lambda _, call: with_inputs(call, "contiguous"),
)
_MASKS: tuple[Simpler, ...] = (masking_nothing, using_every_output)
_VALUES: tuple[Simpler, ...] = (_without_specials, _with_simple_fills)
_DRAWN: tuple[Simpler, ...] = (
    lambda _, call: with_fill_of_cotangents(call, "ones"),
    lambda _, call: replace(call, seed=0),
)


def _with_earlier_choices(function: Function, call: Call) -> Iterator[Call]:
    """The call with each value of an argument that comes before the call's own."""
    shapes = shapes_of(function, call)
    for slot, (argument, given) in enumerate(zip(function.arguments, call.args, strict=False)):
        for value in () if shapes is None or isinstance(argument, Array) else argument.choices(shapes):
            if same(value, given):
                break
            yield with_argument(call, slot, value)


def _in_smaller_shapes(function: Function, call: Call) -> Iterator[Call]:
    shapes = shapes_of(function, call)
    if shapes is not None:
        moved = (reshaped(call, smaller, function) for smaller in smaller_shape_tuples(function, shapes))
        yield from (other for other in moved if other is not None)
