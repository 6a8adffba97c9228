"""Moves of the inputs by roundings, within the domains of their arguments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from autograd_conformance.harness.testing.example import Example
from autograd_conformance.harness.testing.kinks import typical
from autograd_conformance.reference.definitions import Array, Static
from autograd_conformance.reference.rounding import Tracked, round_to
from autograd_conformance.strategies.values import DOMAINS

# The pairs of moves.
PAIRS = 2


def value_of(x: Any) -> Any:
    return x.value if isinstance(x, Tracked) else x


def error_of(x: Any) -> Any:
    return x.error if isinstance(x, Tracked) else 0.0


def is_floating(x: Any) -> bool:
    return x.dtype.kind in "fc"


def numeric(x: Any) -> Any:
    return x.astype(np.float64) if x.dtype.kind == "b" else x


def alike(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Whether results have the same shapes."""
    return list(map(np.shape, a)) == list(map(np.shape, b))


def signs(given: Sequence[Any]) -> Iterator[list[Any]]:
    """The direction of each element, 1 or -1, for each move.

    The first move of a pair is random. In the second move, neighbours along an axis that had the same direction get
    opposite ones, and so do elements of two arguments at the same index. In the other pair this holds for every second
    neighbour and argument. So one of the moves shows an effect of differences and of products.
    """
    for pair in range(PAIRS):
        rng = np.random.default_rng(pair)
        drawn = [rng.choice((-1.0, 1.0), getattr(value_of(x), "shape", ())) for x in given]
        yield drawn
        tensors = [n for n, x in enumerate(given) if isinstance(value_of(x), np.ndarray | np.generic)]
        # Arguments that are not tensors do not move.
        number = {n: place >> pair for place, n in enumerate(tensors)}
        yield [
            (-1.0) ** (number.get(n, 0) + (np.indices(signs.shape) >> pair).sum(0)) * signs
            for n, signs in enumerate(drawn)
        ]


def moved(x: Any, argument: Any, signs: Any, move: float, unit: float, *, normwise: bool = False) -> Any:
    """The value moved within its domain, in the directions ``signs``: by ``move``, relative to it, and by its error.

    ``normwise`` moves are relative to the largest entry of a tensor: as large as the errors of a decomposition.
    """
    value = value_of(x)
    if not can_move(value, argument):
        return value
    if isinstance(argument, Array) and DOMAINS[argument.values].symmetric:
        signs = np.tril(signs) + np.swapaxes(np.tril(signs, -1), -1, -2)
    with np.errstate(all="ignore"):
        size = np.max(np.abs(value), initial=0.0) if normwise else value
        return changed_within(argument, value, signs * (move * size + np.minimum(error_of(x), 1e300) * (move / unit)))


def can_move(value: Any, argument: Any) -> bool:
    if value is None or isinstance(argument, Static) or not is_floating(np.asarray(value)):
        return False
    return not isinstance(argument, Array) or (argument.dtype is None and argument.values != "binary")


def changed_within(argument: Any, value: Any, change: Any) -> Any:
    """The changed value; with the opposite change where it would leave the argument's bounds."""
    if not isinstance(argument, Array) or argument.bounds is None:
        return value + change
    low, high = argument.bounds
    return np.where(_between(value + change, low, high), value + change, value - change)


def _between(values: Any, low: float, high: float) -> Any:
    # The bounds of complex numbers are those of the real part.
    return (np.real(values) > low) & (np.real(values) < high)


def near(example: Example, share: float, rng: np.random.Generator) -> Example:
    """The same call with every number moved by a share of its typical size."""
    changed = {}
    for number, (slot, argument, tensor) in enumerate(
        zip(example.slots, example.arguments, example.call.tensors, strict=True)
    ):
        x = example.values[slot]
        if tensor.requires_grad:
            move = share * typical(x) * rng.uniform(0.5, 1, np.shape(x)) * rng.choice((-1.0, 1.0), np.shape(x))
            move = argument.entries(x, DOMAINS[argument.values].tangent(move))
            changed[number] = round_to(changed_within(argument, x, move), tensor.dtype)
    return example.given(changed)
