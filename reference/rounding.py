"""Arrays that carry a bound on the rounding error a low-precision computation may have made (running error analysis).

The references are plain NumPy. On `Tracked` arrays instead of ndarrays they give the float64 value and a first-order
bound on the error of the same formula when every operation is rounded to the dtype under test: each operation adds
unit roundoff times its result, and passes on its operands' errors times its partial derivatives.
Sums and matrix products are bounded for any order of summation. (N. Higham, Accuracy and Stability of Numerical
Algorithms, 2nd ed., sections 3.1 and 3.3.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

# Different formulas for the same function (fused multiply-add, another tanh) differ by a small factor from the bound of
# the formula that the reference uses, and the reference makes rounding errors of its own.
SAFETY = 4.0


@dataclass(frozen=True)
class Precision:
    """Unit roundoff, smallest positive subnormal, smallest normal and largest number of a dtype."""

    unit: float
    subnormal: float
    normal: float
    largest: float


def _of(info: Any) -> Precision:
    return Precision(float(info.eps) / 2, float(info.smallest_subnormal), float(info.tiny), float(info.max))


_DOUBLE, _SINGLE, _HALF = (_of(np.finfo(kind)) for kind in (np.float64, np.float32, np.float16))
PRECISION = {
    "float64": _DOUBLE,
    "complex128": _DOUBLE,
    "float32": _SINGLE,
    "complex64": _SINGLE,
    "float16": _HALF,
    "bfloat16": Precision(2.0**-8, 2.0**-133, 2.0**-126, 3.3895313892515355e38),
}


def round_to(values: Any, dtype: str) -> Any:
    """Values rounded to ``dtype``, as float64 or complex128; integers and booleans keep their values."""
    array = np.asarray(values)
    if dtype in ("float64", "complex128") or dtype not in PRECISION:
        return array.astype(dtype)
    with np.errstate(over="ignore"):
        if dtype == "bfloat16":
            # Rounding to float32 first would round twice. 8 significant bits, and nothing finer than the subnormal.
            grain = np.maximum(np.frexp(array)[1] - 8, -133)
            rounded = np.ldexp(np.rint(np.ldexp(array, -grain)), grain)
            finite = np.where(np.abs(rounded) > PRECISION[dtype].largest, np.copysign(np.inf, array), rounded)
            return np.where(np.isfinite(array), finite, array).astype(np.float64)
        return array.astype(dtype).astype(np.complex128 if dtype == "complex64" else np.float64)


class Tracked(np.lib.mixins.NDArrayOperatorsMixin):
    """A float64 or complex128 array, and a bound on each element's absolute error in low precision."""

    __slots__ = ("error", "precision", "value")

    def __init__(self, value: Any, error: Any, precision: Precision) -> None:
        self.value = np.asarray(value)
        self.error = np.asarray(error, dtype=np.float64)
        self.precision = precision

    @classmethod
    def exact(cls, value: Any, dtype: str) -> Tracked:
        """An input of the low-precision computation, without error."""
        value = np.asarray(value)
        return cls(value, np.zeros(value.shape), PRECISION[dtype])

    @property
    def least(self) -> Any:
        """The part of the error that is known before anything is measured; here all of it."""
        return self.error

    @property
    def widest(self) -> Any:
        """The error, infinite where rounding may decide a comparison the other way."""
        return self.error

    def around(self, value: Any) -> Tracked:
        """Other values with the same errors."""
        return Tracked(value, self.error, self.precision)

    def widened(self, error: Any) -> Tracked:
        """The same values with larger errors."""
        return Tracked(self.value, self.error + error, self.precision)

    def __repr__(self) -> str:
        return f"Tracked({self.value!r} ± {self.error!r})"

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    @property
    def ndim(self) -> int:
        return self.value.ndim

    @property
    def size(self) -> int:
        return self.value.size

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.value.dtype

    @property
    def T(self) -> Tracked:  # noqa: N802 - NumPy's name
        return self._moved(lambda part: part.T)

    @property
    def mT(self) -> Tracked:  # noqa: N802 - NumPy's name
        return self._moved(lambda part: np.swapaxes(part, -1, -2))

    @property
    def real(self) -> Tracked:
        return Tracked(self.value.real, self.error, self.precision)

    @property
    def imag(self) -> Tracked:
        return Tracked(self.value.imag, self.error, self.precision)

    def conj(self) -> Tracked:
        return Tracked(self.value.conj(), self.error, self.precision)

    def sum(self, axis: Any = None, keepdims: bool = False) -> Tracked:
        return np.sum(self, axis=axis, keepdims=keepdims)  # type: ignore[no-any-return, call-overload]

    def mean(self, axis: Any = None, keepdims: bool = False) -> Tracked:
        return np.mean(self, axis=axis, keepdims=keepdims)  # type: ignore[no-any-return, call-overload]

    def reshape(self, *shape: Any) -> Tracked:
        return self._moved(lambda part: part.reshape(*shape))

    def transpose(self, *axes: Any) -> Tracked:
        return self._moved(lambda part: part.transpose(*axes))

    def copy(self) -> Tracked:
        return self._moved(np.copy)

    def __getitem__(self, index: Any) -> Tracked:
        return self._moved(lambda part: part[index])

    def __len__(self) -> int:
        return len(self.value)

    def _moved(self, move: Callable[[Any], Any]) -> Tracked:
        return Tracked(move(self.value), move(self.error), self.precision)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method == "reduce" and ufunc is np.add:
            return _sum(inputs[0], axis=kwargs.get("axis", 0), keepdims=kwargs.get("keepdims", False))
        if method != "__call__" or kwargs:
            return NotImplemented
        values = [part.value if isinstance(part, Tracked) else part for part in inputs]
        if ufunc in DECISIONS:
            return ufunc(*values)
        errors = [part.error if isinstance(part, Tracked) else 0.0 for part in inputs]
        if ufunc is np.matmul:
            return _matmul(values, errors, self.precision)
        if ufunc not in _RULES:
            return NotImplemented
        with np.errstate(all="ignore"):
            value = ufunc(*values)
            error = _RULES[ufunc](value, values, errors, self.precision)
        return _checked(value, error, self.precision)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func in _FUNCTIONS:
            return _FUNCTIONS[func](*args, **kwargs)
        if func in _STRUCTURAL:
            return _structural(func, args, kwargs)
        if func in DECISIONS:
            return func(*(part.value if isinstance(part, Tracked) else part for part in args), **kwargs)
        return NotImplemented


def _checked(value: Any, error: Any, precision: Precision, reach: Any = None) -> Tracked:
    """Add the error of underflow; the bound is infinite where an intermediate result may overflow.

    ``reach`` is the largest size of intermediate results, if that is more than the value's.
    """
    with np.errstate(all="ignore"):
        size = np.abs(value)
        # A value below the smallest subnormal is rounded even where its own error underflows.
        rounded = (error > 0) | ((size > 0) & (size < precision.subnormal))
        error = error + np.where((size < precision.normal) & rounded, precision.subnormal, 0.0)
        lost = ~((size if reach is None else reach) + SAFETY * error <= precision.largest)
    return Tracked(value, np.where(lost, np.inf, error), precision)


def _absolute(values: list[Any]) -> list[Any]:
    return [np.abs(part) for part in values]


def _add(value: Any, _: Any, errors: Any, precision: Precision) -> Any:
    return errors[0] + errors[1] + precision.unit * np.abs(value)


def _multiply(value: Any, values: Any, errors: Any, precision: Precision) -> Any:
    a, b = _absolute(values)
    # A complex product rounds its parts separately, each against the terms that may cancel.
    own = 3 * precision.unit * a * b if np.iscomplexobj(value) else precision.unit * np.abs(value)
    # If both factors are the rest of sums that cancelled, the last term is the only one.
    return a * errors[1] + b * errors[0] + errors[0] * errors[1] + own


def _divide(value: Any, values: Any, errors: Any, precision: Precision) -> Any:
    a, b = _absolute(values)
    ratio = np.abs(value)
    own = precision.unit * ratio
    if np.iscomplexobj(values[1]):
        # Computed with the square of the denominator, which may overflow or underflow although the quotient does not.
        small, large = np.where(a == 0, b, np.minimum(a, b)), np.maximum(a, b)
        usual = (small * b >= precision.normal) & (large * b <= precision.largest)
        own = np.where(usual, 8 * own, np.inf)
    # The least denominator; if it can vanish, the result can be anything.
    least = b - errors[1]
    return np.where((least > 0) | (errors[1] == 0), (errors[0] + ratio * errors[1]) / least, np.inf) + own


def _matmul(values: list[Any], errors: list[Any], precision: Precision) -> Tracked:
    a, b = _absolute(values)
    inner = a.shape[-1]
    left, right = np.broadcast_to(errors[0], a.shape), np.broadcast_to(errors[1], b.shape)
    rounded = inner + (3 if any(map(np.iscomplexobj, values)) else 1)
    with np.errstate(all="ignore"):
        value, total = values[0] @ values[1], a @ b
        error = a @ right + left @ b + left @ right + rounded * precision.unit * total
        # Each product may underflow; next to larger ones that is less than their rounding.
        error = error + np.where((total > 0) & (total < precision.normal), inner * precision.subnormal, 0.0)
    return _checked(value, error, precision, reach=total)


def _unary(
    derivative: Callable[[Any, Any], Any], ulps: float, second: Callable[[Any, Any], Any] | None = None
) -> Callable[..., Any]:
    """Rule of an elementwise function that a library computes to within ``ulps`` units in the last place.

    For complex numbers it consists of two real functions and a product: three times as many. ``second`` is its
    second derivative, needed if the first one may vanish.
    """

    def rule(value: Any, values: Any, errors: Any, precision: Precision) -> Any:
        (x,), (error,) = values, errors
        passed = np.abs(derivative(x, value)) * error
        if second is not None:
            passed = passed + np.abs(second(x, value)) * error * error / 2
        own = 2 * ulps * (3 if np.iscomplexobj(x) else 1) * precision.unit * np.abs(value)
        return np.where(error == 0, 0.0, passed) + own

    return rule


def _power(value: Any, values: Any, errors: Any, precision: Precision) -> Any:
    base, exponent = values
    # The largest slope nearby: it may vanish at the base itself.
    nearby = np.where(exponent < 1, np.maximum(np.abs(base) - errors[0], 0), np.abs(base) + errors[0])
    slope = np.where(exponent == 0, 0.0, np.abs(exponent) * nearby ** (exponent - 1))
    passed = np.where(errors[0] == 0, 0.0, slope * errors[0])
    moved = np.where(errors[1] == 0, 0.0, np.abs(value * np.log(np.abs(base))) * errors[1])
    # Computed by products, or by a library's power.
    rounded = np.maximum(np.abs(exponent), 4)
    if np.iscomplexobj(value):
        # exp(exponent * log(base)), whose argument carries the roundings of a logarithm and a product.
        rounded = rounded + 8 * (1 + np.abs(exponent * np.log(np.where(value == 0, 1, base))))
    return passed + moved + rounded * precision.unit * np.abs(value)


def _log(value: Any, values: Any, errors: Any, precision: Precision) -> Any:
    # Near 1 the real part of a complex logarithm is the rest of a rounded absolute value.
    own = 2 * precision.unit if np.iscomplexobj(value) else 0.0
    return _unary(lambda x, _: 1 / x, 2)(value, values, errors, precision) + own


def _passed(_: Any, __: Any, errors: Any, ___: Precision) -> Any:
    return errors[0]


def _larger(_: Any, __: Any, errors: Any, ___: Precision) -> Any:
    return np.maximum(errors[0], errors[1])


_RULES: dict[Any, Callable[..., Any]] = {
    np.add: _add,
    np.subtract: _add,
    np.multiply: _multiply,
    np.true_divide: _divide,
    np.power: _power,
    np.square: _unary(lambda x, _: 2 * x, 2, lambda *_: 2.0),
    np.sqrt: _unary(lambda _, y: 0.5 / y, 1),
    np.exp: _unary(lambda _, y: y, 2),
    np.log: _log,
    np.sin: _unary(lambda x, _: np.cos(x), 2, lambda _, y: y),
    np.cos: _unary(lambda x, _: np.sin(x), 2, lambda _, y: y),
    np.sinh: _unary(lambda x, _: np.cosh(x), 2),
    np.cosh: _unary(lambda x, _: np.sinh(x), 2, lambda _, y: y),
    np.tanh: _unary(lambda _, y: 1 - y * y, 2),
    np.expm1: _unary(lambda x, _: np.exp(x), 2),
    np.negative: _passed,
    np.positive: _passed,
    np.conjugate: _passed,
    np.absolute: _unary(lambda x, _: np.ones_like(x), 2),
    np.maximum: _larger,
    np.minimum: _larger,
}

# Comparisons are decided on the values of the reference: inputs must keep away from the boundary.
DECISIONS = {
    np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal, np.sign, np.isfinite, np.isnan,
    np.argsort, np.argmax, np.argmin, np.zeros_like, np.ones_like, np.shape, np.ndim, np.size, np.iscomplexobj,
}  # fmt: skip

_STRUCTURAL = {
    np.reshape, np.transpose, np.swapaxes, np.moveaxis, np.concatenate, np.stack, np.broadcast_to, np.take,
    np.take_along_axis, np.expand_dims, np.squeeze, np.flip, np.pad, np.repeat, np.roll, np.copy, np.diagonal,
    np.lib.stride_tricks.sliding_window_view, np.sort, np.tril, np.triu,
}  # fmt: skip


def _part(argument: Any, name: str) -> Any:
    if isinstance(argument, Tracked):
        return getattr(argument, name)
    if isinstance(argument, (list, tuple)) and any(isinstance(item, Tracked) for item in argument):
        return [_error_of(item) if name == "error" else _part(item, name) for item in argument]
    return argument


def _error_of(item: Any) -> Any:
    return item.error if isinstance(item, Tracked) else np.zeros(np.shape(item))


def _precision(*arguments: Any) -> Precision:
    for argument in arguments:
        found = argument if isinstance(argument, (list, tuple)) else (argument,)
        for item in found:
            if isinstance(item, Tracked):
                return item.precision
    raise TypeError("no Tracked array among the arguments")


def _structural(func: Any, args: Any, kwargs: Any) -> Tracked:
    if func is np.sort:
        order = np.argsort(args[0].value, kind="stable", **kwargs)
        return _structural(np.take_along_axis, (args[0], order), {"axis": kwargs.get("axis", -1)})
    value = func(*(_part(argument, "value") for argument in args), **kwargs)
    error = func(*(_part(argument, "error") for argument in args), **kwargs)
    return Tracked(value, error, _precision(*args))


def _sum(array: Any, axis: Any = None, keepdims: bool = False) -> Tracked:
    value = np.sum(array.value, axis=axis, keepdims=keepdims)
    terms = array.value.size // max(value.size, 1)
    total = np.sum(np.abs(array.value), axis=axis, keepdims=keepdims)
    error = np.sum(array.error, axis=axis, keepdims=keepdims) + max(terms - 1, 0) * array.precision.unit * total
    return _checked(value, error, array.precision, reach=total)


def _mean(array: Any, axis: Any = None, keepdims: bool = False) -> Tracked:
    total = _sum(array, axis=axis, keepdims=keepdims)
    result: Tracked = total / float(max(array.value.size // max(total.size, 1), 1))
    return result


def _where(condition: Any, yes: Any, no: Any) -> Tracked:
    condition = condition.value if isinstance(condition, Tracked) else condition
    value = np.where(condition, _part(yes, "value"), _part(no, "value"))
    error = np.where(condition, _error_of(yes), _error_of(no))
    return Tracked(value, error, _precision(yes, no))


def _max(array: Any, axis: Any = None, keepdims: bool = False) -> Tracked:
    value = np.max(array.value, axis=axis, keepdims=keepdims)
    return Tracked(value, np.max(array.error, axis=axis, keepdims=keepdims), array.precision)


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.sum: _sum,
    np.mean: _mean,
    np.where: _where,
    np.max: _max,
    np.amax: _max,
    np.real: lambda array: array.real,
    np.imag: lambda array: array.imag,
}
