"""The values of a tensor that a program gave: themselves, and others near them that keep what they have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from autograd_conformance.reference.definitions import Values

# In the order in which shrinking prefers them; the last is that of simple calls.
GIVEN, NEAR = "given", "near"
FILLS = (GIVEN, NEAR, GIVEN)

# Powers that values near the given ones are raised to: 1, and so much more or less.
_LEAST, _MOST = 2.0**-7, 2.0**-5
# By how much numbers may be off and still count as equal: half of the digits of single precision.
_OFF = 2.0**-12


@dataclass(frozen=True, eq=False)
class Given:
    """The values that a tensor was given, in float64 or complex128.

    Those near them have the same signs, zeros, ones, ties and order; rows that sum to 1 still do.
    """

    values: Any

    def __call__(self, fill: str, rng: np.random.Generator) -> Any:
        """The values of a fill out of `FILLS`."""
        if fill == GIVEN or not self.values.size:
            return self.values
        return self._near(float(rng.choice((-1.0, 1.0)) * rng.uniform(_LEAST, _MOST)))

    def _near(self, more: float) -> Any:
        sizes = np.abs(self.values)
        moves = np.isfinite(sizes) & (sizes > 0)
        factors = np.where(moves, sizes, 1.0) ** more
        found = np.where(moves, self.values * factors, self.values)
        return found / found.sum(-1, keepdims=True) if self._sums_to_one else found

    def along(self, values: Any, move: Any) -> Any:
        """The part of a move that keeps what the given values have: their zeros, and that rows sum to 1.

        The zeros of values near them move: at the given ones a function may have a kink there. Those of a diagonal
        matrix do not, for the function may be one of diagonal, triangular or symmetric ones.
        """
        entries = self.values != 0
        near = not np.array_equal(values, self.values, equal_nan=True)
        if not np.any(entries) or (near and not self._sums_to_one and not self._is_diagonal):
            return move
        if self._sums_to_one:
            counts = entries.sum(-1, keepdims=True)
            move = move - np.where(entries, move, 0.0).sum(-1, keepdims=True) / counts
        return np.where(entries, move, 0.0)

    @property
    def _sums_to_one(self) -> bool:
        values = self.values
        rows = values.ndim > 0 and values.shape[-1] > 1 and values.size > 0 and not np.iscomplexobj(values)
        return rows and bool(np.all(values >= 0) and np.all(np.abs(values.sum(-1) - 1) < _OFF))

    @property
    def _is_diagonal(self) -> bool:
        return self.domain == "lower" and np.array_equal(self.values, np.triu(self.values))

    @property
    def domain(self) -> Values:
        """The domain of matrices that they are in, or ``any``."""
        square = self.values.ndim > 1 and self.values.shape[-1] == self.values.shape[-2] > 1
        if not square or not np.all(np.isfinite(self.values)) or not np.any(self.values):
            return "any"
        return next((name for name, holds in _MATRICES.items() if holds(self.values)), "any")


def _symmetric(values: Any) -> bool:
    largest = np.max(np.abs(values))
    return bool(np.all(np.abs(values - np.conj(np.swapaxes(values, -1, -2))) <= _OFF * largest))


_MATRICES: dict[Values, Callable[[Any], bool]] = {
    "lower": lambda a: np.array_equal(a, np.tril(a)),
    "upper": lambda a: np.array_equal(a, np.triu(a)),
    "symmetric": _symmetric,
}
