"""A measured error bound for half precision, used when the oracle's bound is exceeded there.

Large terms that cancel may leave nothing of the result, and moving the inputs in double precision does not show this.
But at inputs that differ by one unit the rounding errors differ, while a fault stays the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from autograd_conformance.harness.checking.example import Example
from autograd_conformance.harness.checking.subject import Subject
from autograd_conformance.reference.rounding import PRECISION, round_to
from autograd_conformance.strategies.calls import Call

DTYPES = ("float16", "bfloat16")

# Number of nearby inputs to try.
_PLACES = 8


def noise(subject: Subject, call: Call) -> dict[str, float]:
    """How much the errors of the plain call differ at inputs off by one unit, for each output and gradient by name."""
    errors: dict[str, list[np.ndarray]] = {}
    for seed in range(_PLACES):
        try:
            found = _errors(_near(subject, call, seed))
        except Exception:  # noqa: BLE001 - inputs that the Function refuses show nothing
            continue
        for name, error in found.items():
            errors.setdefault(name, []).append(error)
    return {name: _spread(found) for name, found in errors.items()}


def _near(subject: Subject, call: Call, seed: int) -> Example:
    example, rng, unit = subject.made(call), np.random.default_rng(seed), PRECISION[call.dtype].unit
    near: dict[int, Any] = {}
    for number, (slot, argument) in enumerate(zip(example.slots, example.arguments, strict=True)):
        if argument.differentiable:
            values = example.values[slot]
            # The relative size of a unit depends on where a number is between two powers of two.
            moves = rng.choice((-4.0, -2.0, 0.0, 2.0, 4.0), np.shape(values))
            near[number] = round_to(values * (1 + moves * unit), call.dtype)
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
