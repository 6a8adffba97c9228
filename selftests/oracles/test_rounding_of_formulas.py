"""The running error bounds of complete formulas, and of what passes errors on unchanged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from autograd_conformance.reference.definitions import Function
from autograd_conformance.reference.rounding import PRECISION, Tracked
from autograd_conformance.selftests.oracles.low_precision import REAL_PART, Low, assert_within, low
from autograd_conformance.selftests.oracles.reference_cases import DOUBLE, arguments, differentiable_slots, for_calls
from autograd_conformance.selftests.support.declared import every
from autograd_conformance.strategies.calls import Call, cotangent_values


@pytest.mark.parametrize("order", ["forwards", "in pairs"])
@every
def test_references_computed_in_low_precision_are_within_their_bounds(function: Function, order: str) -> None:
    """The references themselves, every operation rounded: what a true implementation may do at its worst."""
    compared = 0

    def check(call: Call) -> None:
        nonlocal compared
        plain = arguments(function, call)
        dtype, slots = call.dtype, differentiable_slots(function, call)
        exact = [Tracked.exact(a, dtype) if i in slots else a for i, a in enumerate(plain)]
        rounded = [Low(a, dtype, order) if i in slots else a for i, a in enumerate(plain)]
        outputs = function.forward(*plain)
        g = cotangent_values(call, [np.shape(y) for y in outputs], [_kind(y, dtype) for y in outputs])
        g = [
            np.zeros(np.shape(y), y.dtype) if v is None and o.differentiable else v
            for v, o, y in zip(g, function.outputs, outputs, strict=True)
        ]
        with np.errstate(all="ignore"):
            pairs = [*zip(function.forward(*rounded), function.forward(*exact), strict=True)]
            pairs += zip(
                function.vjp(tuple(v if v is None else Low(v, dtype, order) for v in g), *rounded),
                function.vjp(tuple(v if v is None else Tracked.exact(v, dtype) for v in g), *exact),
                strict=True,
            )
        for got, bounded in pairs:
            if isinstance(bounded, Tracked):
                value = got.value if isinstance(got, Low) else got
                assert_within(value, bounded)
                compared += int(np.sum(np.isfinite(bounded.error)))

    narrow = tuple(d for d in function.dtypes if d not in DOUBLE)
    for_calls(function, check, examples=60, dtypes=narrow)
    assert compared > 200


def _kind(value: Any, dtype: str) -> str:
    if value.dtype.kind == "f":
        return REAL_PART.get(dtype, dtype)
    return dtype if value.dtype.kind == "c" else value.dtype.name


def test_decisions_and_moves_need_no_error_of_their_own() -> None:
    x = Tracked(np.array([[3.0, 1.0], [2.0, 5.0]]), np.array([[0.3, 0.1], [0.2, 0.5]]), PRECISION["float32"])
    assert np.sort(x, axis=1).error.tolist() == [[0.1, 0.3], [0.2, 0.5]]
    assert np.max(x, axis=0).error.tolist() == [0.3, 0.5]
    assert np.concatenate([x, np.ones((1, 2))]).error.tolist() == [[0.3, 0.1], [0.2, 0.5], [0, 0]]
    assert np.pad(x, ((1, 0), (0, 0))).error.tolist() == [[0, 0], [0.3, 0.1], [0.2, 0.5]]
    assert np.where(x > 2.5, x, 0.0).error.tolist() == [[0.3, 0], [0, 0.5]]
    assert x.T.error.tolist() == x.error.T.tolist()
    assert x[:, 1].error.tolist() == [0.1, 0.5]
    assert np.argmax(x, axis=1).tolist() == [0, 1]
    assert np.maximum(x, 2).error.tolist() == x.error.tolist()


def test_an_operation_without_a_rule_is_refused() -> None:
    x = Tracked.exact(np.ones(3), "float32")
    for operation in (np.cumsum, np.arctan, np.prod, np.linalg.norm, lambda a: np.add(a, 1, where=[True] * 3)):
        with pytest.raises(TypeError):
            operation(x)


@low
def test_where_an_intermediate_may_overflow_anything_is_admitted(dtype: str) -> None:
    huge = PRECISION[dtype].largest
    x = Tracked.exact(np.array([huge, huge / 8]), dtype)
    assert np.isinf((x * 2 / 2).error).tolist() == [True, False]
    assert np.isinf((x + x).error).tolist() == [True, False]
    assert np.isinf(np.exp(Tracked.exact(np.array([100.0, 1.0]), dtype)).error).tolist() == [True, False]
