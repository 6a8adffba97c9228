"""The strategies of shapes: they tie the tensors of a call, and every kind of shape is drawn."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from autograd_conformance.reference.definitions import Function
from autograd_conformance.reference.functions import FUNCTIONS
from autograd_conformance.selftests.strategies.drawn_examples import (
    LINEAR,
    SQUARE,
    TAKE,
    made,
    minimal,
    reaches,
    shapes,
)
from autograd_conformance.selftests.support.declared import every
from autograd_conformance.strategies.calls import calls
from autograd_conformance.strategies.shapes import (
    BLOCKS,
    MAX_ELEMENTS,
    any_shapes,
    block_shape_tuples,
    broadcastable_pairs,
    degenerate,
    mostly_full,
    shape_tuples,
    strata,
    twins,
)


def test_each_kind_of_shape_stays_possible_where_empty_ones_are_few() -> None:
    groups = strata(shape_tuples(made("n i")))
    often = mostly_full(groups)
    assert set(often) == set(groups)
    empty = [any(0 in shape for shape in group[0]) for group in often]
    assert 0 < sum(empty) <= len(empty) / 12
    only_empty = strata((((0,),), ((0, 3),)))
    assert mostly_full(only_empty) == only_empty


def test_one_dimension_is_long_around_blocks() -> None:
    small = block_shape_tuples(made("n k", "k m", sizes={"m": (1, 3)}), BLOCKS[0])
    assert set(small) == {((n, 2), (2, 1)) for n in BLOCKS[0]} | {((2, n), (n, 1)) for n in BLOCKS[0]}
    assert block_shape_tuples(made("n", sizes={"n": (1, 2)}), BLOCKS[0]) == ()
    # What is done with a long square matrix takes too long.
    assert block_shape_tuples(made("n n"), BLOCKS[1]) == ()
    anything = {shape for (shape,) in block_shape_tuples(made("*s"), BLOCKS[2])}
    assert {(2**20,), (65537,), (2, 65537), (65537, 2), (15, 16, 17, 16)} <= anything
    assert max(map(math.prod, anything)) == 2**20


def test_named_dimensions_tie_shapes() -> None:
    found = shape_tuples(made("n i", "o i", "o"))
    assert all(x[1] == w[1] and w[0] == b[0] for x, w, b in found)
    assert {(x[0], x[1], w[0]) for x, w, _ in found} >= {(1, 2, 3), (0, 3, 1), (17, 1, 4), (2, 0, 2)}


def test_sums_and_fixed_lengths_are_computed() -> None:
    found = shape_tuples(made("h+p-1 2", "p", "h", "s+s+s 1", sizes={"p": (1, 3), "h": (0, 4), "s": (2,)}))
    assert set(found) == {((h + p - 1, 2), (p,), (h,), (6, 1)) for h in (0, 4) for p in (1, 3)}


def test_products_are_computed() -> None:
    found = shape_tuples(made("n*p", "2*n+p-1", "n 3*p*p", sizes={"n": (0, 2), "p": (1, 3)}))
    assert set(found) == {((n * p,), (2 * n + p - 1,), (n, 3 * p * p)) for n in (0, 2) for p in (1, 3)}


def test_free_shapes_are_shared_under_one_name() -> None:
    found = shape_tuples(made("n *s", "*s", sizes={"n": (2,), "*s": (0, 3)}))
    assert all(x == (2, *s) for x, s in found)
    assert {len(s) for _, s in found} == {0, 1, 2, 3}


@pytest.mark.parametrize("count", [2, 3])
def test_broadcast_tuples_broadcast(count: int) -> None:
    found = broadcastable_pairs(count)
    for group in found:
        np.broadcast_shapes(*group)
    assert len(set(found)) == len(found)
    assert all(len(group) == count for group in found)
    pairs = set(broadcastable_pairs())
    assert {((), ()), ((2, 3), (2, 3)), ((2, 1), (1, 3)), ((3,), (2, 3)), ((), (2, 3)), ((1, 3), (0, 3))} <= pairs
    assert {(b, a) for a, b in pairs} == pairs


def test_broadcast_functions_get_broadcast_pairs() -> None:
    assert shape_tuples(FUNCTIONS["NumpyMul"]) == broadcastable_pairs()
    assert {max(map(len, pair)) for pair in broadcastable_pairs()} == {0, 1, 2, 3, 4}


@pytest.mark.parametrize("dims", [("~s", "~s", "n"), ("~s", "~t")])
def test_a_broadcast_argument_beside_others_is_refused(dims: tuple[str, ...]) -> None:
    """Silently it would get too few shapes, or shapes tied that have different names."""
    with pytest.raises(ValueError, match="broadcast"):
        shape_tuples(made(*dims))


def test_every_rank_and_kind_of_shape_is_there() -> None:
    found = any_shapes()
    assert {len(shape) for shape in found} == set(range(6))
    assert {shape for shape in found if len(shape) == 2} >= {(1, 1), (1, 2), (3, 1), (2, 3), (0, 3), (2, 0), (0, 0)}
    for rank in range(1, 6):
        of_rank = [shape for shape in found if len(shape) == rank]
        assert any(0 in shape for shape in of_rank)
        assert (1,) * rank in of_rank
        assert any(min(shape) > 1 for shape in of_rank)
    for past in (16, 32, 64, 256):
        assert any(max(shape, default=0) > past for shape in found)
    assert any_shapes(1, 2) == tuple(shape for shape in found if 1 <= len(shape) <= 2)


@every
def test_shapes_are_ordered_from_the_simplest(function: Function) -> None:
    found = shape_tuples(function)
    assert len(set(found)) == len(found) >= 10
    empty = [any(0 in shape for shape in group) for group in found]
    assert empty == sorted(empty)
    elements = [sum(map(math.prod, group)) for group, none in zip(found, empty, strict=True) if not none]
    assert elements == sorted(elements)
    assert all(math.prod(shape) <= MAX_ELEMENTS for group in found for shape in group)
    assert all(len(group) == len(function.arrays) for group in found)
    assert min(elements) == elements[0]


@pytest.mark.parametrize("name", [n for n, f in FUNCTIONS.items() if n not in ("FusedConvBN",)])
def test_every_function_meets_empty_tensors(name: str) -> None:
    assert any(0 in shape for group in shape_tuples(FUNCTIONS[name]) for shape in group)


def test_shapes_shrink_to_the_simplest() -> None:
    def smallest(function: Function, wanted: Callable[[Any], Any] = lambda _: True, **restrictions: Any) -> Any:
        return shapes(minimal(calls(function, **restrictions), lambda call: wanted(shapes(call))))

    assert smallest(SQUARE) == ((),)
    assert smallest(LINEAR) == ((1, 1), (1, 1), (1,))
    assert math.prod(smallest(SQUARE, lambda s: len(s[0]) == 3)[0]) <= 3
    assert smallest(SQUARE, lambda s: max(s[0], default=0) > 20) == ((33,),)
    assert smallest(SQUARE, lambda s: 0 in s[0]) == ((0,),)
    assert smallest(SQUARE, shapes=(((3,),), ((2,),))) == ((3,),)


def test_shapes_are_all_in_reach() -> None:
    for wanted in (((257,),), ((2, 1, 0, 1, 2),), ((1, 1, 1, 1, 1),), ((17, 17),)):
        reaches(calls(SQUARE), lambda call, wanted=wanted: shapes(call) == wanted)


def test_degenerate_and_twins() -> None:
    assert degenerate(((), (2,)))
    assert degenerate(((2, 0),))
    assert not degenerate(((1, 1), (17,)))
    assert twins(FUNCTIONS["QKVProjection"], ((2, 2), (2, 2), (2, 2), (2, 1))) == ((0, 1), (0, 2), (1, 2))
    assert twins(TAKE, ((3,), (3,), (3,))) == ()
