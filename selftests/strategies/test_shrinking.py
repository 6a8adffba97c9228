"""Shrinking: what does not matter to a failure becomes the simplest."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from autograd_conformance.reference.definitions import Function, Static
from autograd_conformance.selftests.strategies.drawn_examples import LINEAR, SINH, SQUARE, minimal
from autograd_conformance.selftests.support.declared import every
from autograd_conformance.strategies.calls import Call, Cotangent, Tensor, calls
from autograd_conformance.strategies.shapes import shape_tuples
from autograd_conformance.strategies.values import DOMAINS


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
