"""Functions that map single entries: which they are, and their results for every number of a 16-bit dtype."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from autograd_conformance.harness.check.refusals.exceptions import mistake
from autograd_conformance.harness.testing.attempts import raised_by
from autograd_conformance.harness.testing.example import Example
from autograd_conformance.harness.testing.own_faults import noticed
from autograd_conformance.harness.testing.subject import Subject
from autograd_conformance.reference.rounding import PRECISION, round_to
from autograd_conformance.strategies.sweeps import HALF, NUMBERS, mapped, numbers, swept_calls, tried_calls
from autograd_conformance.strategies.values import fill

# The entries of a trial, and of one that shows how long a call of all numbers takes; that must be at most so many
# seconds.
_SHORT, _LONG, _SECONDS = 48, 1024, 1.0
_SLOW = "numbers tried in half precision: some of each kind (a call of all numbers takes too long)"
# The choices of other arguments to try.
_CHOICES = 8
# The powers of two below which are numbers of ordinary size, and all numbers of the 16-bit dtypes.
_ORDINARY, _LARGEST = 3, 128


def maps_entries(subject: Subject) -> tuple[bool, str]:
    """Whether the Function maps each entry of its only tensor, as trials show: the same value gives the same result.

    Neither the place of an entry nor the other entries count. It does not count if calls take too long, which is said.
    """
    function = subject.function
    if mapped(function) is None or function.dtypes[0] in HALF or not set(HALF) & set(function.dtypes):
        return False, ""
    dtype = function.dtypes[0]
    long = list(islice(swept_calls(function, dtype, _SHORT), _CHOICES))
    try:
        tried = (*long, *islice(tried_calls(function, dtype), 2 * _CHOICES))
        maps = bool(long) and all(_maps_entries(subject.made(call)) for call in tried)
        slow = maps and not _is_fast(subject)
    except Exception as raised:  # noqa: BLE001 - a Function may take no long tensors
        noticed(raised)
        return False, ""
    return maps and not slow, _SLOW if slow else ""


def _maps_entries(example: Example) -> bool:
    rng, slot = np.random.default_rng(0), example.slots[0]
    shape = example.values[slot].shape
    first, second = (_drawn(example, rng, shape) for _ in range(2))
    order, kept = rng.permutation(first.size), rng.random(first.size) < 0.5
    plain = _outputs(example, first)
    moved = _outputs(example, first.ravel()[order].reshape(shape))
    mixed = _outputs(example, np.where(kept.reshape(shape), first, second))
    if plain.shape != shape:
        return False
    flat = plain.ravel()
    return _same(moved.ravel(), flat[order]) and _same(mixed.ravel()[kept], flat[kept])


def _drawn(example: Example, rng: np.random.Generator, shape: Any) -> Any:
    argument = example.arguments[0]
    values = fill("dense", argument.values, shape, rng)
    low, high = argument.bounds or (0.0, 1.0)
    return low + (high - low) * values


def _outputs(example: Example, values: Any) -> Any:
    (output,) = example.given({0: values}).outputs()
    return example.implementation.numpy(output)


def _same(a: Any, b: Any) -> bool:
    # Vector instructions compute the last entries otherwise.
    return np.allclose(a, b, rtol=2.0**-20, atol=0, equal_nan=True)


def _is_fast(subject: Subject) -> bool:
    example = subject.made(next(swept_calls(subject.function, subject.function.dtypes[0], _LONG)))
    example.run()
    started = time.process_time()
    example.run()
    return (time.process_time() - started) * NUMBERS / _LONG < _SECONDS


@dataclass(frozen=True)
class Sweep:
    """The inputs of a call of every number, its output and gradient, and those in double precision; all flat."""

    dtype: str
    inputs: Any
    output: Any
    gradient: Any
    output_expected: Any
    gradient_expected: Any


def swept(example: Example) -> Sweep:
    """The results of a call of `strategies.sweeps`, with every number in its tensor."""
    example = with_numbers(example)
    outputs, gradients = example.run()
    numpy = example.implementation.numpy
    exact = example.expected
    rows = [
        example.values[example.slots[0]],
        numpy(outputs[0]),
        numpy(gradients[0]),
        example.function.forward(*exact.reference_arguments(exact=True))[0],
        exact.vjp(exact.cotangents, exact=True)[0],
    ]
    return Sweep(example.call.dtype, *(np.asarray(row, np.float64).ravel() for row in rows))


def with_numbers(example: Example) -> Example:
    """The call of every number that forward takes: it may refuse large ones.

    Raises what forward does if it refuses ordinary numbers as well, or if the exception shows a mistake.
    """
    dtype = example.call.dtype if example.call.dtype in HALF else HALF[0]
    every = numbers(dtype, example.arguments[0])
    raised = _raised(example, every)
    if raised is None:
        return _given(example, every)
    if mistake(raised):
        raise raised
    size = np.abs(every)

    def smaller(high: int) -> Any:
        return every[size < 2.0**high]

    if not smaller(_ORDINARY).size or _raised(example, smaller(_ORDINARY)):
        raise raised
    # What is too large for a Function is so from some number on.
    larger = range(_ORDINARY + 1, _LARGEST + 1)
    high = _ORDINARY + bisect_left(larger, True, key=lambda n: _raised(example, smaller(n)) is not None)
    return _given(example, smaller(high))


def _given(example: Example, values: Any) -> Example:
    shape = example.values[example.slots[0]].shape
    return example.given({0: np.resize(values, shape)})


def _raised(example: Example, values: Any) -> Exception | None:
    """What forward raises for these numbers."""
    return raised_by(lambda: _given(example, values).outputs())


def units(got: Any, expected: Any, dtype: str) -> Any:
    """The errors of numbers in units of the last place, or of that of 1 for smaller ones, which may be differences.

    NaN where double precision does not fit the dtype, infinite where a number is not finite.
    """
    precision = PRECISION[dtype]
    with np.errstate(all="ignore"):
        ulp = 2.0 ** np.floor(np.log2(np.maximum(np.abs(expected), 1.0))) * 2 * precision.unit
        error = np.where(np.isfinite(got), np.abs(got - expected) / ulp, np.inf)
        return np.where(np.isfinite(round_to(expected, dtype)), error, np.nan)


def largest_errors(subject: Subject) -> Iterator[str]:
    """A sentence for each 16-bit dtype: the largest errors of output and gradient, as in `units`."""
    for dtype in HALF:
        call = next(swept_calls(subject.function, dtype, NUMBERS), None) if dtype in subject.function.dtypes else None
        if call is not None:
            example = subject.made(call)
            try:
                found = swept(example)
            except Exception as raised:  # noqa: BLE001 - the tests will report it
                noticed(raised)
                continue
            output = _largest(found, found.output, found.output_expected)
            gradient = f", gradient by {_largest(found, found.gradient, found.gradient_expected)}"
            taken = "" if np.array_equal(found.inputs, numbers(dtype, example.arguments[0])) else " that forward takes"
            # Nothing says what a surrogate's gradient should be.
            of_surrogate = subject.function.surrogate and subject.function.soft is None
            yield f"every number in {dtype}{taken}: output off by {output}{'' if of_surrogate else gradient}"


def _largest(found: Sweep, got: Any, expected: Any) -> str:
    errors = units(got, expected, found.dtype)
    if not np.any(np.isfinite(errors)):
        return "what is not finite"
    place = int(np.argmax(np.where(np.isfinite(errors), errors, -1.0)))
    lost = np.flatnonzero(np.isinf(errors))
    worst = f"{round(errors[place], 2):.2g} ulp" + (f" at {found.inputs[place]:.4g}" if errors[place] > 1 else "")
    return worst + (f", not finite at {found.inputs[lost[0]]:.4g}" if len(lost) else "")
