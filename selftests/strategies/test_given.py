"""The values near those of a recorded tensor keep what these have."""

from __future__ import annotations

import numpy as np
import pytest

from autograd_conformance.strategies.given import FILLS, GIVEN, NEAR, Given

PROBABILITIES = np.array([[0.5, 0.25, 0.25], [1.0, 0.0, 0.0]])
VALUES = {
    "signed": np.array([-3.0, -1.0, -0.0, 0.0, 0.5, 1.0, 7.5]),
    "ties": np.array([2.0, 2.0, 0.5, 2.0]),
    "symmetric": np.array([[2.0, 0.5], [0.5, 3.0]]),
    "lower": np.array([[2.0, 0.0], [0.5, 3.0]]),
    "special": np.array([np.nan, np.inf, -np.inf, 2.0]),
    "complex": np.array([1 + 2j, -3j, 0j]),
    "scalar": np.array(2.5),
    "empty": np.zeros((0, 3)),
    "probabilities": PROBABILITIES,
}


@pytest.mark.parametrize("name", VALUES)
def test_near_values_are_others_and_keep_zeros_ones_signs_order_and_ties(name):
    values = VALUES[name]
    near = Given(values)(NEAR, np.random.default_rng(0))
    assert near.shape == values.shape
    np.testing.assert_array_equal(near == 0, values == 0)
    np.testing.assert_array_equal(np.isnan(near), np.isnan(values))
    if np.isrealobj(values):
        np.testing.assert_array_equal(np.sign(near[~np.isnan(values)]), np.sign(values[~np.isnan(values)]))
        np.testing.assert_array_equal(near == 1, values == 1)
        order = np.argsort(values, axis=None, kind="stable")
        np.testing.assert_array_equal(order, np.argsort(near, axis=None, kind="stable"))
        flat, moved = values.ravel(), near.ravel()
        np.testing.assert_array_equal(flat[:, None] == flat, moved[:, None] == moved)
    np.testing.assert_allclose(near, values, rtol=0.2)
    finite = np.isfinite(values) & (values != 0) & (np.abs(values) != 1)
    assert not finite.any() or not np.array_equal(near, values)


def test_the_given_values_are_the_first_fill_and_that_of_simple_calls():
    for fill in (FILLS[0], FILLS[-1]):
        assert fill == GIVEN
    np.testing.assert_array_equal(Given(PROBABILITIES)(GIVEN, np.random.default_rng(0)), PROBABILITIES)


def test_rows_that_sum_to_one_still_do_also_along_a_move():
    given = Given(PROBABILITIES)
    near, move = (
        given(NEAR, np.random.default_rng(0)),
        given.along(PROBABILITIES, np.array([[1.0, 2.0, 4.0], [3.0, 5.0, 7.0]])),
    )
    np.testing.assert_allclose(near.sum(-1), 1.0)
    np.testing.assert_allclose(move.sum(-1), 0.0, atol=1e-15)
    np.testing.assert_array_equal(move[PROBABILITIES == 0], 0.0)
    assert np.any(move)


def test_a_move_keeps_zeros_unless_it_is_of_near_values_or_there_is_nothing_else():
    move = np.array([1.0, 2.0])
    values, nothing = np.array([0.0, 3.0]), np.zeros(2)
    np.testing.assert_array_equal(Given(values).along(values, move), [0.0, 2.0])
    np.testing.assert_array_equal(Given(values).along(values * 1.01, move), move)
    np.testing.assert_array_equal(Given(nothing).along(nothing, move), move)


@pytest.mark.parametrize("name", ["symmetric", "lower", "signed"])
def test_special_matrices_are_recognized(name):
    assert Given(VALUES[name]).domain == (name if name != "signed" else "any")
    assert Given(VALUES["lower"].T).domain == "upper"


def test_the_zeros_of_a_diagonal_matrix_do_not_move():
    move, values = np.ones((2, 2)), np.diag([2.0, 3.0])
    for fill in (GIVEN, NEAR):
        found = Given(values).along(Given(values)(fill, np.random.default_rng(0)), move)
        np.testing.assert_array_equal(found, np.eye(2))
    lower = VALUES["lower"]
    near = Given(lower)(NEAR, np.random.default_rng(0))
    np.testing.assert_array_equal(Given(lower).along(near, move), move)
