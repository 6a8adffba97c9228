"""The running error bounds against computations that really round, and the comparison that applies them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any
from zlib import crc32

import mpmath
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from autograd_conformance.harness.compare import Difference, difference, same_bits
from autograd_conformance.reference.definitions import Array, Function
from autograd_conformance.reference.functions import EXHIBITS, FUNCTIONS
from autograd_conformance.reference.rounding import PRECISION, SAFETY, Tracked, round_to
from autograd_conformance.strategies.calls import Call, Tensor, calls, cotangent_values, tensor_values

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


# --- rounding itself -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FORMATS)
def test_precision_is_that_of_the_format(dtype: str) -> None:
    bits, least, greatest = FORMATS[dtype]
    found = PRECISION[dtype]
    assert found.unit == 2.0**-bits
    assert found.subnormal == math.ldexp(1, least)
    assert found.normal == math.ldexp(1, least + bits - 1)
    assert found.largest == math.ldexp(2 - 2.0 ** (1 - bits), greatest - 1)
    assert {PRECISION[c] for c, real in REAL_PART.items() if real == dtype} <= {found}


def patterns() -> Any:
    """Random numbers of single precision, of all sizes, NaN and infinities among them."""
    bits = np.random.default_rng(0).integers(0, 2**32, 100_000, dtype=np.uint32)
    return quiet(bits.view(np.float32))


def quiet(values: Any) -> Any:
    """Without signalling NaNs, at which every conversion warns."""
    return np.where(np.isnan(values), values.dtype.type(math.nan), values)


def awkward(dtype: str) -> Any:
    """Ties, neighbours of ties, subnormals, the edge of overflow, zeros, NaN and infinities."""
    bits, least, _ = FORMATS[dtype]
    p = PRECISION[dtype]
    steps = np.array([0.5, 1, 1.5, 2, 2.5, 3, 3.5])
    bases = np.array([1, 2, 1.5, 2.0 - 2 * p.unit, p.normal])[:, None]
    ties = (bases * (1 + 2 * p.unit * steps)).ravel()
    small = p.subnormal * np.array([0.25, 0.5, 0.75, 1, 1.5, 2, 2.5, 2 ** (bits - 1) - 0.5])
    edge = p.largest * (1 + p.unit * np.array([-1, 0, 0.25, 0.5, 0.75, 1, 2]))
    special = [0.0, math.nan, math.inf, 1e-320, math.ldexp(1, least - 2)]
    found = np.concatenate([ties, np.nextafter(ties, 0), np.nextafter(ties, 9), small, edge, special])
    return np.concatenate([found, -found])


@low
def test_round_to_gives_the_nearest_number(dtype: str) -> None:
    rng = np.random.default_rng(0)
    doubles = quiet(rng.integers(0, 2**63, 100_000).view(np.float64))
    near = numbers(rng, 10_000, dtype, "any size") * (1 + rng.uniform(-1, 1, 10_000) * PRECISION[dtype].unit)
    for values in (patterns().astype(np.float64), doubles, near, awkward(dtype)):
        assert same_bits(round_to(values, dtype), nearest(values, dtype))


@low
def test_round_to_agrees_with_torch(dtype: str) -> None:
    """For numbers of single precision, from which both round but once."""
    torch = pytest.importorskip("torch")
    with np.errstate(over="ignore"):
        singles = awkward(dtype).astype(np.float32)
    for values in (patterns(), singles):
        theirs = torch.tensor(values).to(getattr(torch, dtype)).double().numpy()
        assert same_bits(round_to(values.astype(np.float64), dtype), theirs)


def test_round_to_keeps_every_number_of_the_dtype() -> None:
    halves = np.arange(2**16, dtype=np.uint16)
    for dtype, values in {
        "float16": quiet(halves.view(np.float16)).astype(np.float64),
        "bfloat16": quiet((halves.astype(np.uint32) << 16).view(np.float32)).astype(np.float64),
    }.items():
        assert same_bits(round_to(values, dtype), values)


def test_round_to_complex_rounds_each_part_and_leaves_integers_alone() -> None:
    values = np.array([1 / 3 + 1e-46j, 1e39 - 2j / 3, complex(-0.0, math.nan)])
    found = round_to(values, "complex64")
    assert found.dtype == np.complex128
    assert same_bits(found.real, nearest(values.real, "float32"))
    assert same_bits(found.imag, nearest(values.imag, "float32"))
    assert round_to(np.array([2**62 + 1]), "int64").tolist() == [2**62 + 1]
    assert round_to(np.array([True]), "bool").dtype == np.bool_
    assert round_to(0.1, "bfloat16").shape == ()
    assert round_to(np.zeros((0, 3)), "bfloat16").shape == (0, 3)


# --- one operation ---------------------------------------------------------------------------------------------------

TWO = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.true_divide}
ONE = {
    f.__name__: f
    for f in (np.sqrt, np.exp, np.log, np.sin, np.cos, np.sinh, np.cosh, np.tanh, np.expm1, np.square, np.absolute)
}
EXACT = {f.__name__: f for f in (np.negative, np.positive, np.conjugate)}
# The part of a bound of one operation that its rounding error must reach in half of all cases: a uniform error of at
# most half an ulp is, in the median, more than a quarter of unit roundoff times a result with uniform mantissa.
FLOOR = 0.25
# How many times unit roundoff the bound is, for functions that libraries compute to within two ulps or one.
UNITS = dict.fromkeys(ONE, 4.0) | {"sqrt": 2.0}


@pytest.mark.parametrize("name", TWO)
@kinds
@low
def test_arithmetic_is_within_its_bound(dtype: str, kind: str, name: str) -> None:
    rng = np.random.default_rng(crc32(f"{dtype} {kind} {name}".encode()))
    a, b = numbers(rng, 4000, dtype, kind), numbers(rng, 4000, dtype, kind)
    with np.errstate(all="ignore"):
        bounded = TWO[name](Tracked.exact(a, dtype), Tracked.exact(b, dtype))
        got = nearest(TWO[name](a, b), dtype)
    assert_within(got, bounded)
    if kind == "ordinary":
        error = np.abs(got - bounded.value)
        inexact = error > 0
        assert np.median(error[inexact] / bounded.error[inexact]) >= FLOOR
        assert np.all(bounded.error <= PRECISION[dtype].unit * np.abs(bounded.value) * (1 + 1e-12))


@pytest.mark.parametrize("name", ONE)
@kinds
@low
def test_functions_are_within_their_bounds(dtype: str, kind: str, name: str) -> None:
    rng = np.random.default_rng(crc32(f"{dtype} {kind} {name}".encode()))
    x = numbers(rng, 2000, dtype, kind)
    x = np.abs(x) if name in ("sqrt", "log") else x
    with np.errstate(all="ignore"):
        bounded = ONE[name](Tracked.exact(x, dtype))
        got = nearest(ONE[name](x), dtype)
    assert_within(got, bounded)
    if kind == "ordinary" and name != "absolute":
        error = np.abs(got - bounded.value)
        inexact = error > 0
        assert np.median(error[inexact] / bounded.error[inexact]) >= FLOOR / UNITS[name]
        assert np.all(bounded.error <= UNITS[name] * PRECISION[dtype].unit * np.abs(bounded.value) * (1 + 1e-12))


@pytest.mark.parametrize("name", EXACT)
@low
def test_exact_operations_add_no_error(dtype: str, name: str) -> None:
    x = numbers(np.random.default_rng(0), 100, dtype, "ordinary")
    assert np.all(EXACT[name](Tracked(x, np.abs(x) / 8, PRECISION[dtype])).error == np.abs(x) / 8)
    assert not np.any(EXACT[name](Tracked.exact(x, dtype)).error)


@pytest.mark.parametrize("name", ["exp", "sin", "cos", "tanh", "sinh", "cosh", "log", "sqrt", "expm1"])
def test_functions_in_double_precision_are_within_their_bounds(name: str) -> None:
    rng = np.random.default_rng(1)
    x = np.abs(numbers(rng, 300, "float64", "ordinary"))
    bounded = ONE[name](Tracked.exact(x, "float64"))
    with mpmath.workdps(60):
        exact = [getattr(mpmath, name)(mpmath.mpf(v)) for v in x.tolist()]
        errors = [float(abs(mpmath.mpf(v) - e)) for v, e in zip(ONE[name](x).tolist(), exact, strict=True)]
    assert np.all(errors <= SAFETY * bounded.error)
    assert any(errors)


@pytest.mark.parametrize("name", [*TWO, *ONE])
@kinds
@low
def test_torch_is_within_the_bounds_of_one_operation(dtype: str, kind: str, name: str) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(crc32(f"torch {dtype} {kind} {name}".encode()))
    arrays = [numbers(rng, 2000, dtype, kind) for _ in range(2 if name in TWO else 1)]
    arrays = [np.abs(x) for x in arrays] if name in ("sqrt", "log") else arrays
    function = {"divide": "true_divide"}.get(name, name)
    theirs = getattr(torch, function)(*(torch.tensor(x, dtype=getattr(torch, dtype)) for x in arrays))
    with np.errstate(all="ignore"):
        bounded = {**TWO, **ONE}[name](*(Tracked.exact(x, dtype) for x in arrays))
    assert_within(theirs.double().numpy(), bounded)


@pytest.mark.parametrize("name", ["add", "multiply", "divide", "exp", "absolute", "sqrt", "square", "sinh", "tanh"])
@pytest.mark.parametrize("kind", ["ordinary", "any size"])
def test_torch_is_within_the_bounds_of_one_complex_operation(kind: str, name: str) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(crc32(f"{kind} {name}".encode()))
    pairs = [[numbers(rng, 2000, "float32", kind) for _ in range(2)] for _ in range(2 if name in TWO else 1)]
    arrays = [a + 1j * b for a, b in pairs]
    function = {"divide": "true_divide", "absolute": "abs"}.get(name, name)
    theirs = getattr(torch, function)(*(torch.tensor(x, dtype=torch.complex64) for x in arrays))
    with np.errstate(all="ignore"):
        bounded = {**TWO, **ONE}[name](*(Tracked.exact(x, "complex64") for x in arrays))
    assert_within(theirs.to(torch.complex128 if theirs.is_complex() else torch.float64).numpy(), bounded)


# --- errors that are passed on ---------------------------------------------------------------------------------------

EDGES = np.array(np.meshgrid((-1.0, 0.0, 1.0), (-1.0, 0.0, 1.0))).reshape(2, -1)


@pytest.mark.parametrize("name", TWO)
@low
def test_arithmetic_passes_its_operands_errors_on(dtype: str, name: str) -> None:
    """The operands at the corners of their intervals, small and large, the result rounded."""
    rng = np.random.default_rng(crc32(f"{dtype} {name}".encode()))
    a, b = numbers(rng, 4000, dtype, "ordinary"), numbers(rng, 4000, dtype, "ordinary")
    a[::7] = 0
    errors = [
        np.abs(x) * rng.choice((0, 2.0**-9, 2.0**-4, 0.25), x.size) + rng.choice((0, 0.01), x.size) for x in (a, b)
    ]
    bounded = TWO[name](*(Tracked(x, e, PRECISION[dtype]) for x, e in zip((a, b), errors, strict=True)))
    for left, right in EDGES.T:
        with np.errstate(all="ignore"):
            assert_within(nearest(TWO[name](a + left * errors[0], b + right * errors[1]), dtype), bounded)


@pytest.mark.parametrize("name", [name for name in ONE if name not in ("sqrt", "log")])
@low
def test_functions_pass_their_arguments_error_on(dtype: str, name: str) -> None:
    """Also where the derivative vanishes, or is not yet what it is nearby."""
    rng = np.random.default_rng(crc32(f"{dtype} {name}".encode()))
    x = np.concatenate([numbers(rng, 2000, dtype, "ordinary"), np.zeros(10), np.pi / 2 * np.arange(-5, 6)])
    error = np.abs(x) * rng.choice((0, 2.0**-9, 2.0**-4), x.size) + rng.choice((0, 0.01), x.size)
    bounded = ONE[name](Tracked(x, error, PRECISION[dtype]))
    for side in (-1, 1):
        assert_within(nearest(ONE[name](x + side * error), dtype), bounded)


@low
def test_a_product_of_two_errors_counts_where_the_factors_vanish(dtype: str) -> None:
    """(a + b - c) squared: the exact value is 0, and so are both partial derivatives."""
    rng = np.random.default_rng(3)
    a, b = numbers(rng, 500, dtype, "ordinary"), numbers(rng, 500, dtype, "ordinary")
    c = a + b
    rests = Tracked.exact(a, dtype) + Tracked.exact(b, dtype) - c
    got = nearest(nearest(a + b, dtype) - c, dtype)
    assert np.any(got != 0)
    assert_within(got, rests)
    assert_within(nearest(got * got, dtype), rests * rests)
    assert_within(nearest(got * got, dtype)[:, None], (rests[:, None, None] @ rests[:, None, None])[:, 0])


@low
def test_a_denominator_that_may_vanish_bounds_nothing(dtype: str) -> None:
    """The rounded denominator may be anything down to 0 where its error is as large as it is."""
    small = PRECISION[dtype].unit
    a = Tracked.exact(np.array([1.0, 1.0]), dtype)
    denominator = Tracked(np.array([small, 1.0]), np.array([1.5 * small, 2 * small]), PRECISION[dtype])
    found = (a / denominator).error
    assert found[0] == np.inf
    assert found[1] < 8 * small


def test_an_error_of_the_exponent_is_passed_on() -> None:
    base, exponent = 2.0, Tracked(np.array([3.0]), np.array([0.01]), PRECISION["float32"])
    assert_within(np.array([2.0**3.01]), base**exponent)


@low
def test_roots_of_zero_are_exact(dtype: str) -> None:
    found = np.sqrt(Tracked.exact(np.array([0.0, 1.0]), dtype))
    assert found.value.tolist() == [0, 1]
    assert np.all(np.isfinite(found.error))


def test_complex_quotients_of_ordinary_numbers_are_bounded() -> None:
    a, b = np.array([0, 1, 3j, 1e-5]), np.array([2 + 1j, 1e3, 1 - 1j, -4j])
    bounded = Tracked.exact(a, "complex64") / Tracked.exact(b, "complex64")
    assert np.all(bounded.error <= 8 * PRECISION["complex64"].unit * np.abs(bounded.value) * (1 + 1e-12))


def test_quotients_of_tiny_numbers_are_bounded_in_double_precision() -> None:
    a, b = (Tracked(np.array([v]), np.array([v * 2.0**-50]), PRECISION["float64"]) for v in (3e-200, 2e-200))
    assert 2.0**-50 < (a / b).error[0] < 2.0**-48


# --- sums and products of matrices -----------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [*ORDERS, "in pairs"])
@low
def test_sums_are_within_their_bound_in_any_order(dtype: str, order: str) -> None:
    rng = np.random.default_rng(crc32(f"{dtype} {order}".encode()))
    for kind in KINDS:
        for count in (0, 1, 2, 3, 17, 64, 200):
            x = numbers(rng, 3 * count, dtype, kind).reshape(3, count)
            with np.errstate(all="ignore"):
                assert_within(Low(x, dtype, order).sum(axis=1).value, Tracked.exact(x, dtype).sum(axis=1))


@low
def test_the_bound_of_a_sum_is_attained(dtype: str) -> None:
    """Each term is half an ulp of 1 and is lost, by the rule of ties to even."""
    unit = PRECISION[dtype].unit
    for count in (2, 5, 33):
        x = np.array([1.0, *[unit] * (count - 1)])
        bounded = Tracked.exact(x, dtype).sum()
        lost = abs(float(Low(x, dtype, "forwards").sum().value) - bounded.value)
        assert lost == (count - 1) * unit
        assert lost <= bounded.error <= lost * (1 + count * unit) * (1 + 1e-12)


@low
def test_a_sum_may_overflow_on_its_way_to_a_small_value(dtype: str) -> None:
    huge = PRECISION[dtype].largest * 0.75
    for x in ([huge, huge, -huge, -huge], [huge, -huge, huge, -huge]):
        bounded = Tracked.exact(np.array(x), dtype).sum()
        for order in (*ORDERS, "in pairs"):
            with np.errstate(invalid="ignore"):
                assert_within(Low(np.array(x), dtype, order).sum().value, bounded)
    bounded = Tracked.exact(np.array([[huge, huge, -huge, -huge]]), dtype) @ np.ones((4, 1))
    with np.errstate(invalid="ignore"):
        assert_within((Low(np.array([[huge, huge, -huge, -huge]]), dtype, "forwards") @ np.ones((4, 1))).value, bounded)


@pytest.mark.parametrize("order", [*ORDERS, "in pairs"])
@pytest.mark.parametrize("dtype", [*LOW, "complex64"])
def test_matrix_products_are_within_their_bound(dtype: str, order: str) -> None:
    rng = np.random.default_rng(crc32(f"{dtype} {order}".encode()))
    real = REAL_PART.get(dtype, dtype)

    def matrix(rows: int, columns: int, kind: str) -> Any:
        parts = [numbers(rng, rows * columns, real, kind).reshape(rows, columns) for _ in range(2)]
        return parts[0] + 1j * parts[1] if dtype in REAL_PART else parts[0]

    for kind in KINDS:
        for inner in (0, 1, 2, 7, 40):
            a, b = matrix(3, inner, kind), matrix(inner, 2, kind)
            with np.errstate(all="ignore"):
                assert_within((Low(a, dtype, order) @ b).value, Tracked.exact(a, dtype) @ Tracked.exact(b, dtype))


@low
def test_products_that_all_underflow_may_be_lost_from_a_matrix_product(dtype: str) -> None:
    _, least, _ = FORMATS[dtype]
    half = least // 2
    a, b = np.full((1, 64), 2.0**half), np.full((64, 1), 2.0 ** (least - half) * 0.49)
    a, b = nearest(a, dtype), nearest(b, dtype)
    assert not np.any((Low(a, dtype, "forwards") @ b).value)
    bounded = Tracked.exact(a, dtype) @ Tracked.exact(b, dtype)
    assert np.all(bounded.value > 0)
    assert_within(np.zeros((1, 1)), bounded)
    least_bound = 64 * PRECISION[dtype].subnormal
    rounding = 65 * PRECISION[dtype].unit * bounded.value + PRECISION[dtype].subnormal
    assert np.all(bounded.error <= (least_bound + rounding) * (1 + 1e-12))


@low
def test_the_bound_of_a_matrix_product_is_unit_roundoff_times_its_condition(dtype: str) -> None:
    rng = np.random.default_rng(5)
    for inner in (1, 3, 20):
        a, b = (numbers(rng, inner * 4, dtype, "ordinary") for _ in range(2))
        a, b = a.reshape(4, inner), b.reshape(inner, 4)
        bounded = Tracked.exact(a, dtype) @ Tracked.exact(b, dtype)
        condition = np.abs(a) @ np.abs(b)
        assert np.all(bounded.error <= (inner + 1) * PRECISION[dtype].unit * condition * (1 + 1e-12))
        errors = np.abs((Low(a, dtype, "forwards") @ b).value - bounded.value)
        assert np.median(errors / bounded.error) >= FLOOR / (inner + 1) or not np.any(errors)


@pytest.mark.parametrize("operation", ["sum", "mean", "matmul"])
@low
def test_torch_is_within_the_bounds_of_reductions(dtype: str, operation: str) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(crc32(f"{dtype} {operation}".encode()))
    kind = getattr(torch, dtype)
    for size in KINDS:
        for count in (1, 7, 130):
            a = numbers(rng, 4 * count, dtype, size).reshape(4, count)
            b = numbers(rng, 4 * count, dtype, size).reshape(count, 4)
            mine, theirs = Tracked.exact(a, dtype), torch.tensor(a, dtype=kind)
            with np.errstate(all="ignore"):
                if operation == "matmul":
                    mine, theirs = mine @ Tracked.exact(b, dtype), theirs @ torch.tensor(b, dtype=kind)
                else:
                    mine, theirs = getattr(mine, operation)(axis=1), getattr(theirs, operation)(dim=1)
            assert_within(theirs.double().numpy(), mine)


# --- whole formulas --------------------------------------------------------------------------------------------------

DECLARED = {**FUNCTIONS, **{name: exhibit.function for name, exhibit in EXHIBITS.items()}}


@pytest.mark.parametrize("order", ["forwards", "in pairs"])
@pytest.mark.parametrize("function", DECLARED.values(), ids=DECLARED)
def test_references_computed_in_low_precision_are_within_their_bounds(function: Function, order: str) -> None:
    """The references themselves, every operation rounded: what a true implementation may do at its worst."""
    compared = 0

    @seed(crc32(function.name.encode()))
    @settings(
        max_examples=60, database=None, deadline=None, phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(calls(function, dtypes=tuple(d for d in function.dtypes if d not in ("float64", "complex128"))))
    def check(call: Call) -> None:
        nonlocal compared
        plain = _arguments(function, call)
        dtype, slots = call.dtype, [i for i, t in enumerate(call.args) if _differentiable(function, i, t)]
        exact = [Tracked.exact(a, dtype) if i in slots else a for i, a in enumerate(plain)]
        rounded = [Low(a, dtype, order) if i in slots else a for i, a in enumerate(plain)]
        outputs = function.forward(*plain)
        g = cotangent_values(call, [np.shape(y) for y in outputs], [_kind(y, dtype) for y in outputs])
        g = [
            np.zeros(np.shape(y), y.dtype) if v is None and o.differentiable else v
            for v, o, y in zip(g, function.outputs, outputs, strict=True)
        ]
        with np.errstate(all="ignore"):
            pairs = [*zip(function.forward(*rounded), function.forward(*exact), strict=True)]
            pairs += zip(
                function.vjp(tuple(v if v is None else Low(v, dtype, order) for v in g), *rounded),
                function.vjp(tuple(v if v is None else Tracked.exact(v, dtype) for v in g), *exact),
                strict=True,
            )
        for got, bounded in pairs:
            if isinstance(bounded, Tracked):
                value = got.value if isinstance(got, Low) else got
                assert_within(value, bounded)
                compared += int(np.sum(np.isfinite(bounded.error)))

    check()
    assert compared > 200


def _arguments(function: Function, call: Call) -> list[Any]:
    given_values = tensor_values(call, function)
    rest = function.arguments[len(given_values) :]
    return [*given_values, *(None if isinstance(a, Array) else a.default for a in rest)]


def _differentiable(function: Function, number: int, given_argument: Any) -> bool:
    return function.arguments[number].differentiable and isinstance(given_argument, Tensor)


def _kind(value: Any, dtype: str) -> str:
    if value.dtype.kind == "f":
        return REAL_PART.get(dtype, dtype)
    return dtype if value.dtype.kind == "c" else value.dtype.name


def test_decisions_and_moves_need_no_error_of_their_own() -> None:
    x = Tracked(np.array([[3.0, 1.0], [2.0, 5.0]]), np.array([[0.3, 0.1], [0.2, 0.5]]), PRECISION["float32"])
    assert np.sort(x, axis=1).error.tolist() == [[0.1, 0.3], [0.2, 0.5]]
    assert np.max(x, axis=0).error.tolist() == [0.3, 0.5]
    assert np.concatenate([x, np.ones((1, 2))]).error.tolist() == [[0.3, 0.1], [0.2, 0.5], [0, 0]]
    assert np.pad(x, ((1, 0), (0, 0))).error.tolist() == [[0, 0], [0.3, 0.1], [0.2, 0.5]]
    assert np.where(x > 2.5, x, 0.0).error.tolist() == [[0.3, 0], [0, 0.5]]
    assert x.T.error.tolist() == x.error.T.tolist()
    assert x[:, 1].error.tolist() == [0.1, 0.5]
    assert np.argmax(x, axis=1).tolist() == [0, 1]
    assert np.maximum(x, 2).error.tolist() == x.error.tolist()


def test_an_operation_without_a_rule_is_refused() -> None:
    x = Tracked.exact(np.ones(3), "float32")
    for operation in (np.cumsum, np.arctan, np.prod, np.linalg.norm, lambda a: np.add(a, 1, where=[True] * 3)):
        with pytest.raises(TypeError):
            operation(x)


@low
def test_where_an_intermediate_may_overflow_anything_is_admitted(dtype: str) -> None:
    huge = PRECISION[dtype].largest
    x = Tracked.exact(np.array([huge, huge / 8]), dtype)
    assert np.isinf((x * 2 / 2).error).tolist() == [True, False]
    assert np.isinf((x + x).error).tolist() == [True, False]
    assert np.isinf(np.exp(Tracked.exact(np.array([100.0, 1.0]), dtype)).error).tolist() == [True, False]


# --- the comparison --------------------------------------------------------------------------------------------------


def compared(got: Any, value: Any, error: Any) -> Difference:
    expected = Tracked(np.asarray(value), np.broadcast_to(error, np.shape(value)), PRECISION["float64"])
    found = difference(np.asarray(got), expected)
    assert found is not None
    return found


nan, inf = math.nan, math.inf


@pytest.mark.parametrize(
    ("got", "value", "error"),
    [
        ([1.0], [1.0], 0),
        ([0.0], [-0.0], 0),
        ([nan], [nan], 0),
        ([inf], [inf], 0),
        ([1.0 + SAFETY * 0.125], [1.0], 0.125),
        ([nan, -inf, 7.0], [1.0, 2.0, 3.0], inf),
        (1.0, 1.0, 0),
        ([1 + 1j], [1 + 1.5j], 0.125),
        ([complex(inf, 1)], [complex(inf, 1)], 0),
        ([5e-324], [0.0], 5e-324),
        (np.array([3]), np.array([3]), 0),
    ],
)
def test_what_is_within_the_bound_holds(got: Any, value: Any, error: float) -> None:
    assert compared(got, value, error).holds


@pytest.mark.parametrize(
    ("got", "value", "error"),
    [
        ([np.nextafter(1, 2)], [1.0], 0),
        ([1.0 + SAFETY * 0.1250001], [1.0], 0.125),
        ([nan], [1.0], 1e300),
        ([1.0], [nan], 1e300),
        ([inf], [1.0], 1e300),
        ([inf], [-inf], 0),
        ([1.0], [inf], 1.0),
        ([complex(1, nan)], [1 + 1j], 1.0),
        ([1 - 1j], [1 + 1j], 0.25),
        ([1e308], [-1e308], 1.0),
        (nan, 0.0, 0),
        (np.array([3]), np.array([4]), 0),
    ],
)
def test_what_is_beyond_the_bound_does_not_hold(got: Any, value: Any, error: float) -> None:
    assert not compared(got, value, error).holds


def test_the_worst_element_is_named() -> None:
    found = compared([[1.0, 2.0], [3.5, 4.0]], [[1.0, 2.1], [3.0, 4.0]], [[1, 1], [0.25, 0]])
    assert (found.index, found.got, found.expected, found.bound) == ((1, 0), 3.5, 3.0, SAFETY * 0.25)
    assert found.ratio == 0.5 / (SAFETY * 0.25)
    assert compared([1.0, nan], [2.0, 3.0], 1e-9).index == (1,)
    assert compared([0.0, 1.0], [0.0, 1.5], [inf, 1]).index == (1,)


def test_empty_arrays_have_no_difference() -> None:
    assert difference(np.zeros((0, 3)), Tracked.exact(np.zeros((0, 3)), "float64")) is None


def test_slack_replaces_the_safety_factor() -> None:
    expected = Tracked(np.array([1.0]), np.array([0.25]), PRECISION["float64"])
    for slack, holds in ((1.0, False), (2.0, True)):
        found = difference(np.array([1.5]), expected, slack=slack)
        assert found is not None
        assert found.holds == holds


SAME = [
    (np.array([1.0, -0.0, inf]), np.array([1.0, -0.0, inf])),
    (np.array([nan]), -np.array([nan])),
    (np.array([complex(nan, -0.0)]), np.array([complex(nan, -0.0)])),
    (np.array(2.0), np.array(2.0)),
    (np.zeros((0, 2)), np.zeros((0, 2))),
    (np.array([True, False]), np.array([True, False])),
    (np.array([3, 4]), np.array([3, 4])),
]
OTHER = [
    (np.array([0.0]), np.array([-0.0])),
    (np.array([1.0]), np.array([np.nextafter(1, 2)])),
    (np.array([nan, 1.0]), np.array([1.0, nan])),
    (np.array([inf]), np.array([-inf])),
    (np.array([complex(0, 0.0)]), np.array([complex(0, -0.0)])),
    (np.array([complex(-0.0, 1)]), np.array([complex(0.0, 1)])),
    (np.array([complex(nan, 1)]), np.array([complex(nan, 2)])),
    (np.array([complex(1, nan)]), np.array([complex(nan, 1)])),
    (np.array([1.0]), np.array([1.0], np.float32)),
    (np.array([1.0]), np.array(1.0)),
    (np.zeros((0, 2)), np.zeros((2, 0))),
    (np.array([True]), np.array([False])),
    (np.array([1]), np.array([2])),
]


@pytest.mark.parametrize(("a", "b"), SAME)
def test_the_same_bits_are_the_same(a: Any, b: Any) -> None:
    assert same_bits(a, b)
    assert same_bits(b, a)


@pytest.mark.parametrize(("a", "b"), OTHER)
def test_other_bits_are_not_the_same(a: Any, b: Any) -> None:
    assert not same_bits(a, b)
    assert not same_bits(b, a)
