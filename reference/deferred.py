"""Arrays whose error bounds are computed only when a comparison needs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from autograd_conformance.reference.rounding import DECISIONS, Precision, Tracked


class Deferred(Tracked):
    """Values with three error bounds, each wider than the one before: ``least``, ``error``, ``widest``.

    ``bound`` computes the one of a name. What is computed from such values has three bounds as well.
    """

    __slots__ = ("_bound", "_known")

    def __init__(self, value: Any, precision: Precision, bound: Callable[[str], Any]) -> None:
        self.value, self.precision = np.asarray(value), precision
        self._bound, self._known = bound, dict[str, Any]()

    def _at(self, name: str) -> Any:
        if name not in self._known:
            self._known[name] = np.broadcast_to(self._bound(name), self.value.shape)
        return self._known[name]

    @property
    def least(self) -> Any:
        return self._at("least")

    @property
    def error(self) -> Any:  # type: ignore[override]
        return self._at("error")

    @property
    def widest(self) -> Any:
        return self._at("widest")

    def around(self, value: Any) -> Deferred:
        return Deferred(value, self.precision, self._at)

    def widened(self, error: Any) -> Deferred:
        return Deferred(self.value, self.precision, lambda name: self._at(name) + error)

    def mapped(self, move: Callable[[Any], Any]) -> Deferred:
        """The values and their bounds, moved alike."""
        return Deferred(move(self.value), self.precision, lambda name: move(self._at(name)))

    _moved = mapped

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if ufunc in DECISIONS:
            return super().__array_ufunc__(ufunc, method, *inputs, **kwargs)
        return _later(lambda *given: getattr(ufunc, method)(*given, **kwargs), inputs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func in DECISIONS:
            return super().__array_function__(func, types, args, kwargs)
        return _later(lambda *given: func(*given, **kwargs), args)


def _later(compute: Callable[..., Tracked], inputs: Any) -> Deferred:
    first = compute(*(_with(each, "least") for each in inputs))
    return Deferred(
        first.value,
        first.precision,
        lambda name: (first if name == "least" else compute(*(_with(each, name) for each in inputs))).error,
    )


def _with(given: Any, name: str) -> Any:
    """What is given, with this bound of each array in it as its only one."""
    if isinstance(given, Deferred):
        return Tracked(given.value, getattr(given, name), given.precision)
    return [_with(each, name) for each in given] if isinstance(given, list | tuple) else given
