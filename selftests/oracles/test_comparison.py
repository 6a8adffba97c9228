"""The comparison of a result with a bounded value, and the comparison bit for bit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from autograd_conformance.harness.testing.compare import Difference, difference, same_bits
from autograd_conformance.reference.rounding import PRECISION, SAFETY, Tracked


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
