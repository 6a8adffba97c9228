"""Short tensors in place of long ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from autograd_conformance.reference.definitions import Array, Function, Shapes
from autograd_conformance.strategies.calls import Call, Tensor, reshaped
from autograd_conformance.strategies.shapes import shape_tuples
from autograd_conformance.strategies.simple import with_fill

# The variant of tests with long tensors.
LONG = "long"
# The longest side of short tensors, and the seeds that are tried in these.
SHORT, _SEEDS = 17, 2


def shorter(call: Call, function: Function) -> Iterator[Call]:
    """The call with short tensors that have several entries along each dimension, in other values as well.

    Itself if there are no such shapes.
    """
    pairs = zip(function.arguments, call.args, strict=False)
    given = [value if isinstance(value, Tensor) else None for a, value in pairs if isinstance(a, Array)]
    suiting = [shapes for shapes in shape_tuples(function) if _suit(given, shapes)]
    if not suiting:
        yield call
    for shapes in dict.fromkeys((suiting[0], suiting[-1]) if suiting else ()):
        for seed in range(_SEEDS):
            for fill in ("", "dense", "increasing"):
                other = reshaped(replace(call, seed=call.seed + seed), shapes, function)
                yield call if other is None else with_fill(function, other, fill)


def cut(call: Call, function: Function, longest: int, side: int) -> Call | None:
    """The call with each side that is as long as the ``longest`` cut to another length; None if it takes no such."""
    sides = {tensor: tuple(side if n == longest else n for n in tensor.shape) for tensor in call.tensors}
    pairs = zip(function.arguments, call.args, strict=False)
    shapes = [sides[value] if isinstance(value, Tensor) else () for a, value in pairs if isinstance(a, Array)]
    return reshaped(call, tuple(shapes), function)


def is_short(call: Call) -> bool:
    """Whether no tensor is long."""
    return all(side <= SHORT for tensor in call.tensors for side in tensor.shape)


def _suit(given: Sequence[Tensor | None], shapes: Shapes) -> bool:
    rows = zip(given, shapes, strict=False)
    alike = all(tensor is None or len(tensor.shape) == len(shape) for tensor, shape in rows)
    return alike and all(1 < side <= SHORT for shape in shapes for side in shape)
