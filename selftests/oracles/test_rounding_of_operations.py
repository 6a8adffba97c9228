"""The running error bound of one operation, and of the errors that its arguments bring."""

from __future__ import annotations

from zlib import crc32

import mpmath
import numpy as np
import pytest

from autograd_conformance.reference.rounding import PRECISION, SAFETY, Tracked
from autograd_conformance.selftests.oracles.low_precision import FLOOR, assert_within, kinds, low, nearest, numbers

# --- one operation ---------------------------------------------------------------------------------------------------

TWO = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.true_divide}
ONE = {
    f.__name__: f
    for f in (np.sqrt, np.exp, np.log, np.sin, np.cos, np.sinh, np.cosh, np.tanh, np.expm1, np.square, np.absolute)
}
EXACT = {f.__name__: f for f in (np.negative, np.positive, np.conjugate)}
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


@pytest.mark.parametrize("exponent", [2, 3, -1, 2.5])
@pytest.mark.parametrize("kind", ["ordinary", "any size"])
def test_complex_powers_may_be_exponentials_of_logarithms(kind: str, exponent: float) -> None:
    rng = np.random.default_rng(crc32(f"{kind} {exponent}".encode()))
    real, imaginary = (numbers(rng, 2000, "float32", kind) for _ in range(2))
    x = real + 1j * imaginary
    single = x.astype(np.complex64)
    with np.errstate(all="ignore"):
        bounded = Tracked.exact(x, "complex64") ** exponent
        kernel = np.exp(np.complex64(exponent) * np.log(single)).astype(np.complex128)
    # Where squares of the parts do not fit, neither does the logarithm of every kernel.
    fits = np.isfinite(kernel) & (np.abs(kernel) > 1e-30)
    assert_within(kernel[fits], Tracked(bounded.value[fits], bounded.error[fits], bounded.precision))
    if kind == "any size":
        # More than products are off by, so that the bound has to know of it.
        off = np.abs(kernel[fits] - bounded.value[fits])
        assert np.any(off > 4 * SAFETY * PRECISION["complex64"].unit * np.abs(bounded.value[fits]))


def test_a_complex_logarithm_near_one_is_that_of_a_rounded_absolute_value() -> None:
    rng = np.random.default_rng(0)
    angle = rng.uniform(-1e-3, 1e-3, 2000)
    x = (np.cos(angle) + 1j * np.sin(angle)).astype(np.complex64)
    real = np.log(np.hypot(x.real, x.imag))
    kernel = real + 1j * np.arctan2(x.imag, x.real)
    assert_within(kernel, np.log(Tracked.exact(x.astype(np.complex128), "complex64")))


@pytest.mark.parametrize("exponent", [2, 3, 2.5, -1.0])
def test_powers_pass_on_errors_where_the_slope_vanishes_too(exponent: float) -> None:
    x, error = np.array([1e-3, 0.5, 2.0]), np.array([1e-3, 0.25, 1e-3]) / 2
    bounded = Tracked(x, error, PRECISION["float64"]) ** exponent
    if exponent > 1:
        assert np.all(np.abs((x + error) ** exponent - x**exponent) <= bounded.error)
        assert np.all(np.abs((x - error) ** exponent - x**exponent) <= bounded.error)
    assert np.all(bounded.error >= np.abs(exponent) * x ** (exponent - 1) * error)


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
