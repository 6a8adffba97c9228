"""Arrays whose every operation really rounds to a dtype: the error bounds are tested against them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from autograd_conformance.harness.testing.compare import difference
from autograd_conformance.reference.rounding import PRECISION, Tracked

LOW = ("float32", "float16", "bfloat16")
# Significant bits, and the exponents of the smallest subnormal and of the first number that is too large.
FORMATS = {
    "float64": (53, -1074, 1024),
    "float32": (24, -149, 128),
    "float16": (11, -24, 16),
    "bfloat16": (8, -133, 128),
}
REAL_PART = {"complex64": "float32", "complex128": "float64"}

low = pytest.mark.parametrize("dtype", LOW)


def nearest(values: Any, dtype: str) -> Any:
    """Rounded once to the nearest number of the dtype, ties to even, by the definition of the format."""
    array = np.asarray(values)
    if array.dtype.kind == "c":
        part = REAL_PART.get(dtype, dtype)
        return nearest(array.real, part) + 1j * nearest(array.imag, part)
    bits, least, greatest = FORMATS[REAL_PART.get(dtype, dtype)]
    with np.errstate(all="ignore"):
        _, exponent = np.frexp(array)
        grain = np.maximum(exponent - bits, least)
        rounded = np.ldexp(np.rint(np.ldexp(array, -grain)), grain)
        rounded = np.where(np.isfinite(array), rounded, array)
        return np.where(np.abs(rounded) >= 2.0 ** min(greatest, 1023), np.copysign(np.inf, array), rounded)


ORDERS: dict[str, Callable[[int], list[int]]] = {
    "forwards": lambda n: list(range(n)),
    "backwards": lambda n: list(range(n))[::-1],
    "shuffled": lambda n: np.random.default_rng(n).permutation(n).tolist(),
}


class Low(np.lib.mixins.NDArrayOperatorsMixin):
    """An array whose every operation is rounded to a dtype, with sums taken one by one in an order, or in pairs."""

    def __init__(self, value: Any, dtype: str, order: str) -> None:
        self.value, self.precision, self.order = nearest(value, dtype), dtype, order

    shape = property(lambda self: self.value.shape)
    ndim = property(lambda self: self.value.ndim)
    size = property(lambda self: self.value.size)
    dtype = property(lambda self: self.value.dtype)
    T = property(lambda self: self.like(self.value.T))
    real = property(lambda self: self.like(self.value.real))
    imag = property(lambda self: self.like(self.value.imag))

    def like(self, value: Any) -> Low:
        return Low(value, self.precision, self.order)

    def conj(self) -> Low:
        return self.like(np.conj(self.value))

    def copy(self) -> Low:
        return self.like(self.value.copy())

    def reshape(self, *shape: Any) -> Low:
        return self.like(self.value.reshape(*shape))

    def __getitem__(self, index: Any) -> Low:
        return self.like(self.value[index])

    def __len__(self) -> int:
        return len(self.value)

    def sum(self, axis: Any = None, keepdims: bool = False) -> Low:
        axes = tuple(range(self.ndim)) if axis is None else (axis,) if isinstance(axis, int) else axis
        axes = tuple(a % self.ndim for a in axes)
        kept = [a for a in range(self.ndim) if a not in axes]
        count = math.prod(self.shape[a] for a in axes)
        rows = self.value.transpose([*axes, *kept]).reshape(count, *(self.shape[a] for a in kept))
        total = self.added(rows)
        return self.like(np.expand_dims(total, axes) if keepdims else total)

    def added(self, rows: Any) -> Any:
        if self.order == "in pairs":
            while len(rows) > 1:
                half = len(rows) // 2
                pairs = nearest(rows[:half] + rows[half : 2 * half], self.precision)
                rows = np.concatenate([pairs, rows[2 * half :]])
            return rows[0] if len(rows) else np.zeros(rows.shape[1:], rows.dtype)
        total = np.zeros(rows.shape[1:], rows.dtype)
        for row in rows[ORDERS[self.order](len(rows))]:
            total = nearest(total + row, self.precision)
        return total

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if (ufunc, method) == (np.add, "reduce"):
            return self.sum(kwargs.get("axis", 0), kwargs.get("keepdims", False))
        assert (method, kwargs) == ("__call__", {})
        # Constants are rounded as well, as where an implementation brings them to the array's dtype first.
        values = [part.value if isinstance(part, Low) else nearest(part, self.precision) for part in inputs]
        if ufunc is np.matmul:
            a, b = (self.like(v) for v in values)
            return (a[..., :, :, None] * b[..., None, :, :]).sum(axis=-2)
        if ufunc in (np.multiply, np.true_divide) and values[1].dtype.kind == "c":
            return self.like(
                _complex(ufunc, *values, lambda v: nearest(v, REAL_PART.get(self.precision, self.precision)))
            )
        found = ufunc(*values)
        return self.like(found) if found.dtype.kind in "fc" else found

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func is np.sum:
            return args[0].sum(*args[1:], **kwargs)
        found = func(*map(self.bare, args), **kwargs)
        return self.like(found) if found.dtype.kind in "fc" else found

    def bare(self, argument: Any) -> Any:
        if isinstance(argument, Low):
            return argument.value
        return [self.bare(item) for item in argument] if isinstance(argument, (list, tuple)) else argument


def _complex(ufunc: Any, a: Any, b: Any, r: Callable[[Any], Any]) -> Any:
    """The schoolbook product and quotient, each operation rounded."""
    if ufunc is np.multiply:
        real = r(r(a.real * b.real) - r(a.imag * b.imag))
        return real + 1j * r(r(a.real * b.imag) + r(a.imag * b.real))
    size = r(r(b.real * b.real) + r(b.imag * b.imag))
    product = _complex(np.multiply, a, np.conj(b), r)
    return r(product.real / size) + 1j * r(product.imag / size)


def assert_within(got: Any, bounded: Tracked) -> None:
    assert np.shape(got) == bounded.shape
    worst = difference(np.asarray(got), bounded)
    assert worst is None or worst.holds, worst


def numbers(rng: Any, count: int, dtype: str, kind: str) -> Any:
    """Numbers of a dtype: of ordinary size, of any size, subnormal, or near the largest."""
    bits, least, greatest = FORMATS[dtype]
    mantissas = rng.uniform(0.5, 1, count) * rng.choice((-1, 1), count)
    exponents = {
        "ordinary": lambda: rng.integers(-3, 4, count),
        "any size": lambda: rng.integers(least + 1, greatest + 1, count),
        "subnormal": lambda: rng.integers(least + 1, least + bits, count),
        "near the largest": lambda: rng.integers(greatest - 2, greatest + 1, count),
    }[kind]()
    rounded = nearest(np.ldexp(mantissas, exponents), dtype)
    return np.where(np.isfinite(rounded), rounded, PRECISION[dtype].largest)


KINDS = ("ordinary", "any size", "subnormal", "near the largest")
kinds = pytest.mark.parametrize("kind", KINDS)

# The part of a bound of one operation that its rounding error must reach in half of all cases: a uniform error of at
# most half an ulp is, in the median, more than a quarter of unit roundoff times a result with uniform mantissa.
FLOOR = 0.25
