"""The dtypes, masks, optional and static arguments of drawn calls."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from autograd_conformance.reference.definitions import FLOATING, Array, Function, Static
from autograd_conformance.reference.functions import FUNCTIONS
from autograd_conformance.selftests.strategies.drawn_examples import LINEAR, SQUARE, TAKE, always, drawn, made, reaches
from autograd_conformance.selftests.support.declared import every
from autograd_conformance.strategies.calls import Call, calls, masks, tensor_values
from autograd_conformance.strategies.scope import ANY_MASK, FULL_MASK
from autograd_conformance.strategies.shapes import shape_tuples

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
    reaches(calls(LINEAR, ANY_MASK), lambda call: not any(call.mask))
    always(calls(LINEAR), lambda call: any(call.mask))
    always(calls(LINEAR, FULL_MASK), lambda call: all(t.requires_grad for t in call.tensors))


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


def test_statics_keep_their_type() -> None:
    for choices in ((0, 1), (False, True), (0.0, 1.0), (-0.0, 1.0), (0j, 1 + 0j)):
        flag = Static(name="flag", choices=lambda _, choices=choices: choices)
        function = replace(SQUARE, name="Flagged", arguments=(*made("n").arguments, flag))
        seen = {repr(call.args[1]) for call in drawn(calls(function), 50, 0)}
        assert seen == {repr(choice) for choice in choices}


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
