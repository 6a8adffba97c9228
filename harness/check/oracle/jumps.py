"""Jumps of a result: a tie or a threshold within a few roundings of the inputs, where either side is right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise, takewhile
from typing import Any

import numpy as np

from autograd_conformance.harness.check.oracle.perturb import (
    alike,
    can_move,
    changed_within,
    is_floating,
    numeric,
    value_of,
)
from autograd_conformance.harness.check.oracle.tolerances import PARTS, WAYS
from autograd_conformance.harness.testing.attempts import attempted
from autograd_conformance.reference.definitions import Array
from autograd_conformance.strategies.values import DOMAINS

Arrays = tuple[Any, ...]


def jumps(
    compute: Callable[[list[Any]], Arrays], pairs: Sequence[tuple[Any, Any]], reach: float, floors: Sequence[float], *,
    erratic: bool = False,
) -> Arrays:  # fmt: skip
    """Which entries of each result jump while the inputs move by ``reach``, relative to the largest input.

    ``pairs`` are the inputs, each with its argument, and ``floors`` the rounding errors of the results. Where two plain
    calls differ, effects of earlier calls are not jumps. ``erratic`` says that what changes as much in the first part
    of a way as in all of it counts as a jump, too: rounding alone decides, as among eigenvectors of equal eigenvalues.
    """
    plain = [compute([value_of(x) for x, _ in pairs]) for _ in range(2)]
    steady = [None if a is None else _steps(a, b) <= floor for a, b, floor in zip(*plain, floors, strict=True)]
    found = [None if y is None else np.zeros(y.shape, dtype=bool) for y in plain[0]]
    for seed in range(2 * WAYS):
        line = [plain[1], *_along(compute, pairs, seed, reach * (-1) ** seed)]
        line = list(takewhile(lambda each: alike(each, plain[1]), line))
        for n, (jump, calm) in enumerate(zip(found, steady, strict=True)):
            if jump is not None and len(line) > 2:
                steps = [_steps(a[n], b[n]) for a, b in pairwise(line)]
                most, floor = np.max(steps, axis=0), floors[n] * is_floating(plain[0][n])
                jumped = 2 * most > np.sum(steps, axis=0)
                if erratic:
                    jumped = jumped | (2 * steps[0] > np.maximum(_steps(line[0][n], line[-1][n]), most))
                here = calm & (most > floor) & jumped
                jump |= here | _passed_on(line[0][n], line[-1][n], here)
    return tuple(found)


def _along(
    compute: Callable[[list[Any]], Arrays], pairs: Sequence[tuple[Any, Any]], seed: int, reach: float
) -> list[Arrays]:
    """The results along one way; it ends where the Function refuses the moved inputs."""
    rng = np.random.default_rng(seed // 2)
    # What is computed from several arguments is as coarse as the largest of them. Cotangents, which have no argument
    # here, decide nothing in forward.
    sizes = (_largest(x) for x, a in pairs if a is not None and can_move(value_of(x), a))
    least = 0.0 if seed < 2 else max(sizes, default=0.0)
    ways = [_way(x, argument, rng, least) for x, argument in pairs]
    line: list[Arrays] = []
    for part in range(1, PARTS + 1):
        moved = [_shifted(x, a, w, reach * part / PARTS) for (x, a), w in zip(pairs, ways, strict=True)]
        found = attempted(compute, moved)
        if found is None:
            # The move may have left the Function's domain.
            break
        line.append(found)
    return line


def _largest(x: Any) -> float:
    return float(np.max(np.abs(value_of(x)), initial=0.0, where=np.isfinite(value_of(x))))


def _way(x: Any, argument: Any, rng: np.random.Generator, least: float) -> Any:
    """A random direction within the argument's domain, as long as its largest number; None for what cannot move."""
    value = value_of(x)
    if not can_move(value, argument):
        return None
    size = max(_largest(x), least) or 1.0
    way = size * rng.uniform(0.5, 1.5, value.shape) * rng.choice((-1, 1), value.shape)
    if not isinstance(argument, Array):
        return way
    return argument.entries(value, DOMAINS[argument.values].tangent(way))


def _passed_on(start: Any, end: Any, jump: Any) -> bool:
    """Whether some of the entries that jump lose what others get, as with ties; any other entry may get it, too."""
    with np.errstate(all="ignore"):
        change = (np.abs(numeric(end)) - np.abs(numeric(start)))[jump]
    return bool(np.any(change > 0) and np.any(change < 0))


def _shifted(x: Any, argument: Any, way: Any, length: float) -> Any:
    with np.errstate(all="ignore"):
        return value_of(x) if way is None else changed_within(argument, value_of(x), length * way)


def _steps(a: Any, b: Any) -> Any:
    """How far apart the entries of two results are; 0 where this is not a number."""
    with np.errstate(all="ignore"):
        return np.nan_to_num(np.abs(numeric(a) - numeric(b)), nan=0.0)
