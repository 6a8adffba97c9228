"""What is said of the failures of a test, once it has failed with a call that Hypothesis drew.

A simpler call that fails in the same way is looked for. Hypothesis looks for the smallest only if the call alone does
not show the failure. Then its cause is looked for, and a change that makes the call right. If there is one, the test
runs again without what it changes: there may be other failures.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any, NamedTuple

from autograd_conformance.harness.check.bench import Bench, kind_of
from autograd_conformance.harness.check.declaration.facts import facts_of
from autograd_conformance.harness.check.explain.causes import Failure
from autograd_conformance.harness.check.explain.everywhere import everywhere
from autograd_conformance.harness.check.explain.hints import likely
from autograd_conformance.harness.check.explain.right_with import REPEATS, Explanation, RightWith
from autograd_conformance.harness.outcomes import Broken, Finding, Kind, OutOfTime
from autograd_conformance.harness.testing.attempts import attempted
from autograd_conformance.harness.testing.own_faults import noticed
from autograd_conformance.harness.testing.subject import Subject
from autograd_conformance.reference.properties import PROPERTIES
from autograd_conformance.strategies.calls import Call, Tensor, parse
from autograd_conformance.strategies.changes import values_in_words
from autograd_conformance.strategies.lengths import LONG
from autograd_conformance.strategies.simpler import simpler

# The most failures of one test, and simpler calls to try; at least so many of a slow Function.
_FAILURES, _SIMPLER, _LEAST = 3, 120, 20
# After so many examples no other explanation is tried; of a slow Function, of which a part of the examples is tried,
# after a part of that.
_BUDGET = 400
# Properties of what is outside a call: no choice of the call explains what follows from them.
_BY_CHANCE = ("VJP-REPEAT", "ENV-RANDOM", "MEM-WRITTEN")


class Met(NamedTuple):
    """What is known of the smallest call with which a test failed: its explanation, and calls that fail like it."""

    explanation: Explanation | None
    alike: list[Call]


class Runs:
    """The runs of one test of a user's Function: ``attempt`` draws calls and raises the failure of one.

    If it is given True, Hypothesis looks for the smallest.
    """

    def __init__(self, subject: Subject, test: Any, attempt: Callable[[bool], None]) -> None:
        self.subject, self.function, self.test, self.attempt = subject, subject.function, test, attempt
        self.bench, self.share = Bench(subject), facts_of(self.function).share
        # A variant has calls of its own kind, which a plain test does not draw.
        self.met: dict[str, Met] = {} if subject.variant else self.bench.known.setdefault(("met", subject.device), {})
        # The calls that fail like the failure that is looked at.
        self.failing: dict[str, Call] = {}

    def first(self) -> None:
        """Run the test; raises its first failure with its cause."""
        try:
            self.attempt(False)
        except Broken as broken:
            self._allow_more_time()
            raise broken.with_finding(explained(self.subject, broken)) from broken.__cause__
        except Exception as raised:
            self._explain_each(raised)
            raise

    def briefly(self) -> None:
        """Run the test; raises its first failure with no more than whether the derivative is wrong everywhere."""
        try:
            self.attempt(False)
        except Broken as broken:
            throughout = attempted(everywhere, Failure(self.subject, broken)) is True
            raise broken.with_finding(replace(broken.finding, everywhere=throughout)) from broken.__cause__

    def all(self) -> None:
        """Run the test; raises its first failure, and leaves the others in the subject's record."""
        first = self._next()
        if first is None:
            return
        found, listed = list[Finding](), list[str]()
        broken: Broken | None = first
        try:
            while broken is not None and len(found) < _FAILURES:
                call = parse(broken.finding.call)
                if any(has(call) for has in self.subject.excluded):
                    # The test makes such calls from all that are drawn.
                    break
                broken.finding = explained(self.subject, broken)
                found = [self._unless_met(finding, broken) for finding in found]
                said = {finding.right_with for finding in found}
                other = attempted(self._right_with, broken.finding, said)
                found.append(replace(broken.finding, right_with=other.words if other else ""))
                listed.append(other.listed if other else "")
                if other is None or other.excludes is None:
                    break
                self.subject.excluded = (*self.subject.excluded, other.excludes)
                self.failing = {}
                self.subject.record.failures.clear()
                broken = attempted(self._next)
        finally:
            self.subject.excluded = ()
        # What was found to have an explanation that is none has no words.
        pairs = zip(found, listed, strict=True)
        told = [replace(finding, right_with=finding.right_with and values) for finding, values in pairs]
        self.subject.record.further = [told[n] for n in _distinct(found)[1:]]
        raise first.with_finding(told[0]) if told else first

    def _next(self) -> Broken | None:
        """The next failure with the simplest call that is found; None if there is none.

        Hypothesis groups the failures of a call that fails only sometimes, which are raised.
        """
        try:
            self.attempt(False)
        except Broken as drawn:
            self._allow_more_time()
            # What fails in its first calls only is reported as it was drawn.
            return attempted(self._smallest, drawn) or self._shrunk() or drawn
        except Exception as raised:
            self._explain_each(raised)
            raise
        return None

    def _shrunk(self) -> Broken | None:
        """The failure with the smallest call of those that Hypothesis finds."""
        self._allow_more_time()
        try:
            self.attempt(True)
        except Broken as broken:
            return broken
        except Exception as raised:
            self._explain_each(raised)
            raise
        return None

    def _explain_each(self, raised: Exception) -> None:
        """Say what explains the failures that an exception groups."""
        noticed(raised)
        self._allow_more_time()
        for each in getattr(raised, "exceptions", ()):
            if isinstance(each, Broken):
                each.finding = explained(self.subject, each)

    def _allow_more_time(self) -> None:
        """Let examples begin that say why the test failed, also where its time is up."""
        self.subject.record.until = max(self.subject.record.until, time.monotonic() + self.subject.record.allowed)

    def _smallest(self, drawn: Broken) -> Broken | None:
        """The failure of the same kind with the simplest call that shows it; None if the call alone does not.

        It is sought from a call with which another test failed, if this one does, too, or else from the drawn one.
        """
        finding, call = drawn.finding, parse(drawn.finding.call)
        before = (each for each in map(parse, self.met) if self._may_draw(call, each))
        known = next((each for each in before if self._fails_alike(finding, each)), None)
        examples = 1 if known else next((n for n in (1, REPEATS) if self._fails_alike(finding, call, n)), 0)
        if not examples:
            return None
        simplest = self._simplest(finding, known or call, examples)
        self._allow_more_time()
        return self.bench.failure(self.test, simplest, examples) or drawn

    def _may_draw(self, drawn: Call, other: Call) -> bool:
        """Whether a test that has drawn one call may draw another one, and that may show the same fault."""
        masks = zip(drawn.mask, other.mask, strict=False)
        given = [[a for a in call.args if not isinstance(a, Tensor)] for call in (drawn, other)]
        fits = other.dtype in self.subject.dtypes and other.smooth >= drawn.smooth
        return fits and repr(given[0]) == repr(given[1]) and all(theirs or not mine for mine, theirs in masks)

    def _simplest(self, finding: Finding, call: Call, examples: int) -> Call:
        """The simplest call that is found to fail as this one does."""
        special = self.subject.variant not in ("", LONG)
        left = max(_LEAST, round(_SIMPLER * self.share))
        simplest = False
        while not simplest:
            simplest = True
            for other in simpler(self.function, call, self.subject.dtypes, special=special):
                if not left:
                    return call
                left -= 1
                if self._fails_alike(finding, other, examples):
                    call, simplest = other, False
                    break
        return call

    def _fails_alike(self, finding: Finding, call: Call, examples: int = 1) -> bool:
        """Whether a call that is not excluded fails in the same way."""
        if any(has(call) for has in self.subject.excluded):
            return False
        alike = self.bench.outcome(self.test, call, examples).is_like(finding)
        if alike:
            self.failing[repr(call)] = call
        return alike

    def _right_with(self, finding: Finding, said: Collection[str]) -> Explanation | None:
        """What explains a failure: what explained that of another test with this call, which followed from the same."""
        if finding.follows in _BY_CHANCE:
            return None
        before = self.met.get(finding.call)
        others = {each.explanation.words for each in self.met.values() if each.explanation}
        search = RightWith(self.bench, self.test, finding, {*said, *others}, _BUDGET * self.share)
        explanation = before.explanation if before else None
        same = before is not None and bool(finding.follows)
        if same and (explanation is None or search.holds_with(explanation.words)):
            return explanation
        alike = [parse(f.call) for f in self.subject.record.failures.values() if kind_of(f) == kind_of(finding)]
        alike += [each for each in (before.alike if before else ()) if self._fails_alike(finding, each)]
        found = search.found([*alike, *self.failing.values()])
        self.met.setdefault(finding.call, Met(found, list(self.failing.values())))
        return found

    def _unless_met(self, finding: Finding, broken: Broken) -> Finding:
        """The finding without the value that it is right with, if a failure of the same kind has that value."""
        met = finding.right_with in values_in_words(self.function, parse(broken.finding.call))
        return replace(finding, right_with="") if met and kind_of(finding) == kind_of(broken.finding) else finding


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
    # What it follows from says more than what is seen here.
    hint = "" if follows and PROPERTIES[follows].explains else finding.hint
    if failure.raised is not None:
        return replace(finding, follows=follows)
    if finding.component.get("aspect") == "equality":
        # What does not fit is wrong in itself, unless something else is.
        other = follows not in ("", "VJP-REF")
        return replace(finding, follows=follows, hint=hint) if other else finding
    words = attempted(likely, failure, follows or failure.about.id) or ""
    if follows and finding.kind is Kind.DETACHED and not isinstance(finding.compared[0], str):
        # What is missing in a second derivative of a wrong first one is one of its wrong numbers.
        finding = replace(finding, kind=Kind.WRONG, got=str(finding.compared[0]))
    throughout = not follows and attempted(everywhere, failure) is True
    return replace(finding, follows=follows, hint=hint, likely=words, everywhere=throughout)


def _distinct(found: list[Finding]) -> list[int]:
    """The numbers of the first failures of each kind and explanation."""
    kinds = [(kind_of(finding), finding.right_with) for finding in found]
    return [n for n in range(len(found)) if kinds[n] not in kinds[:n]]
