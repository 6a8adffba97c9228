"""What the strategies give: always what they promise, every corner in reach, the simplest where nothing else counts."""

from __future__ import annotations

import importlib
import math
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, find, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from autograd_conformance.harness import profiles
from autograd_conformance.harness.compare import same_bits
from autograd_conformance.reference.definitions import FLOATING, Array, Function, Static
from autograd_conformance.reference.functions import EXHIBITS, FUNCTIONS
from autograd_conformance.reference.rounding import PRECISION, round_to
from autograd_conformance.strategies import compositions
from autograd_conformance.strategies.calls import (
    Call,
    Cotangent,
    Tensor,
    calls,
    cotangent_values,
    masks,
    parse,
    tensor_values,
)
from autograd_conformance.strategies.layouts import LAYOUTS, place, stored, suitable
from autograd_conformance.strategies.shapes import (
    MAX_ELEMENTS,
    any_shapes,
    broadcastable_pairs,
    degenerate,
    shape_tuples,
    shapes,
    twins,
)
from autograd_conformance.strategies.values import DOMAINS, EXTREMES, FILLS, SPECIALS, admits_specials, fill, overwrite

DECLARED = {**FUNCTIONS, **{name: exhibit.function for name, exhibit in EXHIBITS.items()}}
LINEAR, SQUARE, SINH = FUNCTIONS["LinearFunction"], FUNCTIONS["Square"], FUNCTIONS["Sinh"]
SELECT, TAKE, LLTM = FUNCTIONS["Select"], FUNCTIONS["NumpyTake"], FUNCTIONS["LLTM"]
every = pytest.mark.parametrize("function", DECLARED.values(), ids=DECLARED)


def options(examples: int, *phases: Phase) -> settings:
    return settings(
        max_examples=examples,
        database=None,
        deadline=None,
        derandomize=False,
        phases=phases or (Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )


def always(strategy: st.SearchStrategy[Any], holds: Callable[[Any], Any], *, examples: int = 60) -> None:
    """Every example satisfies the predicate."""

    @seed(1)
    @options(examples)
    @given(strategy)
    def run(value: Any) -> None:
        assert holds(value), value

    run()


def reaches(strategy: st.SearchStrategy[Any], wanted: Callable[[Any], Any], *, examples: int = 1000) -> Any:
    """Some example satisfies the predicate."""
    return find(strategy, wanted, settings=options(examples), random=random.Random(0))


def never(strategy: st.SearchStrategy[Any], unwanted: Callable[[Any], Any], *, examples: int = 200) -> None:
    with pytest.raises(NoSuchExample):
        reaches(strategy, unwanted, examples=examples)


def minimal(strategy: st.SearchStrategy[Any], wanted: Callable[[Any], Any] = lambda _: True) -> Any:
    """The simplest example that satisfies the predicate."""
    return find(strategy, wanted, settings=options(1000, Phase.generate, Phase.shrink), random=random.Random(0))


def drawn(strategy: st.SearchStrategy[Any], count: int, number: int) -> list[Any]:
    """The examples that a seed gives."""
    found = []

    @seed(number)
    @options(count)
    @given(strategy)
    def run(value: Any) -> None:
        found.append(value)

    run()
    return found


def made(*dims: str, sizes: dict[str, tuple[int, ...]] | None = None) -> Function:
    """A Function of tensors of these dims."""
    arrays = tuple(Array(name=f"x{number}", dims=text) for number, text in enumerate(dims))
    return replace(SQUARE, name="Made", arguments=arrays, sizes=sizes or {})


# --- shapes ----------------------------------------------------------------------------------------------------------


def test_named_dimensions_tie_shapes() -> None:
    found = shape_tuples(made("n i", "o i", "o"))
    assert all(x[1] == w[1] and w[0] == b[0] for x, w, b in found)
    assert {(x[0], x[1], w[0]) for x, w, _ in found} >= {(1, 2, 3), (0, 3, 1), (17, 1, 4), (2, 0, 2)}


def test_sums_and_fixed_lengths_are_computed() -> None:
    found = shape_tuples(made("h+p-1 2", "p", "h", "s+s+s 1", sizes={"p": (1, 3), "h": (0, 4), "s": (2,)}))
    assert set(found) == {((h + p - 1, 2), (p,), (h,), (6, 1)) for h in (0, 4) for p in (1, 3)}


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
    assert minimal(shapes(SQUARE)) == ((),)
    assert minimal(shapes(LINEAR)) == ((1, 1), (1, 1), (1,))
    assert math.prod(minimal(shapes(SQUARE), lambda s: len(s[0]) == 3)[0]) <= 3
    assert minimal(shapes(SQUARE), lambda s: max(s[0], default=0) > 20) == ((33,),)
    assert minimal(shapes(SQUARE), lambda s: 0 in s[0]) == ((0,),)
    assert minimal(shapes(SQUARE, among=(((3,),), ((2,),)))) == ((3,),)


def test_shapes_are_all_in_reach() -> None:
    for wanted in (((257,),), ((2, 1, 0, 1, 2),), ((1, 1, 1, 1, 1),), ((17, 17),)):
        reaches(shapes(SQUARE), lambda s, wanted=wanted: s == wanted)


def test_degenerate_and_twins() -> None:
    assert degenerate(((), (2,)))
    assert degenerate(((2, 0),))
    assert not degenerate(((1, 1), (17,)))
    assert twins(FUNCTIONS["QKVProjection"], ((2, 2), (2, 2), (2, 2), (2, 1))) == ((0, 1), (0, 2), (1, 2))
    assert twins(TAKE, ((3,), (3,), (3,))) == ()


# --- dtypes and masks ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATING)
def test_dtypes_are_reached_and_kept(dtype: str) -> None:
    assert reaches(calls(SQUARE), lambda call: call.dtype == dtype).tensors[0].dtype == dtype
    always(calls(LINEAR, dtypes=(dtype,)), lambda call: {t.dtype for t in call.tensors} == {dtype}, examples=20)


def test_index_tensors_keep_their_dtype_and_never_require_grad() -> None:
    always(
        calls(TAKE),
        lambda call: [t.dtype for t in call.tensors[1:]] == ["int64"] * 2 and call.mask[1:] == (False,) * 3,
    )


@pytest.mark.parametrize("count", range(5))
def test_masks_are_all_subsets_the_full_one_first(count: int) -> None:
    found = masks(count, some=False)
    assert len(set(found)) == len(found) == 2**count
    assert found[0] == (True,) * count
    assert [sum(mask) for mask in found] == sorted(map(sum, found), reverse=True)
    assert set(masks(count, some=True)) == {mask for mask in found if any(mask)}


def test_every_mask_is_reached() -> None:
    for mask in masks(3, some=True):
        reaches(calls(LINEAR), lambda call, mask=mask: call.mask == mask)
    reaches(calls(LINEAR, some=False), lambda call: not any(call.mask))
    always(calls(LINEAR), lambda call: any(call.mask))
    always(calls(LINEAR, full=True), lambda call: all(t.requires_grad for t in call.tensors))


# --- optional arguments and statics ----------------------------------------------------------------------------------


def test_optional_tensors_are_given_none_or_omitted() -> None:
    reaches(calls(LINEAR), lambda call: len(call.args) == 2)
    reaches(calls(LINEAR), lambda call: len(call.args) == 3 and call.args[2] is None)
    reaches(calls(LINEAR), lambda call: len(call.tensors) == 3)
    strategy = calls(FUNCTIONS["LinearFunctionSetupContext"])
    always(strategy, lambda call: len(call.args) == 3)
    reaches(strategy, lambda call: call.args[2] is None)


def test_defaulted_statics_are_given_or_omitted() -> None:
    for name in ("Select", "FusedConvBN"):
        count = len(FUNCTIONS[name].arguments)
        reaches(calls(FUNCTIONS[name]), lambda call, count=count: len(call.args) == count - 1)
        reaches(calls(FUNCTIONS[name]), lambda call, count=count: len(call.args) == count)


def test_only_trailing_arguments_are_omitted() -> None:
    last = (
        Array(name="b", dims="n", optional=("none", "omitted")),
        Static(name="k", choices=lambda _: (1,), default=1),
    )
    function = replace(SQUARE, name="Two", arguments=(*made("n").arguments, *last))
    seen = {tuple(type(a).__name__ for a in call.args) for call in drawn(calls(function), 200, 0)}
    assert seen == {
        ("Tensor", "Tensor", "int"), ("Tensor", "Tensor"), ("Tensor", "NoneType", "int"), ("Tensor", "NoneType"),
        ("Tensor",),
    }  # fmt: skip


@every
def test_calls_are_valid(function: Function) -> None:
    """The references accept them, statics come from the choices for the shapes, cotangents fit the outputs."""
    admitted = set(shape_tuples(function))

    def holds(call: Call) -> bool:
        given_tensors = [argument for argument, a in zip(function.arguments, call.args, strict=False)]
        assert given_tensors == list(function.arguments[: len(call.args)])
        if len(call.tensors) == len(function.arrays):
            drawn_shapes = tuple(t.shape for t in call.tensors)
            assert drawn_shapes in admitted
            for argument, value in zip(function.arguments, call.args, strict=False):
                if isinstance(argument, Static):
                    assert value in tuple(argument.choices(drawn_shapes))
        values = tensor_values(call, function)
        rest = function.arguments[len(values) :]
        args = [*values, *(None if isinstance(a, Array) else a.default for a in rest)]
        with np.errstate(all="ignore"):
            outputs = function.forward(*args)
        assert len(outputs) == len(call.cotangents) == len(function.outputs)
        assert any(c is not None for c in call.cotangents)
        assert all(o.differentiable or c is None for o, c in zip(function.outputs, call.cotangents, strict=True))
        assert call.function == function.name
        assert call.dtype in function.dtypes
        return True

    always(calls(function), holds, examples=30)


# --- layouts ---------------------------------------------------------------------------------------------------------


def placements() -> list[Any]:
    found = []
    for shape in any_shapes():
        for dtype in ("float64", "float32", "bfloat16", "complex64", "int64"):
            found += [(shape, dtype, layout) for layout in suitable(shape, dtype)]
    return found


def sample(shape: tuple[int, ...], dtype: str) -> Any:
    values = fill("ramp", "any", shape, np.random.default_rng(0), complex_values=dtype.startswith("complex"))
    return round_to(4 * values, dtype)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_are_reached(layout: str) -> None:
    reaches(calls(SQUARE), lambda call: call.tensors[0].layout == layout)
    reaches(calls(SQUARE), lambda call: call.cotangents[0].layout == layout)


def test_layouts_can_be_restricted() -> None:
    always(calls(LINEAR, layouts=False), lambda call: {t.layout for t in call.tensors} == {"contiguous"})
    always(calls(LINEAR, cotangent_layouts=False), lambda call: call.cotangents[0].layout == "contiguous")
    always(calls(LINEAR, expanded=False), lambda call: "expanded" not in {t.layout for t in call.tensors})
    always(
        calls(LINEAR, contiguous=False),
        lambda call: all(
            t.layout != "contiguous" or suitable(t.shape, t.dtype) == ("contiguous",) for t in call.tensors
        ),
    )


def test_drawn_layouts_suit_the_shape() -> None:
    always(calls(SQUARE), lambda call: call.tensors[0].layout in suitable(call.tensors[0].shape, call.tensors[0].dtype))


@pytest.mark.parametrize("name", ["Sort", "NumpySort", "GlobalMaxPool", "FusedConvBN", "NumpyTake"])
def test_what_must_be_distinct_is_never_expanded(name: str) -> None:
    function = FUNCTIONS[name]

    def holds(call: Call) -> bool:
        pairs = [(a, t) for a, t in zip(function.arguments, call.args, strict=False) if isinstance(t, Tensor)]
        return all(t.layout != "expanded" for a, t in pairs if a.values == "distinct" or a.dtype is not None)

    always(calls(function), holds)


def test_placed_arrays_have_the_stored_values_on_numpy() -> None:
    for shape, dtype, layout in placements():
        kind = "float64" if dtype == "bfloat16" else dtype
        values = sample(shape, dtype)
        found = place(np, lambda a, d: np.array(a, dtype=d), values, kind, layout)
        assert found.shape == shape
        assert np.array_equal(found, stored(values, kind, layout)), (shape, dtype, layout)
        assert layout == "expanded" or np.array_equal(stored(values, dtype, layout), values)


def test_placed_tensors_have_the_stored_values_and_the_promised_strides_on_torch() -> None:
    pytest.importorskip("torch")
    from autograd_conformance.implementations.torch import TorchImplementation

    i = TorchImplementation()
    seen: dict[str, int] = dict.fromkeys(LAYOUTS, 0)
    for shape, dtype, layout in placements():
        values = sample(shape, dtype)
        found = place(i.xp, lambda a, d: i.array(a, d, "cpu"), values, dtype, layout)
        where = (shape, dtype, layout)
        assert i.describe(found) == (shape, dtype, "cpu"), where
        assert np.array_equal(i.numpy(found), stored(values, dtype, layout)), where
        assert found.is_conj() == (layout == "conjugated"), where
        assert found.is_neg() == (layout == "negated"), where
        assert (found.storage_offset() > 0) == (layout in ("offset", "negated") and found.numel() > 0) or 0 in shape, (
            where
        )
        if 0 in shape:
            continue
        seen[layout] += 1
        same_as_contiguous = layout in ("contiguous", "offset", "conjugated")
        if layout != "negated":
            assert found.is_contiguous() == same_as_contiguous, where
        match layout:
            case "expanded":
                assert found.stride(0) == 0, where
            case "strided":
                assert found.stride(-1) == 2, where
            case "transposed":
                assert found.permute(*reversed(range(found.ndim))).is_contiguous(), where
            case "channels_last":
                assert found.movedim(1, -1).is_contiguous(), where
            case "negated":
                assert found.stride(-1) == 2 if shape else found.is_neg(), where
    assert all(seen.values())


def test_a_layout_that_does_not_suit_is_contiguous() -> None:
    values = np.ones((1, 1))
    for layout in ("expanded", "transposed", "strided", "channels_last", "conjugated"):
        assert layout not in suitable((1, 1), "float64")
        assert place(np, lambda a, d: np.array(a, dtype=d), values, "float64", layout).flags.c_contiguous
    assert suitable((), "float16") == ("contiguous",)
    assert suitable((2,), "int64") == ("contiguous", "strided", "offset", "expanded")


def test_signed_zeros_and_specials_survive_every_layout() -> None:
    torch = pytest.importorskip("torch")
    from autograd_conformance.implementations.torch import TorchImplementation

    i = TorchImplementation()
    values = np.array([[0.0, -0.0, math.inf], [-math.inf, PRECISION["float32"].subnormal, math.nan]])
    for layout in suitable(values.shape, "float32"):
        found = place(i.xp, lambda a, d: i.array(a, d, "cpu"), values, "float32", layout)
        assert same_bits(i.numpy(found), stored(values, "float32", layout)), layout
        assert found.dtype == torch.float32


# --- values ----------------------------------------------------------------------------------------------------------


# The domains in which values keep few bits, and those of matrices.
EXACT = ("any", "free", "nonzero", "positive", "distinct")
MATRICES = ("definite", "lower", "upper")


def _anything(values: Any) -> bool:
    return bool(np.all(np.isfinite(values)))


IN_DOMAIN: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("any", "free", "nonzero", "positive", "distinct"), _anything),
    "irregular": lambda a: not np.any(np.isin(8 * a.real % 1, 0)),
    "unit": lambda a: bool(np.all((a.real > 0) & (a.real < 1))),
    "ball": lambda a: bool(np.sqrt(np.sum(np.abs(a) ** 2)) < 1),
    "sorted": lambda a: bool(np.all(np.diff(a.real) > 0.2)),
    "definite": lambda a: bool(np.all(np.linalg.eigvalsh(a) > 0.9)),
    "lower": lambda a: bool(np.all(a == np.tril(a)) and np.all(np.abs(np.diagonal(a)) >= 1)),
    "upper": lambda a: bool(np.all(a == np.triu(a)) and np.all(np.abs(np.diagonal(a)) >= 1)),
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
    assert {name for domain in DOMAINS.values() for name in domain.fills} == set(FILLS)
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
        always(calls(function, smooth=smooth), holds, examples=20)


@every
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
    never(calls(SQUARE, specials=False), lambda call: call.tensors[0].specials)
    never(calls(FUNCTIONS["ReLU"], smooth=True), lambda call: call.tensors[0].specials)
    reaches(calls(FUNCTIONS["ReLU"]), there)


@pytest.mark.parametrize("dtype", FLOATING)
def test_extremes_are_reached_and_exact(dtype: str) -> None:
    expected = {make(PRECISION[dtype]) for make in EXTREMES.values()}
    assert len(expected) == len(EXTREMES) - 1  # the two zeros are equal
    assert all(round_to(np.array(v), dtype) == v for v in expected)
    found = drawn(calls(SQUARE, dtypes=(dtype,), extremes=True), 150, 0)
    assert {value for call in found for _, value in call.tensors[0].specials} == expected


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
    reaches(calls(SINH, some=False), lambda call: call.cotangents == (None, None, None))
    always(calls(SINH, unused=False), lambda call: None not in call.cotangents)


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


# --- text ------------------------------------------------------------------------------------------------------------


def same_values(a: Call, b: Call, function: Function) -> bool:
    pairs = zip(tensor_values(a, function), tensor_values(b, function), strict=True)
    return all(same_bits(x, y) if isinstance(x, np.ndarray) else x == y for x, y in pairs)


@every
def test_calls_are_rebuilt_from_their_text(function: Function) -> None:
    def holds(call: Call) -> bool:
        again = parse(repr(call))
        return again == call and repr(again) == repr(call) and same_values(call, again, function)

    always(calls(function), holds, examples=30)
    always(calls(function, extremes=True, some=False), holds, examples=15)


@pytest.mark.parametrize(
    "argument",
    [
        2, -3, 0.5, -1.5, -0.0, 1e-300, 1e300, None, True, False, "text", 'quo"te\'s', "Call('Exp')", (), (1,),
        ((1, -2), ()),
        ((2,), (("a", None), -0.0)), 1j, 1 + 0.5j, -2.5 - 1j, math.inf, -math.inf,
    ],
    ids=repr,
)  # fmt: skip
def test_odd_arguments_are_rebuilt(argument: Any) -> None:
    call = Call("F", (argument,))
    again = parse(repr(call)).args[0]
    assert repr(again) == repr(argument)
    assert type(again) is type(argument)
    assert again == argument


def test_odd_specials_are_rebuilt() -> None:
    specials = ((0, math.nan), (1, math.inf), (2, -math.inf), (3, -0.0), (4, 5e-324), (5, -1.0))
    call = Call("Square", (Tensor((2, 3), specials=specials),), device="lazy", seed=65535, smooth=True)
    again = parse(f"  {call!r}\n")
    assert repr(again) == repr(call)
    assert same_values(call, again, SQUARE)
    assert again.device == "lazy"


def test_the_text_leaves_defaults_out() -> None:
    assert repr(Tensor((2,))) == "Tensor((2,))"
    assert repr(Tensor((), "float32", requires_grad=True)) == "Tensor((), dtype='float32', requires_grad=True)"
    assert repr(Cotangent()) == "Cotangent()"
    assert repr(Cotangent("ramp")) == "Cotangent('ramp')"
    assert repr(Call("Exp", (Tensor(()),), (None,))) == "Call('Exp', args=(Tensor(()),), cotangents=(None,))"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Call",
        "Tensor((2,))",
        "(Call('Exp'),)",
        "Call('Exp'); Call('Exp')",
        "Call('Exp') or 1",
        "Call('Exp').dtype",
        "Call('Exp', __import__('os').getcwd())",
        "Call('Exp', (open('x'),))",
        "Call('Exp', (print,))",
        "Call('Exp', args=(Call.__class__,))",
        "Call('Exp', args=[x for x in (1,)])",
        "Call('Exp', args=(lambda: 1,))",
        "Call(*('Exp',))",
        "Call(**{'function': 'Exp'})",
        "Call('Exp', nonsense=1)",
        "Call('Exp', seed=2**100)",
        "Call('Exp', args=(f'{1}',))",
        "Call('Exp', args=('a'.upper(),))",
        "Call('Exp', args=((1, 2)[0],))",
        "Call('Exp', args=(-'a',))",
        "Call('Exp', args=(x := 1,))",
        "Call('Exp', seed=np.int64(3))",
        "Call()",
        "call('Exp')",
        "eval('1')",
        "Call('Exp'\x00)",
        "Call('Exp', seed=" + "9" * 5000 + ")",
    ],
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - also what ast says of null bytes
        parse(text)


@pytest.mark.parametrize("text", ["(" * 300 + ")" * 300, "-" * 100_000 + "1", "Call(" * 3000 + ")" * 3000])
def test_deeply_nested_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a printed call"):
        parse(f"Call('Exp', args=({text},))")


# --- shrinking -------------------------------------------------------------------------------------------------------


@every
def test_calls_shrink_to_the_simplest(function: Function) -> None:
    call = minimal(calls(function))
    simplest = shape_tuples(function)[0]
    assert tuple(t.shape for t in call.tensors) == simplest
    assert call.dtype == function.dtypes[0]
    assert all(t.requires_grad == a.differentiable for a, t in zip(function.arrays, call.tensors, strict=True))
    assert {t.layout for t in call.tensors} == {"contiguous"}
    assert all(
        t.fill == DOMAINS[a.values].fills[0]
        for a, t in zip(function.arrays, call.tensors, strict=True)
        if a.dtype is None
    )
    assert all(not t.specials for t in call.tensors)
    assert [c for c in call.cotangents if c is not None] == [Cotangent()] * sum(
        o.differentiable for o in function.outputs
    )
    assert call.seed == 0
    assert len(call.args) == len(function.arguments)
    statics = [v for a, v in zip(function.arguments, call.args, strict=True) if isinstance(a, Static)]
    assert statics == [a.choices(simplest)[0] for a in function.statics]


SIMPLEST = Tensor((), requires_grad=True)


@pytest.mark.parametrize(
    ("wanted", "tensor"),
    [
        (lambda call: call.dtype == "bfloat16", replace(SIMPLEST, dtype="bfloat16")),
        (lambda call: call.tensors[0].fill == "normal", replace(SIMPLEST, fill="normal")),
        (lambda call: call.tensors[0].specials, replace(SIMPLEST, specials=((0, 0.0),))),
        (
            lambda call: call.tensors[0].layout == "conjugated",
            replace(SIMPLEST, dtype="complex128", layout="conjugated"),
        ),
        (lambda call: call.tensors[0].layout == "negated", replace(SIMPLEST, layout="negated")),
    ],
)
def test_what_does_not_matter_shrinks_away(wanted: Callable[[Call], Any], tensor: Tensor) -> None:
    assert minimal(calls(SQUARE), wanted) == Call("Square", (tensor,), (Cotangent(),))


@pytest.mark.parametrize("layout", ["transposed", "strided", "offset", "expanded", "channels_last"])
def test_layouts_shrink_to_few_elements(layout: str) -> None:
    call = minimal(calls(SQUARE), lambda call: call.tensors[0].layout == layout)
    # For two of them the smallest shape of a group: the shrinker does not change group and shape at once.
    assert math.prod(call.tensors[0].shape) <= {"expanded": 17, "channels_last": 6}.get(layout, 4)
    assert call == replace(call, args=(replace(SIMPLEST, shape=call.tensors[0].shape, layout=layout),))
    assert (call.cotangents, call.seed) == ((Cotangent(),), 0)


def test_a_single_mask_and_an_unused_output_shrink_alone() -> None:
    call = minimal(calls(LINEAR), lambda call: call.mask == (False, True, False))
    assert [t.shape for t in call.tensors][:2] == [(1, 1), (1, 1)]
    call = minimal(calls(SINH), lambda call: call.cotangents[1] is None)
    assert call.cotangents[0] == Cotangent()


# --- determinism -----------------------------------------------------------------------------------------------------


def seeded(test_id: str, run_seed: int, function: Function = LINEAR) -> list[str]:
    found: list[str] = []

    @options(25)
    @given(calls(function))
    def test(call: Call) -> None:
        found.append(repr(call))

    profiles.prepare(test, test_id, run_seed)
    test()
    return found


def test_the_seed_and_the_test_id_decide_the_calls(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    first = seeded("VJP-REF[x]", 0)
    assert len(set(first)) > 10
    assert seeded("VJP-REF[x]", 1) != first
    assert seeded("VJP-REF[y]", 0) != first
    drawn(calls(SQUARE), 20, 5)
    np.random.default_rng().random()
    # Hypothesis would mix the numbers of a newly imported local module into its draws.
    (tmp_path / "newcomer.py").write_text("NUMBERS = (12345, 54321, 31337, 2.71, 40000)\nTEXT = 'unheard of'\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("newcomer")
    calls.cache_clear()
    assert seeded("VJP-REF[x]", 0) == first


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_function_draws_the_same_calls_again(name: str) -> None:
    assert seeded(name, 3, FUNCTIONS[name]) == seeded(name, 3, FUNCTIONS[name])


_ELSEWHERE = """
import sys, types
package = types.ModuleType("autograd_conformance")
package.__path__ = [{root!r}]
sys.modules["autograd_conformance"] = package
sys.path.insert(0, {folder!r})
import neighbour
from hypothesis import HealthCheck, Phase, given, settings
from autograd_conformance.harness import profiles
from autograd_conformance.reference.functions import FUNCTIONS
from autograd_conformance.strategies.calls import calls
profiles.load(profiles.PROFILES["gate"])

@settings(max_examples=25, phases=(Phase.generate,), suppress_health_check=list(HealthCheck))
@given(calls(FUNCTIONS["LinearFunction"]))
def test(call):
    print(call)

profiles.prepare(test, "VJP-REF[x]", 0)
test()
"""


def test_another_process_draws_the_same_calls(tmp_path: Any) -> None:
    """With another hash seed, another order of imports, other local modules and no pytest."""
    (tmp_path / "neighbour.py").write_text("NUMBERS = (12345, 54321, 31337, 2.71, 40000)\nTEXT = 'unheard of'\n")
    root = str(Path(__file__).resolve().parents[1])
    code = _ELSEWHERE.format(root=root, folder=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.splitlines() == seeded("VJP-REF[x]", 0)


# --- compositions ----------------------------------------------------------------------------------------------------

ARRAYS = [
    np.array(0.5),
    np.array([0.5, -1.25, 2.0]),
    np.arange(6.0).reshape(2, 3) / 4,
    np.zeros((0, 2)),
    np.array([[0.5 - 1j, 2 + 0.25j]]),
]


class _NumPy:
    """NumPy under the names that compositions use."""

    copy, sum, permute_dims, broadcast_to, reshape = np.copy, np.sum, np.transpose, np.broadcast_to, np.reshape


TOOLS = compositions.Tools(_NumPy, lambda x: x * x)


@pytest.mark.parametrize("before", [compositions.SAME, *compositions.BEFORE], ids=repr)
def test_what_comes_before_hands_the_values_on(before: compositions.Before) -> None:
    for x in ARRAYS:
        assert same_bits(np.asarray(before.apply(_NumPy, x)), x)


@pytest.mark.parametrize("after", compositions.AFTER, ids=repr)
def test_what_comes_after_is_its_forward_and_its_pull_the_derivative(after: compositions.After) -> None:
    rng = np.random.default_rng(0)
    for y in ARRAYS:
        out = after.forward(y)
        assert np.array_equal(np.asarray(after.apply(TOOLS, y)), out)
        g = np.asarray(rng.standard_normal(np.shape(out)) + (1j if np.iscomplexobj(y) else 0))
        u = np.asarray(rng.standard_normal(y.shape) + (0.5j if np.iscomplexobj(y) else 0))
        pulled = np.asarray(after.pull(y, g))
        assert pulled.shape == y.shape
        # All are of second degree at most, for which a central difference is exact but for rounding.
        slope = (np.asarray(after.forward(y + u)) - np.asarray(after.forward(y - u))) / 2
        assert abs(np.vdot(g, slope).real - np.vdot(pulled, u).real) <= 1e-13 * (1 + np.sum(np.abs(g)) * 10)
