"""Operations before and after a Function in a longer computation, with their VJPs in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Tools:
    """What an implementation supplies for compositions: its array namespace, and Square as a custom Function."""

    xp: Any
    square: Callable[[Any], Any]


@dataclass(frozen=True, repr=False)
class Before:
    """Built-in operations that return exactly the values they get, and so pass every gradient on unchanged."""

    name: str
    apply: Callable[[Any, Any], Any]

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, repr=False)
class After:
    """An operation on an output: ``apply(tools, y)``, and its VJP ``pull(y, cotangent)`` in NumPy."""

    name: str
    apply: Callable[[Any, Any], Any]
    forward: Callable[[Any], Any]
    pull: Callable[[Any, Any], Any]

    def __repr__(self) -> str:
        return self.name


def _flat_and_back(xp: Any, x: Any) -> Any:
    return xp.reshape(xp.reshape(x, (-1,)), tuple(x.shape)) if x.shape else x * 1


def _turned_and_back(xp: Any, x: Any) -> Any:
    axes = tuple(range(x.ndim))[::-1]
    return xp.permute_dims(xp.permute_dims(x, axes), axes)


SAME = Before("unchanged", lambda _, x: x)
BEFORE = (
    Before("scaled", lambda _, x: (x * 2) * 0.5),
    Before("halves added", lambda _, x: x * 0.5 + x * 0.5),
    Before("flattened", _flat_and_back),
    Before("transposed", _turned_and_back),
    Before("copied", lambda xp, x: xp.copy(x)),
)

AFTER = (
    After("sum", lambda tools, y: tools.xp.sum(y), lambda y: np.sum(y), lambda y, g: np.broadcast_to(g, y.shape) * 1.0),
    After("square", lambda _, y: y * y, lambda y: y * y, lambda y, g: 2 * g * np.conj(y)),
    After("custom square", lambda tools, y: tools.square(y), lambda y: y * y, lambda y, g: 2 * g * np.conj(y)),
    After("scaled", lambda _, y: y * -1.5, lambda y: y * -1.5, lambda _, g: g * -1.5),
    After(
        "transposed",
        lambda tools, y: tools.xp.permute_dims(y, tuple(range(y.ndim))[::-1]),
        lambda y: y.transpose(),
        lambda _, g: g.transpose(),
    ),
    After("negated and added", lambda _, y: y + (-y) * 0.5, lambda y: y + (-y) * 0.5, lambda _, g: g - g * 0.5),
    After(
        "broadcast",
        lambda tools, y: tools.xp.broadcast_to(y, (3, *y.shape)),
        lambda y: np.broadcast_to(y, (3, *y.shape)),
        lambda _, g: np.sum(g, axis=0),
    ),
)
