"""What the generated Functions of `reference.polynomials`, `reference.changes` and `reference.storing` share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, ClassVar

import numpy as np


class Printable:
    """Prints a dataclass as a constructor call without the fields that have their default.

    The fields in ``always`` are printed in any case.
    """

    always: ClassVar[tuple[str, ...]] = ()

    def __repr__(self) -> str:
        known: Any = fields(self)  # type: ignore[arg-type]
        given = [f for f in known if f.name in self.always or getattr(self, f.name) != f.default]
        return f"{type(self).__name__}({', '.join(f'{f.name}={getattr(self, f.name)!r}' for f in given)})"


def integers(seed: Sequence[int], shape: tuple[int, ...]) -> Any:
    """Random integers in [-3, 3] without 0, as floats."""
    drawn = np.random.default_rng(seed).choice([-3, -2, -1, 1, 2, 3], size=shape)
    return np.asarray(drawn, dtype=np.float64)


def combination(weights: Sequence[float], arrays: Sequence[Any], shape: tuple[int, ...]) -> Any:
    """The weighted sum of arrays of that shape."""
    return np.asarray(sum((w * a for w, a in zip(weights, arrays, strict=True)), np.zeros(shape)))


def new_class(ag: Any, name: str, **methods: Callable[..., Any]) -> Any:
    """A custom Function with these static methods, over an autograd namespace."""
    return type(ag.Function)(name, (ag.Function,), {key: staticmethod(method) for key, method in methods.items()})
