"""Measured error bounds, used when the oracle's bound is exceeded.

Large terms that cancel may leave nothing of the result, and moving the inputs in double precision does not show this.
But at inputs that differ by one unit the rounding errors differ, while a fault stays the same. This is measured in half
precision. What built-in operations of the same formula lose is measured in half and single precision.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from autograd_conformance.harness.check.bounds.builtin_autograd import gradients_of_formula
from autograd_conformance.harness.check.declaration.declaration import Own
from autograd_conformance.harness.check.oracle.tolerances import BY_ROUNDING
from autograd_conformance.harness.testing.attempts import attempted
from autograd_conformance.harness.testing.example import Example
from autograd_conformance.harness.testing.expected import Expected
from autograd_conformance.harness.testing.subject import Subject
from autograd_conformance.reference.definitions import Function
from autograd_conformance.reference.rounding import PRECISION, round_to
from autograd_conformance.strategies.calls import Call, recast, with_fill_of_cotangents

DTYPES = ("float16", "bfloat16")

# Number of nearby inputs to try, and how many of these for built-in operations.
_PLACES, _FEW = 8, 3

# The most precise dtype for each other one.
_DOUBLE = {"complex64": "complex128", "float32": "float64", "float16": "float64", "bfloat16": "float64"}


def noise(subject: Subject, call: Call) -> dict[str, float]:
    """How much the errors of the plain call differ at inputs off by one unit, for each output and gradient by name."""
    errors: dict[str, list[np.ndarray]] = {}
    for seed in range(_PLACES):
        # Inputs that the Function refuses show nothing.
        for name, error in (attempted(_errors_near, subject, call, seed) or {}).items():
            errors.setdefault(name, []).append(error)
    return {name: _spread(found) for name, found in errors.items()}


def _errors_near(subject: Subject, call: Call, seed: int) -> dict[str, np.ndarray]:
    return _errors(_near(subject, call, seed))


def lost_by_built_in(subject: Subject, call: Call) -> dict[tuple[str, tuple[int, ...]], Any]:
    """How far built-in operations of the same formula may be off, by name and shape of the result.

    In the most precise dtypes, and of random results, nothing is known. If the formula is not known either, nothing is
    expected in half precision where squares of the inputs underflow.
    """
    assert isinstance(subject.function, Own)
    if call.dtype in _DOUBLE.values() or subject.function.declaration.stochastic:
        return {}
    example = subject.made(call)
    if gradients_of_formula(example) is None:
        lost = call.dtype in DTYPES and any(_squares_underflow(values, call.dtype) for values in example.values)
        return _everything(example) if lost else {}
    # Some properties send other cotangents than those of the call.
    others = with_fill_of_cotangents(call, "dense")
    return _errors_of_built_in(subject.function, [example, *(_near(subject, others, seed) for seed in range(_FEW))])


def _everything(example: Example) -> dict[tuple[str, tuple[int, ...]], Any]:
    """No bound for any result of a call."""
    results = attempted(example.expected.results)
    rows = zip(example.result_names, results, strict=True) if results is not None else ()
    return {(name, y.shape): np.full(y.shape, np.inf) for name, y in rows if y is not None}


def _errors_of_built_in(function: Function, examples: Sequence[Example]) -> dict[tuple[str, tuple[int, ...]], Any]:
    """The largest error of each entry of the gradients over all examples; infinite where the first has no number.

    The error is the difference from the same operations in double precision: what backward makes of them is no measure.
    """
    found: dict[tuple[str, tuple[int, ...]], Any] = {}
    for example in examples:
        rounded = gradients_of_formula(example) or ()
        # Where the formula takes no double precision, only what is not finite shows.
        exact = gradients_of_formula(_in_double(function, example)) or rounded
        for name, built_in, mine in zip(example.names, rounded, exact, strict=False):
            if built_in is not None and mine is not None:
                off = _off(built_in, mine, lost=np.inf if example is examples[0] else 0.0)
                found[name, mine.shape] = np.maximum(found.get((name, mine.shape), 0.0), off)
    return found


def _off(rounded: Any, exact: Any, *, lost: float) -> Any:
    """How far the numbers of a gradient may be off; ``lost`` where there is none but in double precision."""
    with np.errstate(all="ignore"):
        off = BY_ROUNDING * np.abs(rounded - exact)
    alike = rounded is exact or np.isfinite(exact)
    return np.where(np.isfinite(off), off, np.where(alike, lost, 0.0))


def _in_double(function: Function, example: Example) -> Example:
    """The same call, with the same values, in double precision."""
    call = recast(example.call, _DOUBLE[example.call.dtype], function)
    return example.of(call, expected=Expected(function, call, values=example.values))


def _squares_underflow(values: Any, dtype: str) -> bool:
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "fc":
        return False
    size = np.abs(values)
    return bool(np.any((size > 0) & (size < math.sqrt(PRECISION[dtype].normal))))


def _near(subject: Subject, call: Call, seed: int) -> Example:
    example, rng, unit = subject.made(call), np.random.default_rng(seed), PRECISION[call.dtype].unit
    near: dict[int, Any] = {}
    for number, (slot, argument) in enumerate(zip(example.slots, example.arguments, strict=True)):
        if argument.differentiable:
            values = example.values[slot]
            # The relative size of a unit depends on where a number is between two powers of two.
            moves = rng.choice((-4.0, -2.0, 0.0, 2.0, 4.0), np.shape(values))
            near[number] = round_to(values * (1 + moves * unit), example.call.tensors[number].dtype)
    return example.given(near)


def _errors(example: Example) -> dict[str, np.ndarray]:
    numpy = example.implementation.numpy
    rows = zip(example.result_names, example.results(), example.expected.results(), strict=True)
    with np.errstate(all="ignore"):
        known = [(n, numpy(y), e.value) for n, y, e in rows if y is not None and e is not None]
        return {name: y - value for name, y, value in known if y.dtype.kind in "fc"}


def _spread(errors: list[np.ndarray]) -> float:
    """The largest difference between errors of the same entry; infinite and NaN ones are left out."""
    with np.errstate(all="ignore"):
        spread = np.max(errors, axis=0) - np.min(errors, axis=0)
    return float(np.max(spread, initial=0.0, where=np.isfinite(spread)))
