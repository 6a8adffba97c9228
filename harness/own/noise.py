"""What the roundings inside of a user's Function do in half precision, where a bound is exceeded there.

Terms that cancel may be so large that nothing of the result is left, and no move of the inputs in double precision
shows them. But a rounding is another one at an input that is off by one unit, and a fault is the same.
"""

from __future__ import annotations

import numpy as np

from autograd_conformance.harness.example import Example
from autograd_conformance.harness.subject import Subject
from autograd_conformance.reference.rounding import PRECISION, round_to
from autograd_conformance.strategies.calls import Call

DTYPES = ("float16", "bfloat16")

# Inputs near the call's own that are looked at.
_PLACES = 8


def noise(subject: Subject, call: Call) -> dict[str, float]:
    """How much the errors of the plain call differ at inputs off by one unit, by the names of outputs and gradients."""
    errors: dict[str, list[np.ndarray]] = {}
    for seed in range(_PLACES):
        try:
            found = _errors(_near(subject, call, seed))
        except Exception:  # noqa: BLE001 - a place that the Function refuses tells nothing
            continue
        for name, error in found.items():
            errors.setdefault(name, []).append(error)
    return {name: _spread(found) for name, found in errors.items()}


def _near(subject: Subject, call: Call, seed: int) -> Example:
    example, rng, unit = Example(subject, call), np.random.default_rng(seed), PRECISION[call.dtype].unit
    for number, (slot, argument) in enumerate(zip(example.slots, example.arguments, strict=True)):
        if argument.differentiable:
            values = example.values[slot]
            # The unit of a number depends on where it lies between two powers of two.
            moves = rng.choice((-4.0, -2.0, 0.0, 2.0, 4.0), np.shape(values))
            example.give(number, round_to(values * (1 + moves * unit), call.dtype))
    return example


def _errors(example: Example) -> dict[str, np.ndarray]:
    numpy = example.implementation.numpy
    rows = zip(example.result_names, example.results(), example.expected_results(), strict=True)
    with np.errstate(all="ignore"):
        known = [(n, numpy(y), e.value) for n, y, e in rows if y is not None and e is not None]
        return {name: y - value for name, y, value in known if y.dtype.kind in "fc"}


def _spread(errors: list[np.ndarray]) -> float:
    """The largest difference between errors at one place; none where they are not numbers."""
    with np.errstate(all="ignore"):
        spread = np.max(errors, axis=0) - np.min(errors, axis=0)
    return float(np.max(spread, initial=0.0, where=np.isfinite(spread)))
