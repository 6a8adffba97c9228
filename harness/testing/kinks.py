"""The slopes that gradients claim at a kink, tie or zero, and those that the function has nearby."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from autograd_conformance.harness.testing.example import Example
from autograd_conformance.harness.testing.transforms import Derived
from autograd_conformance.reference.kinks import REACHES, Near, Slopes
from autograd_conformance.reference.ladder import Verdict, inner
from autograd_conformance.strategies.kinks import Place, moves

# A direction in which complex numbers move.
_PHASE = 0.6 + 0.8j


@dataclass(frozen=True)
class AtKink:
    """A claimed slope at a kink: the entries that move together, and the slopes nearby, if there are any."""

    places: tuple[Place, ...]
    claim: float
    verdict: Verdict
    slopes: Slopes | None
    words: str


def at_kinks(
    example: Example, gradients: Sequence[Any], rounding: Callable[[Sequence[Any], Sequence[Any]], float]
) -> Iterator[AtKink]:
    """The slopes that gradients in NumPy claim where entries are special or equal.

    Each direction moves entries that are equal, together or alone. ``rounding`` bounds the error of an inner product.
    """
    points, weights, slots = example.expected.points(), example.expected.cotangents, example.slots
    near = Near(
        example.expected.outputs_at, points, weights, _scales(example, points), REACHES[example.function.computes_in]
    )
    for places in moves(example.call, [example.values[slot] for slot in slots]):
        along = direction(example, places)
        claim, error = inner(tuple(gradients), along), rounding(gradients, along)
        verdict, slopes = near.judge(claim, along, rounding=error, seed=example.call.seed)
        yield AtKink(places, claim, verdict, slopes, _words(example, places, slopes))


def exists(example: Example, derived: Derived) -> Slopes | None:
    """The slopes near a call's point along the direction, if they agree; None if there is a kink, jump or boundary.

    They have to agree for other weights, too: the sum of all eigenvalues has no kink, but each of them has.
    """
    points, count, found = derived.points, len(example.slots), list[Slopes]()
    scales = (*_scales(example, points[:count]), *(None for _ in points[count:]))
    rng = np.random.default_rng(example.call.seed)
    other = tuple(w if w is None else rng.standard_normal(np.shape(w)) for w in derived.weights)
    for weights in (derived.weights, other):
        near = Near(derived.f, points, weights, scales, REACHES[example.function.computes_in])
        verdict, slopes = near.judge(math.nan, derived.direction, rounding=0.0, seed=example.call.seed)
        if verdict is not Verdict.DISAGREES or slopes is None:
            return None
        found.append(slopes)
    return found[0]


def direction(example: Example, places: Sequence[Place]) -> tuple[Any, ...]:
    """The direction that moves these entries and no others."""
    points = example.expected.points()
    moved: list[Any] = [None if x is None else np.zeros(np.shape(x), x.dtype) for x in points]
    size = max(typical(points[number]) for number, _ in places)
    for number, entries in places:
        np.put(moved[number], entries, size * (_PHASE if np.iscomplexobj(points[number]) else 1.0))
    return example.expected.within(moved)


def _scales(example: Example, points: Sequence[Any]) -> tuple[Any, ...]:
    """How far each entry may move."""
    return example.expected.within([None if x is None else np.full(np.shape(x), typical(x)) for x in points])


def typical(values: Any) -> float:
    """The typical size of numbers: 1 if it is ordinary, or else the power of two below their median."""
    size = float(np.median(np.abs(values))) if np.size(values) else 0.0
    if not math.isfinite(size) or size == 0 or 1 / 16 < size < 16:
        return 1.0
    return 2.0 ** math.floor(math.log2(size))


def _words(example: Example, places: Sequence[Place], slopes: Slopes | None) -> str:
    """What is special at the call's point, and which slopes are near."""
    number, entries = places[0]
    value = example.values[example.slots[number]].reshape(-1)[entries[0]]
    are = "is" if len(places) == len(entries) == 1 else "are"
    named = " and ".join(_named(example, *place) for place in places)
    near = "" if slopes is None or slopes.agree else f"; slopes nearby: {slopes.low:.6g} to {slopes.high:.6g}"
    return f"moved: {named}, which {are} {value:.6g}{near}"


def _named(example: Example, number: int, entries: Sequence[int]) -> str:
    shape = np.shape(example.values[example.slots[number]])
    places = (tuple(int(i) for i in np.unravel_index(entry, shape)) for entry in entries)
    return f"{example.input_names[number]} at {', '.join(map(str, places))}"
