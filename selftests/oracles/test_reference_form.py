"""What the references give: its shapes and dtypes, the same values on tracked arrays, and bounds that decide."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from autograd_conformance.harness.testing.compare import same_bits
from autograd_conformance.reference.definitions import Function
from autograd_conformance.reference.functions import FUNCTIONS
from autograd_conformance.reference.rounding import SAFETY, Tracked
from autograd_conformance.selftests.oracles.reference_cases import Case, doubles, for_calls
from autograd_conformance.selftests.support.declared import every
from autograd_conformance.strategies.calls import Call
from autograd_conformance.strategies.scope import SMOOTH
from autograd_conformance.strategies.shapes import degenerate, shape_tuples

# What is left of a gradient through batch norm is the rest of sums that cancel, up to nothing for constant cotangents;
# the phase of a coefficient that vanishes is rounding.
CANCELLING = {"FusedConvBN", "FusedConvBNUndeclared", "BatchNormEps", "BadFFT"}


@every
def test_references_give_what_is_declared_and_modify_nothing(function: Function) -> None:
    """Shapes of every kind, empty and 0-d included; read-only inputs turn any in-place change into an error."""

    def check(call: Call) -> None:
        case = Case(function, call)
        arrays = [a for a in (*case.args, *case.cotangents) if isinstance(a, np.ndarray)]
        before = [a.tobytes() for a in arrays]
        for array in arrays:
            array.flags.writeable = False
        outputs = function.forward(*case.args)
        gradients = function.vjp(case.cotangents, *case.args)
        assert isinstance(outputs, tuple)
        assert isinstance(gradients, tuple)
        assert len(outputs) == len(function.outputs)
        assert len(gradients) == len(function.arguments)
        kind = "c" if call.dtype.startswith("complex") else "f"
        for output, declared in zip(outputs, function.outputs, strict=True):
            assert not declared.differentiable or np.asarray(output).dtype.kind == kind
            assert declared.differentiable or np.asarray(output).dtype.kind == "i"
        for slot, (gradient, argument) in enumerate(zip(gradients, case.args, strict=True)):
            if slot in case.slots:
                assert np.shape(gradient) == argument.shape
                assert np.asarray(gradient).dtype == argument.dtype
            else:
                assert gradient is None
        if function.jvp is not None:
            moved = function.jvp(case.tangents(case.direction), *case.args)
            shapes = [np.shape(y) if o.differentiable else None for y, o in zip(outputs, function.outputs, strict=True)]
            assert [None if m is None else np.shape(m) for m in moved] == shapes
        assert [a.tobytes() for a in arrays] == before

    for_calls(function, check, dtypes=doubles(function))
    hard = tuple(shapes for shapes in shape_tuples(function) if degenerate(shapes))[:200]
    if hard:
        for_calls(function, check, dtypes=doubles(function), shapes=hard)


@every
def test_references_run_on_tracked_arrays(function: Function) -> None:
    """The values are those of the plain run, bit for bit, and every floating result carries its bound."""
    bounded = 0

    def check(call: Call) -> None:
        nonlocal bounded
        case = Case(function, call)
        arguments = case.tracked_arguments()
        pairs = list(zip(function.forward(*arguments), case.outputs, function.outputs, strict=True))
        for mine, _, declared in pairs:
            assert isinstance(mine, Tracked) or not declared.differentiable
        gradients = function.vjp(case.tracked(case.cotangents), *arguments)
        plain_gradients = function.vjp(case.cotangents, *case.args)
        assert [g is None for g in gradients] == [g is None for g in plain_gradients]
        pairs += [(m, p, None) for m, p in zip(gradients, plain_gradients, strict=True) if m is not None]
        if function.jvp is not None:
            tangents = case.tangents(case.direction)
            moved = function.jvp(case.tracked(tangents), *arguments)
            pairs += [
                (m, p, None) for m, p in zip(moved, function.jvp(tangents, *case.args), strict=True) if m is not None
            ]
        for mine, plain, _ in pairs:
            if isinstance(mine, Tracked):
                assert mine.error.shape == mine.value.shape
                assert mine.error.dtype == np.float64
                assert np.all(mine.error >= 0)
                # The phase of a coefficient that vanishes may be any.
                assert function.name == "BadFFT" or np.all(np.isfinite(mine.error))
                # NumPy rounds products of complex scalars otherwise than those of arrays.
                assert np.allclose(mine.value, np.asarray(plain), rtol=1e-15, atol=0, equal_nan=True)
                bounded += mine.size
            else:
                assert same_bits(np.asarray(mine), np.asarray(plain))

    for_calls(function, check, dtypes=doubles(function), scope=SMOOTH)
    assert bounded > 0


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@every
def test_rounding_bounds_of_references_can_tell_a_gradient_from_zero(function: Function, dtype: str) -> None:
    """A bound above all that it belongs to admits a gradient of zeros."""
    clear: Counter[bool] = Counter()

    def check(call: Call) -> None:
        case = Case(function, call)
        arguments = case.at(tuple(Tracked.exact(x, dtype) for x in case.points))
        cotangents = tuple(None if g is None else Tracked.exact(g, dtype) for g in case.cotangents)
        for found in (*function.forward(*arguments), *function.vjp(cotangents, *arguments)):
            if isinstance(found, Tracked) and np.any(found.value):
                clear[bool(SAFETY * np.median(found.error) < np.max(np.abs(found.value)))] += 1

    for_calls(function, check, examples=25, dtypes=doubles(function))
    # In most draws.
    needed = 0.25 if function.name in CANCELLING and dtype != "float32" else 0.5
    assert clear[True] >= needed * clear.total() > 0


def _adds_in_place(cotangents: Any, x: Any) -> tuple[Any]:
    cotangents[0][...] += 1
    return (cotangents[0] * np.conj(np.exp(x)),)


@pytest.mark.parametrize(
    "wrong",
    [
        {"vjp": _adds_in_place},
        {"vjp": lambda g, x: (g[0].sum() * np.conj(np.exp(x)).sum(),)},
        {"vjp": lambda g, x: (g[0] * np.conj(np.exp(x)), None)},
        {"vjp": lambda g, x: (g[0].real * np.exp(x).real,)},
        {"forward": lambda x: np.exp(x)},
        {"forward": lambda x: (np.exp(np.atleast_1d(x)),)},
    ],
)
def test_a_reference_of_the_wrong_form_is_caught(wrong: dict[str, Any]) -> None:
    with pytest.raises((AssertionError, ValueError, TypeError)):
        test_references_give_what_is_declared_and_modify_nothing(replace(FUNCTIONS["Exp"], **wrong))


def test_a_reference_that_leaves_the_tracked_arrays_is_caught() -> None:
    lossy = replace(FUNCTIONS["Exp"], forward=lambda x: (np.exp(getattr(x, "value", x)),))
    with pytest.raises(AssertionError):
        test_references_run_on_tracked_arrays(lossy)
