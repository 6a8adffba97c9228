"""Results in double precision that hold numbers of single precision only: a cast inside the Function."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from autograd_conformance.harness.checking.example import Example
from autograd_conformance.strategies.values import DOMAINS

# Numbers with fewer bits are round in any precision.
_ROUND = 16
# Fewer numbers may be a coincidence, such as constants of a table.
_SEVERAL = 4


def coarse(examples: Sequence[Example]) -> Iterator[str]:
    """A sentence for each output and gradient whose numbers all fit in single precision.

    Inputs and cotangents differ from those of the ``examples`` in bits that single precision lacks.
    """
    single: dict[str, int] = {}
    double: set[str] = set()
    for number, example in enumerate(examples):
        for name, array in _results(_refined(example, number)):
            flat = np.ravel(array)
            parts = flat.view(np.float64) if flat.dtype.kind == "c" else flat
            parts = parts[np.isfinite(parts) & (parts != 0)]
            fits = parts == parts.astype(np.float32)
            long = np.ldexp(np.frexp(parts)[0], _ROUND) % 1 != 0
            single[name] = single.get(name, 0) + int(np.sum(fits & long))
            if not np.all(fits):
                double.add(name)
    for name, count in single.items():
        if count >= _SEVERAL and name not in double:
            where = "backward" if name.startswith("gradient") else "forward"
            yield (
                f"the {name} is in double precision, but all its numbers are of single precision: {where} casts "
                "inside; compute in the dtype of the inputs, or declare dtypes= without double precision"
            )


def _refined(example: Example, seed: int) -> Example:
    rng = np.random.default_rng(seed)
    changed: dict[int, Any] = {}
    for number, (slot, argument) in enumerate(zip(example.slots, example.arguments, strict=True)):
        values = example.values[slot]
        if argument.differentiable and values.dtype.kind in "fc":
            moves = rng.integers(1, 2**8, values.shape).astype(np.float64)
            if DOMAINS[argument.values].symmetric:
                moves = moves + np.swapaxes(moves, -1, -2)
            changed[number] = values * (1 + 2.0**-36 * moves)
    return example.given(changed)


def _results(example: Example) -> Iterator[tuple[str, np.ndarray]]:
    """The differentiable outputs and the gradients that are in double precision, by name."""
    i = example.implementation
    try:
        outputs, pullback = i.vjp(example.f, example.primals, track=example.track)
        kinds = [i.describe(y) for y in outputs]
        wide = [
            kind.dtype in ("float64", "complex128") and i.numpy(y).size > 0
            for kind, y in zip(kinds, outputs, strict=True)
        ]
        flags = [o.differentiable and w for o, w in zip(example.function.outputs, wide, strict=True)]
        ends = [
            example.tensor(np.full(k.shape, 1 + 2.0**-30), k.dtype) if f else None
            for k, f in zip(kinds, flags, strict=True)
        ]
        outputs = tuple(map(i.xp.copy, outputs))
        gradients = pullback(ends) if any(flags) else ()
    except Exception:  # noqa: BLE001 - the tests will report it
        return
    names = [o.name for o in example.function.outputs]
    rows = [*zip(names, outputs, flags, strict=True)]
    if gradients:
        rows += [(name, g, g is not None) for name, g in zip(example.names, gradients, strict=True)]
    for name, tensor, shown in rows:
        if shown:
            yield name, i.numpy(tensor)
