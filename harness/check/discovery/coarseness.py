"""Results in double precision that hold numbers of single precision only: a cast inside the Function."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from autograd_conformance.harness.testing.example import Example
from autograd_conformance.harness.testing.own_faults import noticed
from autograd_conformance.strategies.precision import in_double

# Numbers with fewer bits are round in any precision.
_ROUND = 16
# Fewer numbers may be a coincidence, such as constants of a table.
_SEVERAL = 4


class Numbers(NamedTuple):
    """How many numbers of a result have bits, and whether single precision has all of them."""

    name: str
    long: int
    single: bool


def coarse(examples: Sequence[Example]) -> list[str]:
    """The names of the outputs and gradients whose numbers all fit in single precision.

    Inputs and cotangents differ from those of the ``examples`` in bits that single precision lacks.
    """
    found: dict[str, list[Numbers]] = {}
    for example in examples:
        for each in numbers(example.of(in_double(example.call, example.function))):
            found.setdefault(each.name, []).append(each)
    return [
        name
        for name, each in found.items()
        if all(numbers.single for numbers in each) and sum(numbers.long for numbers in each) >= _SEVERAL
    ]


def numbers(example: Example) -> Iterator[Numbers]:
    """What is in the results of a call that are in double precision."""
    for name, array in _results(example):
        flat = np.ravel(array)
        parts = flat.view(np.float64) if flat.dtype.kind == "c" else flat
        parts = parts[np.isfinite(parts) & (parts != 0)]
        fits = parts == parts.astype(np.float32)
        long = np.ldexp(np.frexp(parts)[0], _ROUND) % 1 != 0
        yield Numbers(name, int(np.sum(fits & long)), bool(np.all(fits)))


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
    except Exception as raised:  # noqa: BLE001 - the tests will report it
        noticed(raised)
        return
    rows: list[tuple[str, Any, Any]] = [*zip(example.output_names, outputs, flags, strict=True)]
    if gradients:
        rows += [(name, g, g is not None) for name, g in zip(example.names, gradients, strict=True)]
    for name, tensor, shown in rows:
        if shown:
            yield name, i.numpy(tensor)
