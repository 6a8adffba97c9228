"""Calls at kinks, ties and zeros: special values and equal entries, written over values that are all different."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from autograd_conformance.reference.definitions import Array, Function
from autograd_conformance.strategies.calls import Call, Tensor, tensor_values
from autograd_conformance.strategies.values import DOMAINS

# Where the kinks of many functions are, next to 0: most often at 1.
_VALUES = (1.0, 1.0, 1.0, -1.0, -1.0, -0.0, 0.125, 0.5, -0.5, 2.0, 3.0, -3.0, 6.0)
# The share of calls with an entry of their own as the special value, and what remains after those with 0.
_ENTRY, _OTHER = 0.25, 0.55
# The largest tensor, or row, of which all entries become equal.
_WHOLE = 4

# The number of a tensor of a call, and the positions of entries in it.
Place = tuple[int, tuple[int, ...]]


def has_ties(function: Function) -> bool:
    """Whether an argument may get special values or equal entries."""
    return any(_admits(argument) for argument in function.arrays)


def _admits(argument: Any) -> bool:
    kind = isinstance(argument, Array) and argument.differentiable and argument.make is None
    return kind and DOMAINS[argument.values].elementwise


def at_kinks(call: Call, function: Function) -> Call:
    """The call with entries, in one tensor or in several, that are equal to a special value or to another entry.

    All others differ, so that only few kinks are near. A call that has special values already stays as it is.
    """
    if any(tensor.specials for tensor in call.tensors):
        return call
    dense = replace(call, args=tuple(_dense(a, g) for a, g in zip(function.arguments, call.args, strict=False)))
    values, rng = tensor_values(dense, function), np.random.default_rng(call.seed)
    rows = zip(function.arguments, dense.args, strict=False)
    slots = [n for n, (a, g) in enumerate(rows) if _admits(a) and isinstance(g, Tensor) and np.size(values[n])]
    if not slots:
        return call
    rng.shuffle(slots)
    chosen = _chosen(function, slots, values, rng)
    first, args, patterns = slots[0], list(dense.args), dict[Any, tuple[int, ...]]()
    for slot in slots:
        if (slot == first or rng.random() < 0.6) and _within(function.arguments[slot], chosen):
            shape = args[slot].shape
            # Arguments of the same shape are equal at the same places.
            places = patterns.setdefault(shape, _places(shape, rng))
            args[slot] = replace(args[slot], specials=tuple((place, chosen) for place in places))
    return replace(dense, args=tuple(args))


def _dense(argument: Any, given: Any) -> Any:
    return replace(given, fill="dense") if isinstance(given, Tensor) and _admits(argument) else given


def _chosen(function: Function, slots: list[int], values: Any, rng: np.random.Generator) -> float:
    """A special value that the first argument may have; often one of its entries, or 0."""
    argument = function.arguments[slots[0]]
    among, chance = [value for value in _VALUES if _within(argument, value)], rng.random()
    if not among or chance < _ENTRY:
        return float(np.real(rng.choice(values[slots[0]].reshape(-1))))
    return 0.0 if chance < 1 - _OTHER and _within(argument, 0.0) else float(rng.choice(among))


def _within(argument: Any, value: float) -> bool:
    if argument.wrap is not None and value == 0:
        # A zero of a sparse tensor is no entry.
        return False
    if argument.bounds is not None:
        low, high = argument.bounds
        return bool(low + (high - low) / 16 < value < high - (high - low) / 16)
    return {"nonzero": value != 0, "positive": value > 0, "unit": 0.0625 < value < 0.9375}.get(argument.values, True)


def _places(shape: tuple[int, ...], rng: np.random.Generator) -> tuple[int, ...]:
    """One to three positions, or a row, or all positions if they are few."""
    size, row = int(np.prod(shape)), shape[-1] if shape else 1
    if row <= _WHOLE and rng.random() < 0.3:
        start = row * int(rng.integers(size // row))
        return tuple(range(size)) if size <= _WHOLE else tuple(range(start, start + row))
    count = min(size, int(rng.integers(1, 4)))
    return tuple(sorted(int(n) for n in rng.choice(size, count, replace=False)))


def moves(call: Call, values: Sequence[Any]) -> Iterator[tuple[Place, ...]]:
    """The entries to move together: all that are equal, those of them in one tensor, and single ones.

    ``values`` are those of the call's tensors.
    """
    for special in dict.fromkeys(value for tensor in call.tensors for _, value in tensor.specials):
        rows = enumerate(zip(call.tensors, values, strict=True))
        equal = tuple((n, at) for n, (t, x) in rows if t.requires_grad and (at := _equal(x, special)))
        groups = (equal, *((place,) for place in equal), *(((n, at[:1]),) for n, at in equal))
        yield from filter(None, dict.fromkeys(groups))


def _equal(values: Any, special: float) -> tuple[int, ...]:
    return tuple(int(place) for place in np.flatnonzero(values == special))
