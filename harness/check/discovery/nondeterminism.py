"""Whether the results of a Function depend on what is outside the call: random numbers, and what memory held before."""

from __future__ import annotations

from typing import Any

import numpy as np

from autograd_conformance.harness.check.discovery.staleness import constant_cotangents
from autograd_conformance.harness.check.oracle.tolerances import NEAR
from autograd_conformance.harness.testing.attempts import attempted
from autograd_conformance.harness.testing.example import Example
from autograd_conformance.harness.testing.observe import copied
from autograd_conformance.harness.testing.own_faults import noticed

# Two seeds may draw the same mask for few elements.
_SEEDS = 16


def uses_random_numbers(example: Example) -> bool:
    """Whether a call draws random numbers, be they used or not."""
    states = example.implementation.random_states
    before = [state.get() for state in states]
    attempted(results_of, example)
    return before != [state.get() for state in states]


def draws(example: Example) -> bool:
    """Whether the results of a call change with the seed of random numbers, and with nothing else."""
    states = example.implementation.random_states
    before = [state.get() for state in states]
    try:
        first = results_of(example)
        if before == [state.get() for state in states]:
            return False
        first, again = (results_of(example, seed) for seed in (1, 1))
        others = (results_of(example, seed) for seed in range(2, _SEEDS))
        return all(map(_same, first, again)) and not all(all(map(_near, first, other)) for other in others)
    except Exception as raised:  # noqa: BLE001 - the tests report what a call raises
        noticed(raised)
        return False


def draws_in_backward(example: Example) -> bool:
    """Whether the gradients of a call, which seeds nothing itself, change with the seed before backward alone."""
    found = attempted(lambda: [results_of(example, 0, later) for later in (1, *range(1, _SEEDS))])
    if found is None:
        return False
    first, again, *others = found
    return all(map(_same, first, again)) and not all(all(map(_near, first, other)) for other in others)


def reads_new_memory(example: Example) -> bool:
    """Whether the results of a call change with what the memory held that it allocates, and with nothing else."""
    zeros, filled = (_in_new_memory(example, fill) for fill in (False, True))
    if _alike(zeros, filled):
        return False
    # What changes from call to call, as with a counter, or after the first call, says nothing about memory. Where an
    # index was never written, the call may raise.
    again, after = (_in_new_memory(example, fill) for fill in (True, False))
    return _alike(filled, again) and not _alike(after, filled)


def _alike(first: list[Any] | None, second: list[Any] | None) -> bool:
    return first is second or (first is not None and second is not None and all(map(_near, first, second)))


def _in_new_memory(example: Example, fill: bool) -> list[Any] | None:
    """The results if new memory is filled with NaN, or with zeros; None if the call raises."""
    return attempted(_with_new_memory, example, fill)


def _with_new_memory(example: Example, fill: bool) -> list[Any]:
    with example.implementation.new_memory(fill):
        return results_of(example)


def results_of(example: Example, seed: int | None = None, later: int | None = None) -> list[Any]:
    """Outputs and gradients in NumPy; seeds are set before forward and, ``later`` or the same, before backward."""
    implementation = example.implementation

    def start(seed: int | None) -> None:
        if seed is not None:
            implementation.reseed(seed)

    start(seed)
    outputs, pullback = implementation.vjp(example.f, example.primals, track=example.track)
    found = copied(implementation, outputs)
    start(seed if later is None else later)
    return [*found, *copied(implementation, pullback(constant_cotangents(example, outputs)))]


def _same(a: Any, b: Any) -> bool:
    return a is b or (a is not None and b is not None and np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"))


def _near(a: Any, b: Any) -> bool:
    if a is None or b is None or a.shape != b.shape:
        return a is b
    scale = float(np.max(np.abs(a), initial=0.0, where=np.isfinite(a)))
    return np.allclose(a, b, rtol=NEAR, atol=NEAR * scale, equal_nan=True)
