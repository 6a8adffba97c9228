"""Many numbers as a short expression: it gives the same bits, and where there is no rule it says so."""

from __future__ import annotations

import numpy as np
import pytest

from autograd_conformance.implementations.scripting import NoScript
from autograd_conformance.implementations.torch.series import listed

IRREGULAR = np.random.default_rng(0).standard_normal(5000)


def number(value):
    return "nan" if value != value else repr(value)


def evaluated(text, dtype):
    return np.array(eval(text, {"nan": np.nan, "inf": np.inf, "range": range}), dtype)


@pytest.mark.parametrize(
    "array",
    [
        np.full(1023, 0.1),
        np.full((3, 40), np.nan),
        np.array([1.0, -0.0] * 100),
        np.array([0.0, -0.0, 3.5] * 100)[:-1],
        (np.arange(65280) / 4 - 8160).reshape(15, 16, 17, 16),
        np.arange(100, 0, -1),
        np.array([True, False] * 30),
        np.arange(200, dtype=np.float32) * np.float32(0.25),
        np.array([1j, 2.0] * 40),
        np.array([np.inf, 1.0] * 40),
    ],
    ids=lambda array: f"{array.dtype}-{array.size}",
)
def test_a_rule_gives_the_same_bits_in_few_words(array):
    text, one_by_one = listed(array, number)
    assert not one_by_one
    assert len(text) < 100
    assert evaluated(text, array.dtype).tobytes() == array.tobytes()


@pytest.mark.parametrize(
    "array", [IRREGULAR[:40], np.sqrt(np.arange(40.0)), np.array([1.0] * 40 + [2.0]), np.array([0.25, 0.5])]
)
def test_numbers_without_a_rule_are_listed_one_by_one(array):
    text, one_by_one = listed(array, number)
    assert one_by_one
    assert evaluated(text, array.dtype).tobytes() == array.tobytes()


def test_too_many_numbers_without_a_rule_are_no_part_of_a_script():
    with pytest.raises(NoScript, match="has 5000 numbers in no simple order"):
        listed(IRREGULAR, number)
