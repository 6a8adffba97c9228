"""Outputs whose sizes depend on the values: which Functions have them, and where rounding decides on a size."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from autograd_conformance.harness.check.oracle.perturb import can_move, changed_within
from autograd_conformance.harness.testing.attempts import attempted
from autograd_conformance.harness.testing.example import Example
from autograd_conformance.reference.rounding import PRECISION
from autograd_conformance.strategies.calls import contiguous, recast, varied
from autograd_conformance.strategies.values import DOMAINS

# The calls that are made with other values, and how often.
_CALLS, _VALUES = 4, 3
# The ways from a point and back, and how many roundings they are long.
_WAYS, _REACH = 6, 4


def resizes(examples: Sequence[Example]) -> bool:
    """Whether the outputs of a call have other sizes with other values; the largest calls show it best."""
    return any(map(_resizes, examples[-_CALLS:]))


def _resizes(example: Example) -> bool:
    calls = accumulate(range(_VALUES), lambda call, _: varied(call, example.function), initial=example.call)
    found = [_shapes_of_call(example.of(call)) for call in calls]
    return None not in found and any(shapes != found[0] for shapes in found)


def undecided(example: Example) -> bool:
    """Whether rounding decides on the size of an output.

    It changes with a few roundings of the inputs, and is another one in another dtype. A threshold that no rounding
    passes, as 0 for the inputs themselves, decides the same in each.
    """
    exact = example.expected.reference_arguments(exact=True)
    wanted = _shapes(example, exact)
    calls = [contiguous(recast(example.call, dtype, example.function)) for dtype in example.function.dtypes]
    if all(_shapes_of_call(example.of(call)) == wanted for call in calls):
        return False
    reach = _REACH * PRECISION[example.function.dtypes[-1]].unit
    ways = [(sign * reach, seed) for seed in range(_WAYS) for sign in (1, -1)]
    return any(_shapes(example, _moved(example, exact, *way)) != wanted for way in ways)


def _shapes(example: Example, arguments: Sequence[Any]) -> list[Any] | None:
    """The shapes of the reference's outputs."""
    return attempted(lambda: [np.shape(y) for y in example.function.forward(*arguments)])


def _shapes_of_call(example: Example) -> list[Any] | None:
    return attempted(lambda: [example.implementation.describe(y).shape for y in example.outputs()])


def _moved(example: Example, arguments: Sequence[Any], reach: float, seed: int) -> list[Any]:
    """The arguments, each moved by the reach: each entry relative to itself, or to the largest one of its tensor."""
    found, rng = list(arguments), np.random.default_rng(seed)
    for slot, argument in zip(example.slots, example.arguments, strict=True):
        x = found[slot]
        if can_move(x, argument):
            sizes = np.where(np.isfinite(x), np.abs(x), 0.0)
            size = sizes if seed % 2 else np.max(sizes, initial=0.0) or 1.0
            way = DOMAINS[argument.values].tangent(rng.uniform(0.5, 1.0, x.shape) * rng.choice((-1.0, 1.0), x.shape))
            found[slot] = changed_within(argument, x, reach * size * argument.entries(x, way))
    return found
