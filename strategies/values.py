"""Values of tensors: a few fills that are easy to read and to shrink, and special values written over them.

Every number is a small multiple of a power of two, and so exact in every floating dtype. The exception is the dense
fill, which has full mantissas.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from autograd_conformance.reference.definitions import Array, Shape, Values
from autograd_conformance.reference.rounding import Precision
from autograd_conformance.strategies import given

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

# Values that are not finite as well: what becomes of one element is nothing to the others.
ANY_NUMBER: dict[str, Callable[[Precision], float]] = {
    "NaN": lambda _: math.nan,
    "infinity": lambda _: math.inf,
    "minus infinity": lambda _: -math.inf,
    **{name: EXTREMES[name] for name in ("negative zero", "subnormal", "largest")},
}


def _far(p: Precision) -> float:
    """A number of which no product of two overflows; where the dtype has enough of them, no eighth power."""
    bits = math.frexp(p.largest)[1]
    return 2.0 ** min((bits - 1) // 2, max(bits // 8, 16))


# Values of both signs that are large, but not too large for formulas in built-in operations.
MODERATE: dict[str, Callable[[Precision], float]] = {
    **{name: EXTREMES[name] for name in ("zero", "negative zero", "tiny", "subnormal")},
    "far": _far,
    "minus far": lambda p: -_far(p),
    "log of largest": EXTREMES["log of largest"],
    "twice minus log of largest": lambda p: -2 * EXTREMES["log of largest"](p),
}

# The fill of small values around which derivatives are taken, and the exponents of their magnitudes.
TINY = "tiny"
_EXPONENTS = 5, 13

Fill = Callable[[np.random.Generator, int], Any]


def _ramp(_: np.random.Generator, size: int) -> Any:
    return (np.arange(size) % 13 - 4) / 4


def _normal(rng: np.random.Generator, size: int) -> Any:
    return np.clip(np.round(8 * rng.standard_normal(size)) / 8, -4, 4)


def _spaced(rng: np.random.Generator, size: int) -> Any:
    return (rng.permutation(size) - size // 2) / 4


def _tiny(rng: np.random.Generator, size: int) -> Any:
    # All of one magnitude: a norm of them is small as well.
    return _dense(rng, size) * 2.0 ** -float(rng.integers(*_EXPONENTS))


def _dense(rng: np.random.Generator, size: int) -> Any:
    return np.clip(rng.standard_normal(size), -4, 4)


# In the order in which shrinking prefers them.
FILLS: dict[str, Fill] = {
    "ones": lambda _, size: np.ones(size),
    "ramp": _ramp,
    "shuffled ramp": lambda rng, size: rng.permutation(_ramp(rng, size)),
    "normal": _normal,
    "zeros": lambda _, size: np.zeros(size),
    "dense": _dense,
    "small": lambda rng, size: _ramp(rng, size) * 2.0**-11,
    "smaller": lambda rng, size: _ramp(rng, size) * 2.0**-21,
    TINY: _tiny,
    "increasing": lambda _, size: (np.arange(size) - size // 2) / 4,
    "decreasing": lambda _, size: (size // 2 - np.arange(size)) / 4,
    "spaced": _spaced,
}


@dataclass(frozen=True)
class Matrix:
    """A square matrix with equal eigenvalues, by its side; whether it is definite, and the ``least`` side."""

    make: Callable[[int], Any]
    definite: bool = True
    least: int = 2


# In the order in which shrinking prefers them. They are no fills of a domain: many functions have kinks there.
MATRICES = {
    "identity": Matrix(np.eye),
    "multiple of the identity": Matrix(lambda n: 2.5 * np.eye(n)),
    "repeated diagonal": Matrix(lambda n: np.diag(1.0 + np.arange(n) // 2), least=3),
    "zero matrix": Matrix(lambda n: np.zeros((n, n)), definite=False),
}


def _same(a: Any) -> Any:
    return a


def _irregular(a: Any) -> Any:
    # No element is a multiple of 1/8, where kinks are, and equal elements become different.
    return a * 1.0137 + 0.0219 + 0.0007 * (np.arange(a.size).reshape(a.shape) % 29)


def _unit(a: Any) -> Any:
    return 0.5 + 0.4 * a / (1 + np.abs(a))


def _ball(a: Any) -> Any:
    return 0.9 * a / (1 + np.sqrt(np.sum(np.abs(a) ** 2, axis=-1, keepdims=True))) if a.ndim else _unit(a) - 0.5


def _sorted(a: Any) -> Any:
    steps = np.arange(a.shape[-1]) / 4 if a.ndim else 0.0
    return np.sort(a, axis=-1) / 8 + steps if a.ndim else a


def _eye(a: Any) -> Any:
    return np.eye(a.shape[-1])


def _definite(a: Any) -> Any:
    n = max(a.shape[-1], 1)
    # The diagonal keeps the eigenvalues apart as well.
    return a @ np.conj(np.swapaxes(a, -1, -2)) / n + np.diag(1 + np.arange(a.shape[-1]) / 4)


def _symmetric(a: Any) -> Any:
    # As above: eigenvalues that are equal are rare.
    return _hermitian(a) + np.diag(np.arange(a.shape[-1]) / 4)


def _full(a: Any) -> Any:
    """Matrices with the singular vectors of the given ones, and singular values that are different and not small."""
    if 0 in a.shape:
        return a
    left, sizes, right = np.linalg.svd(a + np.eye(*a.shape[-2:]), full_matrices=False)
    steps = np.arange(sizes.shape[-1], 0, -1) / 4
    return (left * (0.5 + steps + sizes / (4 * (1 + sizes[..., :1])))[..., None, :]) @ right


def _lower(a: Any) -> Any:
    return np.tril(a, -1) / max(a.shape[-1], 1) + _eye(a) * (1 + np.abs(a) / 4)


def _upper(a: Any) -> Any:
    return np.swapaxes(_lower(np.swapaxes(a, -1, -2)), -1, -2)


def _hermitian(a: Any) -> Any:
    return (a + np.conj(np.swapaxes(a, -1, -2))) / 2


@dataclass(frozen=True)
class Domain:
    """The fills of a domain, in the order in which shrinking prefers them, and ``into``, which maps them into it.

    ``elementwise`` means that each element may be chosen without regard to the others, so that elements may repeat.
    ``tangent`` projects a direction onto those along which every small step stays in the domain.
    """

    fills: tuple[str, ...]
    into: Callable[[Any], Any] = _same
    elementwise: bool = True
    tangent: Callable[[Any], Any] = _same

    @property
    def symmetric(self) -> bool:
        """Whether it has only symmetric (Hermitian) matrices."""
        return self.tangent is _hermitian


_PLAIN = ("ones", "ramp", "normal", "dense", "shuffled ramp", "dense")
_VARIED = ("normal", "dense", "ramp", "dense")

DOMAINS: dict[Values, Domain] = {
    "any": Domain(("ones", "ramp", "normal", "zeros", "dense", "shuffled ramp", "dense")),
    # With values at which formulas switch to a series, or should.
    "free": Domain(("ones", "ramp", "normal", "zeros", "dense", "small", "smaller", "dense")),
    "nonzero": Domain(_PLAIN, lambda a: np.where(a < 0, a - 0.125, a + 0.125)),
    "positive": Domain(_PLAIN, lambda a: np.abs(a) + 0.125),
    "distinct": Domain(("increasing", "spaced", "decreasing"), elementwise=False),
    "irregular": Domain(("ramp", "normal", "dense", "shuffled ramp"), _irregular, elementwise=False),
    "unit": Domain(_PLAIN, _unit),
    "ball": Domain(_PLAIN, _ball, elementwise=False),
    "sorted": Domain(_VARIED, _sorted, elementwise=False),
    "definite": Domain(_VARIED, _definite, elementwise=False, tangent=_hermitian),
    "symmetric": Domain(_VARIED, _symmetric, elementwise=False, tangent=_hermitian),
    "full": Domain(_VARIED, _full, elementwise=False),
    "lower": Domain(_VARIED, _lower, elementwise=False, tangent=np.tril),
    "upper": Domain(_VARIED, _upper, elementwise=False, tangent=np.triu),
    # Nothing in it can move by a small step.
    "binary": Domain(("ones", "normal", "ramp", "zeros", "dense"), lambda a: (a > 0) * 1.0, tangent=np.zeros_like),
}


def domain_of(argument: Array, smooth: bool) -> Values:
    """The domain of an argument's values, which is another one where they keep away from kinks."""
    return argument.smooth if smooth and argument.smooth is not None else argument.values


def fills_of(argument: Array, smooth: bool = False) -> tuple[str, ...]:
    """The fills of an argument, in the order in which shrinking prefers them.

    A constant of a recorded call keeps its values: it may be what another one makes of it.
    """
    if argument.recorded is None:
        return DOMAINS[domain_of(argument, smooth)].fills
    return (given.GIVEN,) if argument.constant else given.FILLS


def admits_specials(domain: Values) -> bool:
    """Whether single values may be written over a fill of that domain."""
    return domain in ("any", "free")


def fill(
    name: str, domain: Values, shape: Shape, rng: np.random.Generator, *, complex_values: bool = False,
    shift: float = 0.0,
) -> Any:  # fmt: skip
    """A float64 (or complex128) array of the shape, with the named fill, shifted, mapped into the domain."""
    if name in MATRICES:
        return np.array(np.broadcast_to(MATRICES[name].make(shape[-1]), shape), complex if complex_values else float)
    kind, size = DOMAINS[domain], math.prod(shape)
    # An elementwise domain bounds the real part; the imaginary one is free.
    real = FILLS[name](rng, size).reshape(shape) + shift
    if not complex_values:
        return kind.into(real)
    imaginary = (np.zeros(size) if name in ("ones", "zeros") else _normal(rng, size)).reshape(shape)
    return (
        kind.into(real) + 1j * imaginary if kind.elementwise or kind.into is _same else kind.into(real + 1j * imaginary)
    )


def overwrite(values: Any, specials: tuple[tuple[int, float], ...]) -> Any:
    """The array with single elements replaced; positions count in row-major order and wrap around."""
    if not specials or values.size == 0:
        return values
    # Arithmetic turns an array without dimensions into a scalar, which cannot be changed.
    changed = np.array(values, order="C")
    for position, value in specials:
        changed.reshape(-1)[position % values.size] = value
    return changed
