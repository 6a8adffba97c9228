"""Further failures of a test: if one choice of the failing call explains its failure, the test runs again without it.

First the failing call is made as small as it can be: Hypothesis draws sizes from a few only.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from autograd_conformance.harness.checking.drawing import prepare
from autograd_conformance.harness.checking.subject import Subject
from autograd_conformance.harness.outcomes import Broken, Finding, OutOfTime
from autograd_conformance.reference.definitions import Function, Static
from autograd_conformance.reference.rounding import PRECISION
from autograd_conformance.strategies.calls import (
    Call,
    Tensor,
    contiguous,
    masked,
    parse,
    recast,
    reshaped,
    same,
    with_cotangents,
)
from autograd_conformance.strategies.shapes import shape_tuples, smaller_shape_tuples

# The most failures of one test, other values of an argument, other ranks, and smaller shapes to try.
_FAILURES, _VALUES, _RANKS, _SMALLER = 3, 4, 2, 80
# Elements of a call that is small enough.
_FEW = 6
# After so many seconds nothing more is tried.
_LONG = 20.0
# The number of examples that show whether a test holds for a call: it may draw more than the call.
_REPEATS = 6


@dataclass(frozen=True)
class Alternative:
    """Another choice for one of the failing call's: ``call`` differs from it in this only.

    ``words`` name the other choice. ``excludes`` says of any call whether it has the failing call's choice.
    """

    words: str
    excludes: Callable[[Call], bool]
    call: Call


def alternatives(function: Function, call: Call) -> Iterator[Alternative]:
    """The call with one choice changed each time: a layout, the mask, the dtype, a number or flag, the rank."""
    whole = len(call.tensors) == len(function.arrays)
    dense = with_cotangents(call, "contiguous")
    if dense != call:
        yield Alternative("contiguous cotangents", lambda c: with_cotangents(c, "contiguous") != c, dense)
    if contiguous(call) != dense:
        yield Alternative("contiguous tensors", lambda c: contiguous(c) != c, contiguous(call))
    full = [a.differentiable for a, given in zip(function.arguments, call.args, strict=False) if _is_tensor(given)]
    if masked(call, full) != call:
        words = "every tensor requiring grad"
        yield Alternative(words, lambda c: not _same_mask(function, c), masked(call, full))
    first, unit = function.dtypes[0], PRECISION[call.dtype].unit
    if unit > PRECISION[first].unit:
        yield Alternative(first, lambda c: PRECISION[c.dtype].unit >= unit, recast(call, first, function))
    if whole:
        yield from _other_values(function, call)
    if any(tensor.specials for tensor in call.tensors):
        # In another shape they would be elsewhere.
        return
    ranks, other = _ranks(call), dict[Any, Call]()
    for shapes in shape_tuples(function):
        if any(0 in shape for shape in shapes):
            continue
        moved = reshaped(call, shapes, function)
        if moved is not None and _ranks(moved) != ranks:
            other.setdefault(_ranks(moved), moved)
    for moved in list(other.values())[:_RANKS]:
        words = f"shapes {', '.join(str(t.shape) for t in moved.tensors)}"
        yield Alternative(words, lambda c: _ranks(c) == ranks, moved)


def _other_values(function: Function, call: Call) -> Iterator[Alternative]:
    shapes = tuple(tensor.shape for tensor in call.tensors)
    for slot, (argument, given) in enumerate(zip(function.arguments, call.args, strict=False)):
        if not isinstance(argument, Static):
            continue
        others = [value for value in argument.choices(shapes) if not same(value, given)]
        for value in others[:_VALUES]:
            args = (*call.args[:slot], value, *call.args[slot + 1 :])
            words = f"argument {slot} ({argument.name}) = {value!r}"
            yield Alternative(words, _having(slot, given), replace(call, args=args))


def _having(slot: int, value: Any) -> Callable[[Call], bool]:
    return lambda call: len(call.args) > slot and same(call.args[slot], value)


def _is_tensor(given: Any) -> bool:
    return isinstance(given, Tensor)


def _same_mask(function: Function, call: Call) -> bool:
    pairs = zip(function.arguments, call.args, strict=False)
    return all(given.requires_grad == a.differentiable for a, given in pairs if isinstance(given, Tensor))


def _ranks(call: Call) -> tuple[int, ...]:
    return tuple(len(tensor.shape) for tensor in call.tensors)


class Runs:
    """The runs of one test of a user's Function: ``attempt`` draws calls and raises the failure of the smallest."""

    def __init__(self, subject: Subject, test: Any, attempt: Callable[[], None]) -> None:
        self.subject, self.function, self.test, self.attempt = subject, subject.function, test, attempt
        self.started = time.monotonic()

    def all(self) -> None:
        """Run the test; raises its first failure, and leaves the others in the subject's record."""
        first = _failure(self.attempt)
        if first is None:
            return
        found = list[Finding]()
        broken: Broken | None = first
        try:
            while broken is not None and len(found) < _FAILURES and not self._late():
                broken = self._smallest(broken)
                call = parse(broken.finding.call)
                if any(has(call) for has in self.subject.excluded):
                    # The test makes such calls from all that are drawn.
                    break
                other = self._explaining(call)
                found.append(replace(broken.finding, right_with=other.words if other else ""))
                if other is None:
                    break
                self.subject.excluded = (*self.subject.excluded, other.excludes)
                broken = self._next()
        finally:
            self.subject.excluded = ()
        self.subject.record.further = _distinct(found)[1:]
        raise first.with_finding(found[0]) if found else first

    def _next(self) -> Broken | None:
        try:
            return _failure(self.attempt)
        except Exception:  # noqa: BLE001 - nothing else can be drawn, or it says nothing
            return None

    def _smallest(self, broken: Broken) -> Broken:
        """The failure of the same kind in the smallest shapes that show it."""
        call = parse(broken.finding.call)
        shapes = tuple(tensor.shape for tensor in call.tensors)
        if sum(map(math.prod, shapes)) <= _FEW or len(shapes) != len(self.function.arrays):
            return broken
        for smaller in smaller_shape_tuples(self.function, shapes)[:_SMALLER]:
            if self._late():
                break
            moved = reshaped(call, smaller, self.function)
            found = self._replayed(moved, 1)[1] if moved is not None else None
            if found is not None and _kind(found.finding) == _kind(broken.finding):
                return found
        return broken

    def _explaining(self, call: Call) -> Alternative | None:
        """The first alternative with which the test holds."""
        every = alternatives(self.function, call)
        return next((each for each in every if not self._late() and self._replayed(each.call, _REPEATS)[0]), None)

    def _late(self) -> bool:
        return time.monotonic() > self.started + _LONG

    def _replayed(self, call: Call, examples: int) -> tuple[bool, Broken | None]:
        """Whether the test holds with this call, and its failure if not; neither if that is unknown."""
        subject = self.subject
        kept, excluded = subject.record, subject.excluded
        subject.record, subject.excluded, subject.replayed = kept.another(), (), call
        prepare(self.test, subject.key["id"], 0, examples=1, least=examples, shrink=False)
        try:
            failure = _failure(lambda: self.test(subject=subject))
            return failure is None and subject.record.checks > 0 and not subject.record.excused, failure
        except (Exception, OutOfTime):  # noqa: BLE001 - such a call cannot be tested
            return False, None
        finally:
            subject.record, subject.excluded, subject.replayed = kept, excluded, None


def run(subject: Any, test: Any, attempt: Callable[[], None]) -> None:
    """Run a test by ``attempt``; that of a user's Function with every failure."""
    if isinstance(subject, Subject) and subject.explores and subject.replayed is None:
        Runs(subject, test, attempt).all()
    else:
        attempt()


def _failure(attempt: Callable[[], None]) -> Broken | None:
    try:
        attempt()
    except Broken as broken:
        return broken
    return None


def _kind(finding: Finding) -> tuple[Any, ...]:
    raised = (finding.raised.type, finding.raised.at) if finding.raised else ()
    return finding.kind, raised, finding.component.get("aspect")


def _distinct(found: list[Finding]) -> list[Finding]:
    """The first failure of each kind and explanation."""
    kinds = [(_kind(finding), finding.right_with) for finding in found]
    return [finding for n, finding in enumerate(found) if kinds[n] not in kinds[:n]]
