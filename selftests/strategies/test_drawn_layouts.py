"""The layouts of drawn tensors, and the arrays and tensors that are placed in them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from autograd_conformance.harness.testing.compare import same_bits
from autograd_conformance.reference.functions import FUNCTIONS
from autograd_conformance.reference.rounding import PRECISION, round_to
from autograd_conformance.selftests.strategies.drawn_examples import LINEAR, SQUARE, always, reaches
from autograd_conformance.strategies.calls import Call, Tensor, calls
from autograd_conformance.strategies.layouts import LAYOUTS, place, stored, suitable
from autograd_conformance.strategies.scope import ANY_CALL, CONTIGUOUS, NON_CONTIGUOUS, UNEXPANDED
from autograd_conformance.strategies.shapes import any_shapes
from autograd_conformance.strategies.values import fill


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
    always(calls(LINEAR, CONTIGUOUS), lambda call: {t.layout for t in call.tensors} == {"contiguous"})
    always(
        calls(LINEAR, replace(ANY_CALL, cotangent_layouts=False)),
        lambda call: call.cotangents[0].layout == "contiguous",
    )
    always(calls(LINEAR, UNEXPANDED), lambda call: "expanded" not in {t.layout for t in call.tensors})
    always(
        calls(LINEAR, NON_CONTIGUOUS),
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
