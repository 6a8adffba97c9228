"""What is said of the failures of a test, once Hypothesis has found the first one.

The failing call is made as small as it can be, since Hypothesis draws sizes from a few only. Then its cause is looked
for, and a choice of the call that explains it. If there is one, the test runs again without it: there may be other
failures.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import filterfalse, islice
from typing import Any, NamedTuple

import numpy as np

from autograd_conformance.harness.check.declaration.facts import facts_of
from autograd_conformance.harness.check.explain.alternatives import (
    Alternative,
    alternatives,
    in_lengths,
    values_in_words,
)
from autograd_conformance.harness.check.explain.causes import Failure
from autograd_conformance.harness.check.explain.hints import likely
from autograd_conformance.harness.check.explain.replaying import replayed
from autograd_conformance.harness.outcomes import Broken, Finding, Kind, OutOfTime
from autograd_conformance.harness.testing.attempts import attempted
from autograd_conformance.harness.testing.observe import copied
from autograd_conformance.harness.testing.own_faults import noticed
from autograd_conformance.harness.testing.relations import AlongAxis
from autograd_conformance.harness.testing.subject import Subject
from autograd_conformance.reference.properties import PROPERTIES
from autograd_conformance.strategies.calls import Call, parse, reshaped, varied
from autograd_conformance.strategies.shapes import smaller_shape_tuples

# The most failures of one test, and smaller shapes to try.
_FAILURES, _SMALLER = 3, 80
# The failing calls with which another choice is tried, and other seeds to make some.
_FAILING, _SEEDS = 4, 3
# The seeds among which those are sought that give calls of another choice.
_DRAWS = 50
# So many lengths, right ones and wrong ones, show more than two shapes do.
_SOME = 2
# Elements of a call that is small enough.
_FEW = 6
# After so many seconds nothing more is tried; of a slow Function, of which a part of the examples is tried, after a
# part of the time.
_LONG = 20.0
# Properties of what is outside a call: no choice of the call explains what follows from them.
_BY_CHANCE = ("VJP-REPEAT", "ENV-RANDOM", "MEM-WRITTEN")
# The number of examples that show whether a test holds for a call: it may draw more than the call.
_REPEATS = 6


class Explanation(NamedTuple):
    """What a failure is right with, in words, and which calls it excludes, if that is known.

    ``listed`` has all values of an argument, those that are right and those that are wrong.
    """

    words: str
    excludes: Callable[[Call], bool] | None
    listed: str


class Runs:
    """The runs of one test of a user's Function: ``attempt`` draws calls and raises the failure of the smallest."""

    def __init__(self, subject: Subject, test: Any, attempt: Callable[[], None]) -> None:
        self.subject, self.function, self.test, self.attempt = subject, subject.function, test, attempt
        self.started = time.monotonic()

    def first(self) -> None:
        """Run the test; raises its first failure with its cause."""
        broken = self._first()
        if broken is not None:
            raise broken.with_finding(explained(self.subject, broken))

    def _first(self) -> Broken | None:
        """The first failure; Hypothesis groups the failures of a call that fails only sometimes, which are raised."""
        try:
            self.attempt()
        except Broken as broken:
            self._allow_more_time()
            return broken
        except Exception as raised:
            noticed(raised)
            self._allow_more_time()
            for each in getattr(raised, "exceptions", ()):
                if isinstance(each, Broken):
                    each.finding = explained(self.subject, each)
            raise
        return None

    def all(self) -> None:
        """Run the test; raises its first failure, and leaves the others in the subject's record."""
        first = self._first()
        if first is None:
            return
        self.started = time.monotonic()
        found, listed = list[Finding](), list[str]()
        broken: Broken | None = first
        try:
            while broken is not None and len(found) < _FAILURES and not self._late():
                broken = attempted(self._smallest, broken) or broken
                call = parse(broken.finding.call)
                if any(has(call) for has in self.subject.excluded):
                    # The test makes such calls from all that are drawn.
                    break
                broken.finding = explained(self.subject, broken)
                found = [self._unless_met(finding, broken) for finding in found]
                other = attempted(self._explaining, broken, {finding.right_with for finding in found})
                found.append(replace(broken.finding, right_with=other.words if other else ""))
                listed.append(other.listed if other else "")
                if other is None or other.excludes is None:
                    break
                self.subject.excluded = (*self.subject.excluded, other.excludes)
                broken = self._next()
        finally:
            self.subject.excluded = ()
        # What was found to have an explanation that is none has no words.
        pairs = zip(found, listed, strict=True)
        said = [replace(finding, right_with=finding.right_with and values) for finding, values in pairs]
        self.subject.record.further = [said[n] for n in _distinct(found)[1:]]
        raise first.with_finding(said[0]) if said else first

    def _allow_more_time(self) -> None:
        """Let examples begin that say why the test failed, also where its time is up."""
        self.subject.record.until = max(self.subject.record.until, time.monotonic() + self.subject.record.allowed)

    def _next(self) -> Broken | None:
        self.subject.record.failures.clear()
        try:
            self.attempt()
        except Broken as broken:
            return broken
        except Exception as raised:  # noqa: BLE001 - nothing else can be drawn, or it says nothing
            noticed(raised)
            return None
        return None

    def _unless_met(self, finding: Finding, broken: Broken) -> Finding:
        """The finding without the value that it is right with, if a failure of the same kind has that value."""
        met = finding.right_with in values_in_words(self.function, parse(broken.finding.call))
        return replace(finding, right_with="") if met and _kind(finding) == _kind(broken.finding) else finding

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

    def _explaining(self, broken: Broken, known: set[str]) -> Explanation | None:
        """The first alternative that explains the failure.

        A choice that happens to be right in one failing call is not the cause: it has to make most others right, too.
        Most and not all, because some may have a fault of their own. What explains another failure, out of ``known``,
        is named again: then both are one fault.
        """
        if broken.finding.follows in _BY_CHANCE:
            return None
        call = parse(broken.finding.call)
        others: list[Call] | None = None
        some = ""
        # What is not finite comes from a number, such as 0, which another shape may lack.
        of_number = broken.finding.kind is Kind.NAN or broken.finding.component.get("aspect") == "finite"
        for each in self._alternatives(call):
            if (of_number and each.moves) or not self._still_fails(broken, each.where):
                continue
            right = [n for n, (_, other) in enumerate(each.calls) if self._is_right(other, each.excludes)]
            if 2 * len(right) <= len(each.calls):
                some = some or self._values(broken, each, right)
                continue
            if each.moves and not all(self._tells(call, each.calls[n][1]) for n in right):
                continue
            if each.excludes is None:
                if self._differ(broken, each.calls[right[0]][1]):
                    return Explanation(words := self._lengths(broken, *each.calls[right[0]]), None, words)
                continue
            others = self._failing(broken) if others is None else others
            names, among = list(each.named), [other for other in others if each.excludes(other)]
            shares = {n: self._share_right(among, names[n], each.excludes) for n in right}
            best = max(right, key=lambda n: (shares[n], each.calls[n][0] in known))
            if shares[best] > 1 / 2:
                words = each.calls[best][0]
                several = [n for n in right if shares[n] > 1 / 2]
                return Explanation(words, each.excludes, self._all_values(broken, each, several, words))
        return Explanation(some, None, some) if some else None

    def _values(self, broken: Broken, each: Alternative, right: Sequence[int]) -> str:
        """The values of an argument with which a call is right, and those with which it is wrong; empty if unknown."""
        call = parse(broken.finding.call)
        right = [n for n in right if each.value and self._tells(call, each.calls[n][1])]
        if not right:
            return ""
        names, among = list(each.named), self._failing(broken)
        assert each.excludes is not None
        if not all(2 * self._share_right(among, names[n], each.excludes) > 1 for n in right):
            return ""
        return self._all_values(broken, each, right, each.calls[right[0]][0])

    def _all_values(self, broken: Broken, each: Alternative, right: Sequence[int], words: str) -> str:
        """The words of a value that is right, with the others that are, and those that are wrong as the call's is."""
        if not each.value or len(each.calls) < _SOME:
            return words
        others = [each.calls[n][0] for n in right if each.calls[n][0] != words]
        wrong = [
            said for n, (said, other) in enumerate(each.calls) if n not in right and self._still_fails(broken, other)
        ]
        listed = ", ".join([words, *map(_value, others)])
        return f"{listed}; wrong with {', '.join([each.value, *map(_value, wrong)])}"

    def _lengths(self, broken: Broken, words: str, other: Call) -> str:
        """The lengths of one dimension with which calls are right, and wrong; the words if there are few of either."""
        dimension, calls = in_lengths(self.function, parse(broken.finding.call), other)
        found = {str(n): self._replayed(each, 1) for n, each in calls.items() if not self._late()}
        right = [n for n, (holds, _) in found.items() if holds]
        wrong = [n for n, (_, failure) in found.items() if failure is not None]
        if min(len(right), len(wrong)) < _SOME:
            return words
        return f"lengths {', '.join(right)} {dimension}; wrong with {', '.join(wrong)}"

    def _alternatives(self, call: Call) -> Iterator[Alternative]:
        """Other choices for a call. A test that moves the axis itself has none of another axis."""
        relations = getattr(self.function, "relations", {})
        moved = isinstance(relations.get(self.subject.property_id), AlongAxis)
        return alternatives(self.function, call, moving_axis=not moved)

    def _still_fails(self, broken: Broken, where: Call | None) -> bool:
        """Whether a call, if there is one, fails in the same way."""
        failure = None if where is None else self._replayed(where, 1)[1]
        return where is None or (failure is not None and _kind(failure.finding) == _kind(broken.finding))

    def _differ(self, broken: Broken, right: Call) -> bool:
        """Whether most calls with other values fail in the failing call's shapes, and none in the right one's."""
        failing = self._of_each_fill(parse(broken.finding.call))
        fail = sum(self._still_fails(broken, each) for each in failing)
        return 2 * fail > len(failing) and all(self._replayed(each, 1)[1] is None for each in self._of_each_fill(right))

    def _of_each_fill(self, call: Call) -> list[Call]:
        """The call with values of another kind each time."""
        found = [call]
        for _ in range(_SEEDS):
            found.append(varied(found[-1], self.function))
        return found[1:]

    def _tells(self, failing: Call, right: Call) -> bool:
        """Whether a right call has no gradient that is trivial there alone: 0, or equal to a cotangent."""
        trivial = attempted(lambda: [self._trivial(each) for each in (failing, right)])
        return trivial is None or not any(there and not here for here, there in zip(*trivial, strict=True))

    def _trivial(self, call: Call) -> list[bool]:
        """Of each gradient, whether it is 0, or equal to a cotangent of which no two entries are equal."""
        given = tuple(g and replace(g, fill="ramp", layout="contiguous") for g in call.cotangents)
        example = self.subject.made(replace(call, cotangents=given))
        _, gradients = example.run()
        cotangents = [g for g in copied(self.subject.implementation, example.cotangents) if g is not None]
        found = copied(self.subject.implementation, gradients)
        return [g is None or not np.any(g) or any(np.array_equal(g, c) for c in cotangents) for g in found]

    def _is_right(self, call: Call, excludes: Callable[[Call], bool] | None) -> bool:
        """Whether the test holds with this call, and does not fail with other values that are not excluded."""
        if self._late() or not self._replayed(call, _REPEATS)[0]:
            return False
        others = filterfalse(excludes or (lambda _: False), self._with_other_values(call, _DRAWS))
        return all(self._replayed(other, 1)[1] is None for other in islice(others, _SEEDS))

    def _with_other_values(self, call: Call, count: int = _SEEDS) -> Iterator[Call]:
        return (replace(varied(call, self.function), seed=call.seed + seed) for seed in range(1, count + 1))

    def _share_right(self, failing: Sequence[Call], name: str, excludes: Callable[[Call], bool]) -> float:
        """The share of the failing calls that the other choice of this name makes right; 0 if too few can have it."""
        found = (
            next((each.named[name] for each in self._alternatives(call) if name in each.named), None)
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
        return time.monotonic() > self.started + _LONG * facts_of(self.function).share

    def _replayed(self, call: Call, examples: int) -> tuple[bool, Broken | None]:
        return replayed(self.subject, self.test, call, examples)


def explained(subject: Subject, broken: Broken) -> Finding:
    """The finding of a failure, with the property that it follows from, and the likely cause of a wrong number."""
    finding = broken.finding
    if not finding.compared:
        return finding
    try:
        return _explained(Failure(subject, broken), finding)
    except (Exception, OutOfTime) as raised:  # noqa: BLE001 - a user's Function may raise anything, and the failure stays one
        noticed(raised)
        return finding


def _explained(failure: Failure, finding: Finding) -> Finding:
    follows = failure.cause()
    explains = PROPERTIES[follows].explains if follows else ""
    if failure.raised is not None:
        return replace(finding, follows=follows, hint=finding.hint or explains)
    if finding.component.get("aspect") == "equality":
        # What does not fit is wrong in itself, unless something else is.
        other = follows not in ("", "VJP-REF")
        return replace(finding, follows=follows, hint=explains or finding.hint) if other else finding
    words = attempted(likely, failure, follows or failure.about.id) or ""
    if follows and finding.kind is Kind.DETACHED and not isinstance(finding.compared[0], str):
        # What is missing in a second derivative of a wrong first one is one of its wrong numbers.
        finding = replace(finding, kind=Kind.WRONG, got=str(finding.compared[0]))
    return replace(finding, follows=follows, hint=explains or finding.hint, likely=words)


def _value(words: str) -> str:
    """The value alone, of words such as `argument 1 (p) = 2`."""
    return words.partition(" = ")[2]


def _kind(finding: Finding) -> tuple[Any, ...]:
    raised = (finding.raised.type, finding.raised.at) if finding.raised else ()
    return finding.kind, raised, finding.component.get("aspect")


def _distinct(found: list[Finding]) -> list[int]:
    """The numbers of the first failures of each kind and explanation."""
    kinds = [(_kind(finding), finding.right_with) for finding in found]
    return [n for n in range(len(found)) if kinds[n] not in kinds[:n]]
