"""Rounding to a dtype: always to the nearest number."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from autograd_conformance.harness.testing.compare import same_bits
from autograd_conformance.reference.rounding import PRECISION, round_to
from autograd_conformance.selftests.oracles.low_precision import FORMATS, REAL_PART, low, nearest, numbers


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
