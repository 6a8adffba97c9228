"""Further failures of a test: if one choice of the failing call explains its failure, the test runs again without it.

First the failing call is made as small as it can be: Hypothesis draws sizes from a few only.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import filterfalse, islice, zip_longest
from typing import Any

from autograd_conformance.harness.checking.drawing import prepare
from autograd_conformance.harness.checking.integers import repeating
from autograd_conformance.harness.checking.peculiarities import PECULIARITIES, Peculiarity
from autograd_conformance.harness.checking.settings import kept
from autograd_conformance.harness.checking.subject import Subject
from autograd_conformance.harness.outcomes import Broken, Finding, Kind, OutOfTime
from autograd_conformance.reference.definitions import REAL_OF, Array, Function, Shapes, Static
from autograd_conformance.reference.properties import PROPERTIES
from autograd_conformance.reference.rounding import PRECISION
from autograd_conformance.strategies.calls import Call, parse, recast, reshaped, same, varied
from autograd_conformance.strategies.shapes import shape_tuples, smaller_shape_tuples

# The most failures of one test, other values of an argument, other ranks, and smaller shapes to try.
_FAILURES, _VALUES, _RANKS, _SMALLER = 3, 4, 2, 80
# The failing calls with which another choice is tried, and other seeds to make some.
_FAILING, _SEEDS = 4, 3
# The seeds and shapes among which those are sought that give different values.
_DRAWS, _SHAPES = 50, 10
# Elements of a call that is small enough.
_FEW = 6
# After so many seconds nothing more is tried.
_LONG = 20.0
# The number of examples that show whether a test holds for a call: it may draw more than the call.
_REPEATS = 6
# Numbers for which a Function may have a branch of its own.
_SPECIAL = (0.0, 1.0, -1.0)


@dataclass(frozen=True)
class Alternative:
    """Another choice for one of the failing call's: each of ``calls`` differs from it in this only.

    ``calls`` have the words that name the other choice. It explains the failure if the test holds with most of them.
    ``excludes`` says of any call whether it has the failing call's choice. ``name`` is that of the choice, if its words
    depend on the call.
    """

    excludes: Callable[[Call], bool]
    calls: tuple[tuple[str, Call], ...]
    name: str = ""
    # Whether it has other numbers in the places of the failing call's, as another shape has.
    moves: bool = False

    @property
    def named(self) -> dict[str, Call]:
        """The calls by names that mean the same for every failing call."""
        return {self.name or words: call for words, call in self.calls}


def alternatives(function: Function, call: Call) -> Iterator[Alternative]:
    """The call with one choice changed each time: layout, mask, used outputs, dtype, a number or flag, rank."""
    tried = [call]
    for each in PECULIARITIES:
        simpler = each.without(function, call)
        if each.words and simpler not in tried:
            tried.append(simpler)
            yield Alternative(partial(_has, each, function), ((each.words, simpler),))
    yield from _other_outputs(call)
    yield from _other_dtypes(function, call)
    yield from _without_optional(function, call)
    yield from _other_values(function, call)
    yield from _all_different(function, call)
    if any(tensor.specials for tensor in call.tensors):
        # In another shape they would be elsewhere.
        return
    yield from _longer(function, call)
    ranks, other = _ranks(call), dict[Any, Call]()
    for shapes in shape_tuples(function):
        if any(0 in shape for shape in shapes):
            continue
        moved = reshaped(call, shapes, function)
        if moved is not None and _ranks(moved) != ranks:
            other.setdefault(_ranks(moved), moved)
    for moved in list(other.values())[:_RANKS]:
        words = f"shapes {', '.join(str(t.shape) for t in moved.tensors)}"
        yield Alternative(lambda c: _ranks(c) == ranks, ((words, moved),), f"ranks {_ranks(moved)}", moves=True)


def _other_outputs(call: Call) -> Iterator[Alternative]:
    """The call without the cotangent of one output."""
    used = [number for number, cotangent in enumerate(call.cotangents) if cotangent is not None]
    for number in used if len(used) > 1 else ():
        cotangents = tuple(None if n == number else cotangent for n, cotangent in enumerate(call.cotangents))
        words = f"output {number} not used"
        yield Alternative(partial(_uses, number), ((words, replace(call, cotangents=cotangents)),))


def _other_dtypes(function: Function, call: Call) -> Iterator[Alternative]:
    """The call with real numbers instead of complex ones, and in the most precise dtype."""
    real, first, unit = REAL_OF.get(call.dtype, ""), function.dtypes[0], PRECISION[call.dtype].unit
    if real in function.dtypes:
        yield Alternative(lambda c: c.dtype in REAL_OF, ((real, recast(call, real, function)),))
    if unit > PRECISION[first].unit:
        yield Alternative(lambda c: PRECISION[c.dtype].unit >= unit, ((first, recast(call, first, function)),))


def _without_optional(function: Function, call: Call) -> Iterator[Alternative]:
    """The call with None for a tensor that may be None."""
    for slot, (argument, given) in enumerate(zip(function.arguments, call.args, strict=False)):
        if isinstance(argument, Array) and "none" in argument.optional and given is not None:
            other = replace(call, args=_replaced(call.args, slot, None))
            if any(other.mask):
                yield Alternative(partial(_gives, slot), ((f"argument {slot} ({argument.name}) = None", other),))


def _gives(slot: int, call: Call) -> bool:
    return len(call.args) > slot and call.args[slot] is not None


def _other_values(function: Function, call: Call) -> Iterator[Alternative]:
    shapes = _shapes(function, call)
    for slot, (argument, given) in enumerate(zip(function.arguments, call.args, strict=False)):
        if shapes is None or not isinstance(argument, Static):
            continue
        others = [value for value in argument.choices(shapes) if not same(value, given)]
        if isinstance(given, float) and given not in _SPECIAL:
            # With another number the entries of the tensors are on other sides of it, which explains nothing.
            others = [value for value in others if not isinstance(value, float)]
        calls = tuple(
            (f"argument {slot} ({argument.name}) = {value!r}", replace(call, args=_replaced(call.args, slot, value)))
            for value in others[:_VALUES]
        )
        yield Alternative(_having(slot, given), calls)


def _all_different(function: Function, call: Call) -> Iterator[Alternative]:
    """The call with other values, of which no integer tensor has one twice, if one of the call's has."""
    slots = repeating(function, call)
    if not slots:
        return
    # There may be fewer values than elements.
    shapes = [tuple(t.shape for t in call.tensors), *reversed(shape_tuples(function))]
    moved = (reshaped(call, each, function) for each in shapes if len(each) == len(call.tensors))
    alike = (c for c in moved if c is not None and _ranks(c) == _ranks(call) and _several_values(c, slots))
    others = (replace(c, seed=call.seed + seed) for c in islice(alike, _SHAPES) for seed in range(_DRAWS))
    different = next((other for other in others if not repeating(function, other)), None)
    if different is not None:
        names = " and ".join(f"argument {slot} ({function.arguments[slot].name})" for slot in sorted(slots))
        words = f"all values of {names} different"
        yield Alternative(lambda c: bool(repeating(function, c)), ((words, different),), "all values different")


def _longer(function: Function, call: Call) -> Iterator[Alternative]:
    """The call with a longer dimension in place of one of length 1, with no more changes than it needs."""
    ones, found = _ones(call), dict[frozenset[tuple[int, int]], Call]()
    for shapes in shape_tuples(function) if ones else ():
        moved = reshaped(call, shapes, function) if len(shapes) == len(call.tensors) else None
        if moved is None or _ranks(moved) != _ranks(call) or any(0 in shape for shape in shapes):
            continue
        longer = ones - _ones(moved)
        if longer and not any(each <= longer for each in found):
            found = {each: c for each, c in found.items() if not longer < each}
            found[longer] = moved
    for longer, moved in list(found.items())[:_RANKS]:
        words = f"shapes {', '.join(str(t.shape) for t in moved.tensors)}"
        yield Alternative(partial(_is_short, longer), ((words, moved),), f"longer {sorted(longer)}", moves=True)


def _ones(call: Call) -> frozenset[tuple[int, int]]:
    """The dimensions of length 1: the number of each tensor, and of its dimension."""
    sides = ((n, d, side) for n, tensor in enumerate(call.tensors) for d, side in enumerate(tensor.shape))
    return frozenset((n, d) for n, d, side in sides if side == 1)


def _is_short(longer: frozenset[tuple[int, int]], call: Call) -> bool:
    return bool(longer & _ones(call))


def _several_values(call: Call, slots: Collection[int]) -> bool:
    return all(math.prod(call.args[slot].shape) > 1 for slot in slots)


def _shapes(function: Function, call: Call) -> Shapes | None:
    """The shapes of the tensors; of one that is left out, the simplest that suits the others. None if none does."""
    rows = zip_longest(function.arguments, call.args)
    given = [getattr(x, "shape", None) for argument, x in rows if isinstance(argument, Array)]
    fitting = (
        found for found in shape_tuples(function) if all(g in (None, s) for g, s in zip(given, found, strict=True))
    )
    return next(fitting, None) if None in given else tuple(s for s in given if s is not None)


def _replaced(args: tuple[Any, ...], slot: int, value: Any) -> tuple[Any, ...]:
    return (*args[:slot], value, *args[slot + 1 :])


def _uses(number: int, call: Call) -> bool:
    return call.cotangents[number] is not None


def _having(slot: int, value: Any) -> Callable[[Call], bool]:
    return lambda call: len(call.args) > slot and same(call.args[slot], value)


def _has(peculiarity: Peculiarity, function: Function, call: Call) -> bool:
    return peculiarity.without(function, call) != call


def _ranks(call: Call) -> tuple[int, ...]:
    return tuple(len(tensor.shape) for tensor in call.tensors)


class Runs:
    """The runs of one test of a user's Function: ``attempt`` draws calls and raises the failure of the smallest."""

    def __init__(self, subject: Subject, test: Any, attempt: Callable[[], None]) -> None:
        self.subject, self.function, self.test, self.attempt = subject, subject.function, test, attempt
        self.started = time.monotonic()

    def all(self) -> None:
        """Run the test; raises its first failure, and leaves the others in the subject's record."""
        try:
            first = _failure(self.attempt)
        except Exception as failures:
            # Hypothesis groups the failures of a call that fails only sometimes.
            self._explain(getattr(failures, "exceptions", ()))
            raise
        if first is None:
            return
        if time.monotonic() > self.subject.record.until:
            # The last, explaining run was not reached.
            self._explain((first,))
        found = list[Finding]()
        broken: Broken | None = first
        try:
            while broken is not None and len(found) < _FAILURES and not self._late():
                broken = self._smallest(broken)
                call = parse(broken.finding.call)
                if any(has(call) for has in self.subject.excluded):
                    # The test makes such calls from all that are drawn.
                    break
                other = self._explaining(broken, {finding.right_with for finding in found})
                found.append(replace(broken.finding, right_with=other[0] if other else ""))
                if other is None:
                    break
                self.subject.excluded = (*self.subject.excluded, other[1])
                broken = self._next()
        finally:
            self.subject.excluded = ()
        self.subject.record.further = _distinct(found)[1:]
        raise first.with_finding(found[0]) if found else first

    def _explain(self, failures: Sequence[Exception]) -> None:
        """Say what failures follow from, of which the last, explaining run of the call held or was not made."""
        for broken in failures:
            if not isinstance(broken, Broken) or broken.finding.kind is Kind.RAISED:
                continue
            # The failures are raised next, whatever comes of this.
            with suppress(Exception, OutOfTime), kept(self.subject.implementation):
                follows = self.subject.policy.follows(parse(broken.finding.call))
                if follows:
                    broken.finding = replace(broken.finding, follows=follows, hint=PROPERTIES[follows].explains)

    def _next(self) -> Broken | None:
        self.subject.record.failures.clear()
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

    def _explaining(self, broken: Broken, known: set[str]) -> tuple[str, Callable[[Call], bool]] | None:
        """The words of the first alternative that explains the failure, and which calls it excludes.

        A choice that happens to be right in one failing call is not the cause: it has to make most others right, too.
        Most and not all, because some may have a fault of their own. What explains another failure, out of ``known``,
        is named again: then both are one fault.
        """
        call = parse(broken.finding.call)
        others: list[Call] | None = None
        # What is not finite comes from a number, such as 0, which another shape may lack.
        of_number = broken.finding.kind is Kind.NAN or broken.finding.component.get("aspect") == "finite"
        for each in alternatives(self.function, call):
            if of_number and each.moves:
                continue
            right = [n for n, (_, other) in enumerate(each.calls) if self._is_right(other, each.excludes)]
            if 2 * len(right) <= len(each.calls):
                continue
            others = self._failing(broken) if others is None else others
            names, among = list(each.named), [other for other in others if each.excludes(other)]
            shares = {n: self._share_right(among, names[n], each.excludes) for n in right}
            best = max(right, key=lambda n: (shares[n], each.calls[n][0] in known))
            if shares[best] > 1 / 2:
                return each.calls[best][0], each.excludes
        return None

    def _is_right(self, call: Call, excludes: Callable[[Call], bool]) -> bool:
        """Whether the test holds with this call, and does not fail with other values that are not excluded."""
        if self._late() or not self._replayed(call, _REPEATS)[0]:
            return False
        others = filterfalse(excludes, self._with_other_values(call, _DRAWS))
        return all(self._replayed(other, 1)[1] is None for other in islice(others, _SEEDS))

    def _with_other_values(self, call: Call, count: int = _SEEDS) -> Iterator[Call]:
        return (replace(varied(call, self.function), seed=call.seed + seed) for seed in range(1, count + 1))

    def _share_right(self, failing: Sequence[Call], name: str, excludes: Callable[[Call], bool]) -> float:
        """The share of the failing calls that the other choice of this name makes right; 0 if too few can have it."""
        found = (
            next((each.named[name] for each in alternatives(self.function, call) if name in each.named), None)
            for call in failing
        )
        right = [self._is_right(other, excludes) for other in found if other is not None]
        return sum(right) / len(right) if right else 0.0

    def _failing(self, broken: Broken) -> list[Call]:
        """Other calls that fail in the same way: drawn ones in different shapes, and the call with other values."""
        call, kind = parse(broken.finding.call), _kind(broken.finding)
        drawn = [parse(each.call) for each in self.subject.record.failures.values() if _kind(each) == kind]
        by_shapes = {tuple(tensor.shape for tensor in each.tensors): each for each in (*drawn, call)}
        found = [each for each in by_shapes.values() if each != call][: _FAILING - 1]
        for other in self._with_other_values(call):
            if len(found) >= _FAILING or self._late():
                break
            failure = self._replayed(other, 1)[1]
            if failure is not None and _kind(failure.finding) == kind:
                found.append(other)
        return found

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
