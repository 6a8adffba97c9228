"""The running error bounds of sums and of products of matrices, in any order of the terms."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import numpy as np
import pytest

from autograd_conformance.reference.rounding import PRECISION, Tracked
from autograd_conformance.selftests.oracles.low_precision import (
    FLOOR,
    FORMATS,
    KINDS,
    LOW,
    ORDERS,
    REAL_PART,
    Low,
    assert_within,
    low,
    nearest,
    numbers,
)


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
