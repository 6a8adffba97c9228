"""The values of drawn tensors and cotangents: exact in every dtype, inside their domain, every kind in reach."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import isqrt
from typing import Any

import numpy as np
import pytest

from autograd_conformance.harness.testing.compare import same_bits
from autograd_conformance.reference.definitions import FLOATING, Function
from autograd_conformance.reference.functions import FUNCTIONS
from autograd_conformance.reference.rounding import PRECISION, round_to
from autograd_conformance.selftests.strategies.drawn_examples import SINH, SQUARE, TAKE, always, drawn, never, reaches
from autograd_conformance.selftests.support.declared import DECLARED, every
from autograd_conformance.strategies.calls import Call, Cotangent, Tensor, calls, cotangent_values, tensor_values
from autograd_conformance.strategies.scope import ALL_USED, ANY_CALL, ANY_MASK, SMOOTH, masks
from autograd_conformance.strategies.shapes import MAX_ELEMENTS
from autograd_conformance.strategies.values import (
    ANY_NUMBER,
    DOMAINS,
    EXTREMES,
    FILLS,
    SPECIALS,
    TINY,
    admits_specials,
    fill,
    overwrite,
)  # fmt: skip

# --- values ----------------------------------------------------------------------------------------------------------

# The domains in which values keep few bits, and those of matrices.
EXACT = ("any", "free", "nonzero", "positive", "distinct")
MATRICES = ("definite", "symmetric", "full", "lower", "upper")


def _anything(values: Any) -> bool:
    return bool(np.all(np.isfinite(values)))


IN_DOMAIN: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("any", "free", "nonzero", "positive", "distinct"), _anything),
    "irregular": lambda a: not np.any(np.isin(8 * a.real % 1, 0)),
    "unit": lambda a: bool(np.all((a.real > 0) & (a.real < 1))),
    "ball": lambda a: bool(np.sqrt(np.sum(np.abs(a) ** 2)) < 1),
    "sorted": lambda a: bool(np.all(np.diff(a.real) > 0.2)),
    "definite": lambda a: bool(np.all(np.linalg.eigvalsh(a) > 0.9)),
    "symmetric": lambda a: bool(np.array_equal(a, np.conj(np.swapaxes(a, -1, -2)))),
    "full": lambda a: bool(np.all(np.linalg.svd(a, compute_uv=False) >= 0.5)),
    "lower": lambda a: bool(np.all(a == np.tril(a)) and np.all(np.abs(np.diagonal(a)) >= 1)),
    "upper": lambda a: bool(np.all(a == np.triu(a)) and np.all(np.abs(np.diagonal(a)) >= 1)),
    "binary": lambda a: bool(np.all(np.isin(a.real, (0.0, 1.0)))),
}


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("dtype", FLOATING)
def test_fills_are_exact_in_every_dtype_and_stay_in_their_domain(dtype: str, domain: str) -> None:
    complex_values = dtype.startswith("complex")
    for name in DOMAINS[domain].fills:
        for size in (0, 1, 2, 13, 100, MAX_ELEMENTS):
            for number in range(5):
                rng = np.random.default_rng(number)
                shape = (isqrt(size),) * 2 if domain in MATRICES else (size,)
                values = fill(name, domain, shape, rng, complex_values=complex_values)
                assert values.shape == shape
                assert values.dtype == (np.complex128 if complex_values else np.float64)
                # The dense fill is there to fill the mantissa; the references start from what it is rounded to.
                exact = name != "dense" and domain in EXACT
                assert not exact or np.array_equal(round_to(values, dtype), values), (name, size)
                assert IN_DOMAIN[domain](values), (name, size)
                if domain == "nonzero":
                    assert np.all(np.abs(values) >= 0.125)
                if domain == "positive":
                    assert np.all(values.real >= 0.125)
                if domain == "distinct":
                    ordered = np.sort(round_to(values, dtype).real)
                    assert np.all(np.diff(ordered) >= 0.25)


def test_fills_differ() -> None:
    found = {name: make(np.random.default_rng(0), 100).tolist() for name, make in FILLS.items()}
    assert len({tuple(values) for values in found.values()}) == len(FILLS)
    # The tests at small values put theirs over what a domain draws.
    assert {name for domain in DOMAINS.values() for name in domain.fills} == set(FILLS) - {TINY}
    both_signs = [name for name, values in found.items() if min(values) < 0 < max(values)]
    assert set(both_signs) == set(FILLS) - {"ones", "zeros"}
    assert fill("normal", "any", (2, 3), np.random.default_rng(0), complex_values=True).imag.any()


@every
def test_drawn_values_are_exact_and_in_the_domain(function: Function) -> None:
    def holds(call: Call) -> bool:
        values = tensor_values(call, function)
        assert len(values) == len(call.args)
        for argument, tensor, value in zip(function.arguments, call.args, values, strict=False):
            if not isinstance(tensor, Tensor):
                assert value is tensor
                continue
            assert value.shape == tensor.shape
            assert same_bits(round_to(value, tensor.dtype), value)
            if argument.dtype is not None:
                continue
            domain = argument.smooth if call.smooth and argument.smooth else argument.values
            assert domain == "any" or not tensor.specials
            assert domain != "distinct" or len(set(value.ravel().tolist())) == value.size
            assert domain not in ("nonzero", "positive") or np.all(value != 0)
            assert domain != "positive" or np.all(value.real > 0)
        return True

    for smooth in (False, True):
        always(calls(function, replace(ANY_CALL, smooth=smooth)), holds, examples=20)


# The first Function with each set of domains.
DRAWN = {frozenset(a.values for a in f.arrays if a.dtype is None): f for f in reversed(DECLARED.values())}


@pytest.mark.parametrize("function", DRAWN.values(), ids=lambda f: f.name)
def test_every_fill_of_the_domain_is_reached(function: Function) -> None:
    seen: set[tuple[str, str]] = set()
    for call in drawn(calls(function), 600, 0):
        seen |= {
            (a.name, t.fill)
            for a, t in zip(function.arguments, call.args, strict=False)
            if isinstance(t, Tensor) and a.dtype is None
        }
    assert seen == {(a.name, f) for a in function.arrays if a.dtype is None for f in DOMAINS[a.values].fills}


@pytest.mark.parametrize("special", SPECIALS.values(), ids=SPECIALS)
def test_specials_are_reached(special: float) -> None:
    def there(call: Call) -> bool:
        return any(same_bits(np.array(v), np.array(special)) for _, v in call.tensors[0].specials)

    reaches(calls(SQUARE), there)
    never(calls(SQUARE, replace(ANY_CALL, specials="none")), lambda call: call.tensors[0].specials)
    never(calls(FUNCTIONS["ReLU"], SMOOTH), lambda call: call.tensors[0].specials)
    reaches(calls(FUNCTIONS["ReLU"]), there)


@pytest.mark.parametrize("dtype", FLOATING)
def test_extremes_are_reached_and_exact(dtype: str) -> None:
    expected = {make(PRECISION[dtype]) for make in EXTREMES.values()}
    assert len(expected) == len(EXTREMES) - 1  # the two zeros are equal
    assert all(round_to(np.array(v), dtype) == v for v in expected)
    found = drawn(calls(SQUARE, replace(ANY_CALL, specials="extreme"), dtypes=(dtype,)), 150, 0)
    assert {value for call in found for _, value in call.tensors[0].specials} == expected


@pytest.mark.parametrize("dtype", FLOATING)
def test_numbers_that_are_not_finite_are_reached(dtype: str) -> None:
    expected = {str(make(PRECISION[dtype])) for make in ANY_NUMBER.values()}
    found = drawn(calls(SQUARE, replace(ANY_CALL, specials="any number"), dtypes=(dtype,)), 150, 0)
    assert {str(value) for call in found for _, value in call.tensors[0].specials} == expected
    assert {"nan", "inf", "-inf", "-0.0"} < expected


@pytest.mark.parametrize("domain", DOMAINS)
def test_specials_are_admitted_only_where_every_number_is(domain: str) -> None:
    assert admits_specials(domain) == (domain in ("any", "free"))


def test_overwriting_counts_in_row_major_order_and_wraps_around() -> None:
    values = np.arange(6.0).reshape(2, 3)
    assert overwrite(values, ((4, -1.0),)).tolist() == [[0, 1, 2], [3, -1, 5]]
    assert overwrite(values, ((6, 7.0), (0, 8.0))).tolist() == [[8, 1, 2], [3, 4, 5]]
    assert overwrite(values.T, ((1, 9.0),)).tolist() == [[0, 9], [1, 4], [2, 5]]
    assert values.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert overwrite(np.zeros(()), ((5, 2.0),)) == 2
    # What is computed of an array without dimensions is a scalar.
    assert overwrite(np.zeros(()) + 1, ((5, 2.0),)) == 2
    assert overwrite(np.zeros((0,)), ((5, 2.0),)).shape == (0,)


def test_index_tensors_hold_what_their_functions_need() -> None:
    for call in drawn(calls(TAKE), 40, 0):
        _, ind, inverse, dim = tensor_values(call, TAKE)
        if ind.size:
            assert np.array_equal(np.take_along_axis(ind, inverse, dim), np.sort(ind, axis=dim))
    spmm = FUNCTIONS["SpecialSpmm"]
    for call in drawn(calls(spmm), 40, 0):
        indices, _, (m, n), _ = tensor_values(call, spmm)
        assert not indices.size or (np.all(indices.T - (m, n) < 0) and np.all(indices >= 0))


# --- cotangents ------------------------------------------------------------------------------------------------------


def test_outputs_are_used_and_unused() -> None:
    for used in masks(3, some=True):
        reaches(calls(SINH), lambda call, used=used: tuple(c is not None for c in call.cotangents) == used)
    never(calls(SINH), lambda call: not any(call.cotangents))
    reaches(calls(SINH, ANY_MASK), lambda call: call.cotangents == (None, None, None))
    always(calls(SINH, ALL_USED), lambda call: None not in call.cotangents)


def test_cotangents_have_the_values_that_are_promised() -> None:
    call = Call("F", cotangents=(Cotangent(), None, Cotangent("normal", layout="expanded"), Cotangent("ramp")))
    form = [(2,), (3,), (2, 3), ()], ["float32", "float32", "bfloat16", "complex64"]
    ones, unused, normal, ramp = cotangent_values(call, *form)
    assert ones.tolist() == [1, 1]
    assert unused is None
    assert normal[0].tolist() == normal[1].tolist()
    assert ramp.shape == ()
    assert ramp.real == -1
    assert same_bits(round_to(normal, "bfloat16"), normal)
    for name in ("ones", "ramp", "normal"):
        reaches(calls(SQUARE), lambda call, name=name: call.cotangents[0].fill == name)


def test_the_seed_decides_the_values() -> None:
    call = Call("Square", (Tensor((20,), fill="normal"),), (Cotangent("normal"),))
    other = replace(call, seed=1)
    assert same_bits(*(tensor_values(call, SQUARE)[0] for _ in range(2)))
    assert not same_bits(tensor_values(call, SQUARE)[0], tensor_values(other, SQUARE)[0])
    first, second = (cotangent_values(c, [(20,)], ["float64"])[0] for c in (call, other))
    assert not same_bits(first, second)
    assert not same_bits(tensor_values(call, SQUARE)[0], first)
