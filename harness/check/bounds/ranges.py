"""Gradients in float16 that are off because a term of backward leaves the range of float16.

bfloat16 has a larger range and fewer digits. Where it gives the gradient of double precision and float16 does not, no
rounding explains that. Only where forward is right far beyond such numbers is the gradient expected to be right, too:
what computes in float16 throughout loses its range in forward soon after.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from autograd_conformance.harness.check.bounds.builtin_autograd import gradients_of_formula
from autograd_conformance.harness.check.bounds.extremes import right
from autograd_conformance.harness.check.oracle.tolerances import FAR, LEAST, TIMES
from autograd_conformance.harness.testing.attempts import attempted
from autograd_conformance.harness.testing.example import Example
from autograd_conformance.harness.testing.subject import Subject
from autograd_conformance.reference.rounding import PRECISION
from autograd_conformance.strategies.calls import Call, recast, varied
from autograd_conformance.strategies.magnitudes import with_specials

NARROW, WIDE = "float16", "bfloat16"

# By how many times larger, or smaller, numbers must be right in forward.
_BEYOND = 2.0**7
# In how many more calls with the same extreme numbers: a choice between near equals flips in some of them only.
_MORE = 3

_LARGEST = PRECISION[NARROW].largest / 4
_HINT = f"{WIDE}, which has fewer digits and a larger range, gives it; a term of backward leaves the range of {NARROW}"


class _Wrong(NamedTuple):
    """The worst entry of a gradient, with the expected value, and by how much it may be off."""

    place: tuple[int, ...]
    got: Any
    expected: Any
    bound: float


class _Gradients(NamedTuple):
    """The gradients of a call, each beside that of double precision; None where there is none."""

    got: tuple[Any, ...]
    expected: tuple[Any, ...]

    def off(self, number: int) -> Any:
        """The errors of the entries of one gradient."""
        return np.abs(self.got[number] - self.expected[number])


def assert_in_range(subject: Subject, example: Example) -> None:
    """Assert that no gradient in float16 is far off where bfloat16, which has a larger range, is right."""
    __tracebackhide__ = True
    found = out_of_range(example)
    if found is None:
        subject.record.leave_open("there is nothing to compare such values with")
        return
    subject.record.checks += len(example.names)
    for number, wrong in found.items():
        what, place = example.names[number], {"index": list(wrong.place), "bound": wrong.bound}
        subject.wrong_value(
            example.call, f"{what} at {wrong.place}", got=wrong.got, expected=wrong.expected, hint=_HINT,
            bound=f"{wrong.bound:.3g} (off by {abs(wrong.got - wrong.expected):.3g})",
            component={"aspect": "value", "what": what, "number": number, **place},
        )  # fmt: skip


def out_of_range(example: Example) -> dict[int, _Wrong] | None:
    """The worst entry of each gradient of a call in float16 that is off for want of range, by the gradient's number.

    None if nothing is expected: the formula is not known in built-in operations, which may lack range as well, or
    forward is not right far beyond the call's numbers.
    """
    found = _lacking(example)
    for call in _alike(example) if found else ():
        again = _lacking(example.of(call)) or {}
        found = {number: wrong for number, wrong in (found or {}).items() if number in again}
    return found


def _alike(example: Example) -> Iterator[Call]:
    """Calls with the same extreme numbers among others."""
    call, specials = example.call, [tensor.specials for tensor in example.call.tensors]
    for _ in range(_MORE):
        call = varied(call, example.function)
        kept = iter(specials)
        yield with_specials(call, lambda _, kept=kept: next(kept))


def _beyond(call: Call) -> Call:
    """The call with its extreme numbers still farther from 1."""

    def moved(x: float) -> float:
        return float(np.clip(x * _BEYOND, -_LARGEST, _LARGEST)) if abs(x) > 1 else x / _BEYOND

    return with_specials(call, lambda given: tuple((place, moved(x)) for place, x in given.specials))


def _lacking(example: Example) -> dict[int, _Wrong] | None:
    """The worst entry of each gradient that is far off in float16, and right in bfloat16 and by the formula.

    None if nothing is expected.
    """
    formula, farther = gradients_of_formula(example), _beyond(example.call)
    ends = farther == example.call
    if formula is None or ends or not (_outputs_right(example) and _outputs_right(example.of(farther))):
        return None
    narrow = _run(example)
    wide = attempted(_run, example.of(recast(example.call, WIDE, example.function)))
    if wide is None:
        return None
    with np.errstate(all="ignore"):
        rows = enumerate(formula)
        numbers = [n for n, by_formula in rows if _lacks(narrow, wide, n) and _is_better(by_formula, narrow, n)]
        return {n: _worst(narrow, n) for n in numbers}


def _outputs_right(example: Example) -> bool:
    # Forward may refuse larger numbers.
    outputs = attempted(example.outputs)
    if outputs is None:
        return False
    pairs = zip(outputs, example.expected.outputs, strict=True)
    with np.errstate(all="ignore"):
        return all(bool(np.all(right(example.implementation.numpy(y), e.value, NARROW))) for y, e in pairs)


def _run(example: Example) -> _Gradients:
    expected = example.expected.vjp(example.expected.cotangents, exact=True)
    got = example.run()[1]
    return _Gradients(tuple(None if g is None else example.implementation.numpy(g) for g in got), tuple(expected))


def _lacks(narrow: _Gradients, wide: _Gradients, number: int) -> bool:
    if any(each[number] is None for each in (*narrow, *wide)) or not narrow.got[number].size:
        return False
    size, off = np.max(np.abs(narrow.expected[number])), np.max(narrow.off(number))
    fits = bool(np.isfinite(off)) and size < _LARGEST
    return fits and bool(off > max(FAR * size, LEAST, TIMES * np.max(wide.off(number))))


def _is_better(by_formula: Any, narrow: _Gradients, number: int) -> bool:
    """Whether the gradient by built-in operations is right."""
    if by_formula is None:
        return False
    off = np.abs(by_formula - narrow.expected[number])
    return bool(np.max(off) <= np.max(narrow.off(number)) / TIMES)


def _worst(found: _Gradients, number: int) -> _Wrong:
    index = np.unravel_index(int(np.argmax(found.off(number))), found.got[number].shape)
    place = tuple(map(int, index))
    bound = max(FAR * np.max(np.abs(found.expected[number])), LEAST)
    return _Wrong(place, found.got[number][place], found.expected[number][place], float(bound))
