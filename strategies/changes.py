"""Changes: other calls that differ from a failing one in one thing, which may be what makes it fail.

`CHANGES` has them, nearest to the cause first. To look for one before another, move its line. Those of a property also
say which one a failure follows from: they are made one after the other, until the call is right.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice, zip_longest
from typing import Any

from autograd_conformance.reference.definitions import REAL_OF, Array, Function, Shapes, Static
from autograd_conformance.reference.rounding import PRECISION
from autograd_conformance.strategies.calls import (
    Call,
    Cotangent,
    Tensor,
    copied,
    masked,
    recast,
    reshaped,
    same,
    with_copied_cotangents,
    with_fill_of_cotangents,
)
from autograd_conformance.strategies.integers import repeating
from autograd_conformance.strategies.shapes import along, equal_sides, shape_tuples, steps

# The most other values of an argument.
_VALUES = 4
# The seeds and shapes among which those are sought that give different values.
_DRAWS, _SHAPES = 50, 10
# The most elements of a call whose dimensions are made equally long.
_MOST = 2**17
# Numbers for which a Function may have a branch of its own.
_SPECIAL = (0.0, 1.0, -1.0)


@dataclass(frozen=True)
class Alternative:
    """Another choice for one of the failing call's: each of ``calls`` differs from it in this only.

    ``calls`` have the words that name the other choice. It explains the failure if the test holds with most of them.
    ``excludes`` says of any call whether it has the failing call's choice; None if this is the very shape: then only
    calls of the same shape are compared. ``name`` is that of the choice, if its words depend on the call. ``where`` is
    a call with the failing call's choice that differs from ``calls`` in nothing else: it has to fail as well.
    """

    excludes: Callable[[Call], bool] | None
    calls: tuple[tuple[str, Call], ...]
    name: str = ""
    # The failing call's value of an argument, in words, if the others have another value of it.
    value: str = ""
    # Whether it has other numbers in the places of the failing call's, as another shape has.
    moves: bool = False
    where: Call | None = None

    @property
    def named(self) -> dict[str, Call]:
        """The calls by names that mean the same for every failing call."""
        return {self.name or words: call for words, call in self.calls}


@dataclass(frozen=True)
class Change:
    """What a call has, and others do without: ``others`` gives these.

    ``property_id`` is the property about what it has; then ``without`` gives the one call that does without it. A
    change that ``moves`` elements puts them into other places, and one of an ``axis`` another one in its place.
    """

    others: Callable[[Function, Call], Iterable[Alternative]]
    property_id: str = ""
    without: Callable[[Function, Call], Call] | None = None
    moves: bool = False
    axis: bool = False


def _of(property_id: str, words: str, without: Callable[[Function, Call], Call]) -> Change:
    """A change to the one call without what a property is about; no test is run again with it if it has no words."""

    def others(function: Function, call: Call) -> Iterator[Alternative]:
        simpler = without(function, call)
        if words and simpler != call:
            yield Alternative(lambda c: without(function, c) != c, ((words, simpler),))

    return Change(others, property_id, without)


def alternatives(function: Function, call: Call, *, moving_axis: bool = True) -> Iterator[Alternative]:
    """The call with one choice changed each time.

    Unless ``moving_axis``, neither the axis nor the rank is: a test of the axis itself has nothing to move in one
    dimension.
    """
    tried = [call]
    # In another shape special numbers would be elsewhere.
    special = any(tensor.specials for tensor in call.tensors)
    for change in CHANGES:
        if (change.moves and special) or (change.axis and not moving_axis):
            continue
        for each in change.others(function, call):
            others = [other for _, other in each.calls]
            if change.without is None or others[0] not in tried:
                tried += others if change.without else []
                yield each


def masking_nothing(function: Function, call: Call) -> Call:
    """The call in which every tensor requires grad."""
    given = zip(function.arguments, call.args, strict=False)
    return masked(call, [argument.differentiable for argument, value in given if isinstance(value, Tensor)])


def using_every_output(function: Function, call: Call) -> Call:
    """The call with a cotangent for each output."""
    pairs = zip(function.outputs, call.cotangents, strict=True)
    used = (Cotangent() if output.differentiable and not given else given for output, given in pairs)
    return replace(call, cotangents=tuple(used))


def _other_outputs(_: Function, call: Call) -> Iterator[Alternative]:
    """The call without the cotangent of one output."""
    used = [number for number, cotangent in enumerate(call.cotangents) if cotangent is not None]
    for number in used if len(used) > 1 else ():
        cotangents = tuple(None if n == number else cotangent for n, cotangent in enumerate(call.cotangents))
        words = f"output {number} not used"
        yield Alternative(partial(_uses, number), ((words, replace(call, cotangents=cotangents)),))


def _other_dtypes(function: Function, call: Call) -> Iterator[Alternative]:
    """The call with real numbers instead of complex ones, and in the most precise dtype."""
    real, first, unit = REAL_OF.get(call.dtype, ""), function.dtypes[0], PRECISION[call.dtype].unit
    if real in function.dtypes:
        yield Alternative(lambda c: c.dtype in REAL_OF, ((real, recast(call, real, function)),))
    if unit > PRECISION[first].unit:
        yield Alternative(lambda c: PRECISION[c.dtype].unit >= unit, ((first, recast(call, first, function)),))


def _without_optional(function: Function, call: Call) -> Iterator[Alternative]:
    """The call with None for a tensor that may be None."""
    for slot, (argument, given) in enumerate(zip(function.arguments, call.args, strict=False)):
        if isinstance(argument, Array) and "none" in argument.optional and given is not None:
            other = with_argument(call, slot, None)
            if any(other.mask):
                yield Alternative(partial(_gives, slot), ((f"argument {slot} ({argument.name}) = None", other),))


def _gives(slot: int, call: Call) -> bool:
    return len(call.args) > slot and call.args[slot] is not None


def _other_values(function: Function, call: Call, *, axis: bool = False) -> Iterator[Alternative]:
    """The call with another value of an argument; with another axis, all dimensions have the same length."""
    shapes = shapes_of(function, call)
    for slot, (argument, given) in enumerate(zip(function.arguments, call.args, strict=False)):
        if shapes is None or not isinstance(argument, Static) or argument.axis != axis:
            continue
        where = _equally_long(function, call) if argument.axis else call
        others = [value for value in argument.choices(shapes) if not same(value, given)]
        if isinstance(given, float) and given not in _SPECIAL:
            # With another number the entries of the tensors are on other sides of it, which explains nothing.
            others = [value for value in others if not isinstance(value, float)]
        if where is None or not others:
            continue
        calls = tuple(
            (_value_in_words(slot, argument, value), with_argument(where, slot, value)) for value in others[:_VALUES]
        )
        changed = None if where == call else where
        yield Alternative(_having(slot, given), calls, value=repr(given), where=changed)
        if argument.axis and given < 0:
            # Where every negative axis is wrong, half of the others are.
            counted = tuple(each for each in calls if each[1].args[slot] >= 0)
            yield Alternative(_having(slot, given), counted, where=changed)


def in_lengths(function: Function, call: Call, other: Call) -> tuple[str, dict[int, Call]]:
    """The dimension in which two calls differ, in words, and the call in each short length of it that is declared."""
    shapes, others = shapes_of(function, call), shapes_of(function, other)
    found = {} if shapes is None or others is None else along(function, shapes, others)
    moved = {length: _reshaped(function, call, each) for length, each in found.items()}
    rows = ((n, d) for n, tensor in enumerate(call.tensors) for d, side in enumerate(tensor.shape)
            if side != other.tensors[n].shape[d])  # fmt: skip
    number, dimension = next(rows)
    slots = [slot for slot, value in enumerate(call.args) if isinstance(value, Tensor)]
    words = f"of argument {slots[number]} ({function.arguments[slots[number]].name}), dimension {dimension}"
    return words, {length: each for length, each in moved.items() if each is not None}


def values_in_words(function: Function, call: Call) -> frozenset[str]:
    """The values of a call's arguments that are not tensors, in the words of `Alternative`."""
    pairs = enumerate(zip(function.arguments, call.args, strict=False))
    return frozenset(_value_in_words(n, a, value) for n, (a, value) in pairs if isinstance(a, Static))


def _value_in_words(slot: int, argument: Static, value: Any) -> str:
    return f"argument {slot} ({argument.name}) = {value!r}"


def _all_different(function: Function, call: Call) -> Iterator[Alternative]:
    """The call with other values, of which no integer tensor has one twice, if one of the call's has."""
    slots = repeating(function, call)
    if not slots:
        return
    # There may be fewer values than elements.
    own = shapes_of(function, call)
    moved = (reshaped(call, each, function) for each in (own, *reversed(shape_tuples(function))) if each is not None)
    alike = (c for c in moved if c is not None and _ranks(c) == _ranks(call) and _several_values(c, slots))
    for there in islice(alike, _SHAPES):
        seeds = [replace(there, seed=call.seed + seed) for seed in range(_DRAWS)]
        different = next((c for c in seeds if not repeating(function, c)), None)
        where = next((c for c in seeds if repeating(function, c)), None)
        if different is None or where is None:
            continue
        names = " and ".join(f"argument {slot} ({function.arguments[slot].name})" for slot in sorted(slots))
        words = f"all values of {names} different"
        changed = None if where == call else where
        has = partial(_repeats, function)
        yield Alternative(has, ((words, different),), "all values different", where=changed)
        return


def _repeats(function: Function, call: Call) -> bool:
    return bool(repeating(function, call))


def _other_lengths(function: Function, call: Call) -> Iterator[Alternative]:
    """The call with one dimension longer or shorter by one: what is odd becomes even, and a whole block another.

    None becomes so short that little can be wrong: an entry alone may have the gradient 0, or that of its result.
    """
    shapes, ones, where = shapes_of(function, call), _ones(call), _with_ramps(call)
    for each in () if shapes is None else steps(function, shapes):
        moved = _reshaped(function, call, each)
        if moved is None or not _ones(moved) <= ones or any(0 in tensor.shape for tensor in moved.tensors):
            continue
        longer = ones - _ones(moved)
        excludes, name = (partial(_is_short, longer), f"longer {sorted(longer)}") if longer else (None, "")
        changed = None if where == call else where
        yield Alternative(excludes, ((_shapes_in_words(moved), moved),), name, moves=True, where=changed)


def _other_ranks(function: Function, call: Call) -> Iterator[Alternative]:
    """The call with a dimension more or less, where all have the same length: nothing else may decide."""
    where, ranks = _equally_long(function, call), _ranks(call)
    for more in (1, -1) if where is not None else ():
        moved = _equally_long(function, call, more)
        if moved is not None:
            words = _shapes_in_words(moved)
            changed = None if where == call else where
            has = partial(_is_of_ranks, ranks)
            yield Alternative(has, ((words, moved),), f"ranks {_ranks(moved)}", moves=True, where=changed)


def _equally_long(function: Function, call: Call, more: int = 0) -> Call | None:
    """The call with all dimensions as long as its longest, and so many more; None if the Function takes no such."""
    shapes = shapes_of(function, call)
    longest = max((side for tensor in call.tensors for side in tensor.shape), default=0)
    found = shapes and equal_sides(function, shapes, max(longest, 2), more)
    if not found or sum(map(math.prod, found)) > _MOST:
        return None
    return _reshaped(function, call, found)


def _reshaped(function: Function, call: Call, shapes: Shapes) -> Call | None:
    """The call in these shapes, with ramps as cotangents."""
    return reshaped(_with_ramps(call), shapes, function)


def _with_ramps(call: Call) -> Call:
    """The call with cotangents whose sums along one dimension are not those along another."""
    return with_fill_of_cotangents(call, "ramp")


def _shapes_in_words(call: Call) -> str:
    return f"shapes {', '.join(str(tensor.shape) for tensor in call.tensors)}"


def _ones(call: Call) -> frozenset[tuple[int, int]]:
    """The dimensions of length 1: the number of each tensor, and of its dimension."""
    sides = ((n, d, side) for n, tensor in enumerate(call.tensors) for d, side in enumerate(tensor.shape))
    return frozenset((n, d) for n, d, side in sides if side == 1)


def _is_short(longer: frozenset[tuple[int, int]], call: Call) -> bool:
    return bool(longer & _ones(call))


def _is_of_ranks(ranks: tuple[int, ...], call: Call) -> bool:
    return _ranks(call) == ranks


def _several_values(call: Call, slots: Collection[int]) -> bool:
    return all(math.prod(call.args[slot].shape) > 1 for slot in slots)


def shapes_of(function: Function, call: Call) -> Shapes | None:
    """The shapes of the tensors; of one that is left out, the simplest that suits the others. None if none does."""
    rows = zip_longest(function.arguments, call.args)
    given = [getattr(x, "shape", None) for argument, x in rows if isinstance(argument, Array)]
    fitting = (
        found for found in shape_tuples(function) if all(g in (None, s) for g, s in zip(given, found, strict=True))
    )
    return next(fitting, None) if None in given else tuple(s for s in given if s is not None)


def with_argument(call: Call, slot: int, value: Any) -> Call:
    """The call with this value for the argument at a position."""
    return replace(call, args=(*call.args[:slot], value, *call.args[slot + 1 :]))


def _uses(number: int, call: Call) -> bool:
    return call.cotangents[number] is not None


def _having(slot: int, value: Any) -> Callable[[Call], bool]:
    return lambda call: len(call.args) > slot and same(call.args[slot], value)


def _ranks(call: Call) -> tuple[int, ...]:
    return tuple(len(tensor.shape) for tensor in call.tensors)


CHANGES = (
    _of("VJP-COTANGENT-LAYOUT", "contiguous cotangents", lambda _, call: with_copied_cotangents(call)),
    _of("FWD-LAYOUT", "contiguous tensors", lambda _, call: copied(call)),
    _of("VJP-MASK", "every tensor requiring grad", masking_nothing),
    _of("VJP-UNUSED", "", using_every_output),
    Change(_other_outputs),
    Change(_other_dtypes),
    Change(_without_optional),
    Change(_all_different),
    Change(_other_lengths, moves=True),
    Change(_other_values),
    Change(partial(_other_values, axis=True), axis=True),
    Change(_other_ranks, moves=True, axis=True),
)
