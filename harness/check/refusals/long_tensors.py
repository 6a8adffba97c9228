"""Long tensors for a user's Function: lengths beyond the blocks of kernels, as far as it takes them in little time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from autograd_conformance.harness.check.declaration.declaration import Own
from autograd_conformance.harness.check.refusals.cost import took
from autograd_conformance.harness.check.refusals.declined import raised_by_forward, simple_arguments
from autograd_conformance.harness.check.refusals.exceptions import deliberate
from autograd_conformance.harness.testing.example import Example
from autograd_conformance.harness.testing.own_faults import noticed
from autograd_conformance.harness.testing.subject import Subject
from autograd_conformance.reference.definitions import Array, Function, Shapes
from autograd_conformance.strategies.calls import Call, Cotangent, Tensor, reshaped
from autograd_conformance.strategies.shapes import block_shape_tuples, shape_tuples
from autograd_conformance.strategies.values import DOMAINS

# The variant of tests with long tensors.
LONG = "long"
# A little more than one or several blocks of 32, 64, 128, 256 or 1024 elements.
LENGTHS = (65, 130, 257, 1025)
# Whole blocks, and one element more. Slow calls are of kernels that somebody wrote.
BORDERS = (16, 17, 32, 33, 64, 65, 128, 129, 256, 257, 1024, 1025)
# The longest side of short tensors, and the seeds that are tried in these.
_SHORT, _SEEDS = 17, 2
# The short sides to try instead of a long one; parts of the last are tried with the values of the long tensor.
_SIDES = (3, 4, 5, 8, 17, 16)
# The time of forward and backward beyond which no longer tensors are tried, and as a multiple of that of short ones.
_SECONDS, _LONGER = 0.01, 4.0
# How often a call is made again that takes too long, but not so many times as long as it may.
_AGAIN, _FAR = 4, 10


def long_shapes(subject: Subject, usual: float = 0.0) -> tuple[tuple[Shapes, ...], str]:
    """Shapes with one long dimension that the Function takes, the shortest first; and which lengths are left out.

    Each dimension whose sizes are not declared is long in some of them. ``usual`` are the seconds that a call of a
    slow Function takes.
    """
    found: list[Shapes] = []
    most = max(_SECONDS, _LONGER * usual)
    for before, length in pairwise((_SHORT, *(BORDERS if usual else LENGTHS))):
        each = block_shape_tuples(subject.function, (length,))
        timed = {shapes: _seconds(subject, shapes, most) for shapes in each}
        found += [shapes for shapes, seconds in timed.items() if seconds is not None and seconds <= most]
        if any(seconds is not None and seconds > most for seconds in timed.values()):
            return tuple(found), f"lengths tried: up to {before} (longer ones take too long)"
    return tuple(found), ""


def _seconds(subject: Subject, shapes: Shapes, most: float) -> float | None:
    """The seconds of a call in these shapes, once they are at most so many; None if forward refuses it.

    None of the time where anything else raises: the tests report that.
    """
    assert isinstance(subject.function, Own)
    call = simple_call(subject.function, shapes)
    refusal = raised_by_forward(subject, call)
    if refusal is not None:
        return None if deliberate(refusal) else 0.0
    example = subject.made(call)
    try:
        # The first calls may prepare what later ones use, and what takes far too long is not made again.
        seconds = took(example)
        left = _AGAIN if seconds <= _FAR * most else 1
        while seconds > most and left:
            seconds, left = min(seconds, took(example)), left - 1
        return seconds
    except Exception as raised:  # noqa: BLE001 - forward took the call, so backward must not raise
        noticed(raised)
        return 0.0


def shorter(call: Call, function: Own) -> Iterator[Call]:
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
                yield call if other is None else _filled(other, function, fill)


def short_parts(example: Example) -> Iterator[tuple[str, Example]]:
    """The call with a short side instead of each long one, in its own values, and in each part of those of the call.

    Each with a sentence that is true if it is wrong.
    """
    call, function = example.call, example.function
    longest = max((side for tensor in call.tensors for side in tensor.shape), default=0)
    for side in _SIDES if longest > _SHORT else ():
        cut = _cut(call, function, longest, side)
        if cut is None:
            return
        short = example.of(cut)
        yield f"not a limit of the length: tensors of length {side} are wrong as well", short
        for start in range(0, longest - side + 1, side) if side == _SIDES[-1] else ():
            part = slice(start, start + side)
            values = {
                number: example.values[slot][tuple(part if n == longest else slice(None) for n in tensor.shape)]
                for number, (slot, tensor) in enumerate(zip(example.slots, call.tensors, strict=True))
            }
            where = f"the entries from {start} to {start + side - 1}"
            yield (
                f"not the length: {where} are wrong in a short tensor as well, so look at their values",
                short.given(values),
            )


def _cut(call: Call, function: Function, longest: int, side: int) -> Call | None:
    sides = {tensor: tuple(side if n == longest else n for n in tensor.shape) for tensor in call.tensors}
    pairs = zip(function.arguments, call.args, strict=False)
    shapes = [sides[value] if isinstance(value, Tensor) else () for a, value in pairs if isinstance(a, Array)]
    return reshaped(call, tuple(shapes), function)


def is_short(call: Call) -> bool:
    """Whether no tensor is long."""
    return all(side <= _SHORT for tensor in call.tensors for side in tensor.shape)


def _suit(given: Sequence[Tensor | None], shapes: Shapes) -> bool:
    rows = zip(given, shapes, strict=False)
    alike = all(tensor is None or len(tensor.shape) == len(shape) for tensor, shape in rows)
    return alike and all(1 < side <= _SHORT for shape in shapes for side in shape)


def _filled(call: Call, function: Own, fill: str) -> Call:
    """The call with that fill in each tensor whose domain has it."""
    args = [
        replace(value, fill=fill)
        if isinstance(value, Tensor) and isinstance(a, Array) and fill in DOMAINS[a.values].fills
        else value
        for a, value in zip(function.arguments, call.args, strict=False)
    ]
    return replace(call, args=tuple(args))


def simple_call(function: Own, shapes: Shapes, number: int = 0) -> Call:
    """A call that no Function has a good reason to refuse: contiguous tensors in the most precise dtype.

    ``number`` chooses among the values of arguments that are not tensors, and is the seed.
    """
    choices = [a.choices(shapes) for a in function.arguments if not isinstance(a, Array)]
    args = simple_arguments(function, shapes, [c[number % len(c)] for c in choices], function.dtypes[0])
    cotangents = tuple(Cotangent() if output.differentiable else None for output in function.outputs)
    return Call(function.name, args, cotangents, seed=number)
