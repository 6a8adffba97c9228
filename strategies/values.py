"""Values of tensors: a few fills that read well and shrink well, and special values written over them.

But for those of the dense fill, which has full mantissas, every number is a small multiple of a power of two and so
exact in every floating dtype.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from autograd_conformance.reference.definitions import Shape, Values
from autograd_conformance.reference.rounding import Precision

SPECIALS = {"zero": 0.0, "negative zero": -0.0, "one": 1.0, "minus one": -1.0, "eighth": 0.125}
EXTREMES: dict[str, Callable[[Precision], float]] = {
    "zero": lambda _: 0.0,
    "negative zero": lambda _: -0.0,
    "tiny": lambda p: p.normal,
    "subnormal": lambda p: 8 * p.subnormal,
    "huge": lambda p: p.largest / 4,
    "minus huge": lambda p: -p.largest / 4,
    "largest": lambda p: p.largest,
    "root of largest": lambda p: 2.0 ** ((math.frexp(p.largest)[1] - 1) // 2),
    "log of largest": lambda p: float(math.floor(math.log(p.largest))),
}  # fmt: skip

Fill = Callable[[np.random.Generator, int], Any]


def _ramp(_: np.random.Generator, size: int) -> Any:
    return (np.arange(size) % 13 - 4) / 4


def _normal(rng: np.random.Generator, size: int) -> Any:
    return np.clip(np.round(8 * rng.standard_normal(size)) / 8, -4, 4)


def _spaced(rng: np.random.Generator, size: int) -> Any:
    return (rng.permutation(size) - size // 2) / 4


def _dense(rng: np.random.Generator, size: int) -> Any:
    return np.clip(rng.standard_normal(size), -4, 4)


# In the order in which a failing example prefers them.
FILLS: dict[str, Fill] = {
    "ones": lambda _, size: np.ones(size),
    "ramp": _ramp,
    "shuffled ramp": lambda rng, size: rng.permutation(_ramp(rng, size)),
    "normal": _normal,
    "zeros": lambda _, size: np.zeros(size),
    "dense": _dense,
    "increasing": lambda _, size: (np.arange(size) - size // 2) / 4,
    "decreasing": lambda _, size: (size // 2 - np.arange(size)) / 4,
    "spaced": _spaced,
}

# The fills of each domain, and what brings their values into it.
DOMAINS: dict[Values, tuple[tuple[str, ...], Callable[[Any], Any]]] = {
    "any": (("ones", "ramp", "normal", "zeros", "dense", "shuffled ramp", "dense"), lambda a: a),
    "nonzero": (
        ("ones", "ramp", "normal", "dense", "shuffled ramp", "dense"),
        lambda a: np.where(a < 0, a - 0.125, a + 0.125),
    ),
    "positive": (("ones", "ramp", "normal", "dense", "shuffled ramp", "dense"), lambda a: np.abs(a) + 0.125),
    "distinct": (("increasing", "spaced", "decreasing"), lambda a: a),
}


def admits_specials(domain: Values) -> bool:
    """Whether single values may be written over a fill of that domain."""
    return domain == "any"


def fill(name: str, domain: Values, shape: Shape, rng: np.random.Generator, *, complex_values: bool = False) -> Any:
    """A float64 (or complex128) array of the shape, filled as named and brought into the domain."""
    into_domain = DOMAINS[domain][1]
    size = math.prod(shape)
    real = into_domain(FILLS[name](rng, size))
    if not complex_values:
        return real.reshape(shape)
    imaginary = np.zeros(size) if name in ("ones", "zeros") else _normal(rng, size)
    return (real + 1j * imaginary).reshape(shape)


def overwrite(values: Any, specials: tuple[tuple[int, float], ...]) -> Any:
    """The array with single elements replaced; positions count in row-major order and wrap around."""
    if not specials or values.size == 0:
        return values
    changed = values.copy()
    for position, value in specials:
        changed.reshape(-1)[position % values.size] = value
    return changed
