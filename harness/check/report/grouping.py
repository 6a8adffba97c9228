"""Faults in groups: the failures that have one cause are one fault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from autograd_conformance.harness.check.report.verdicts import (
    DIFFERS,
    LOST,
    NOT_FINITE,
    ORDER,
    RAISED,
    RAISES,
    Verdict,
    verdict,
)
from autograd_conformance.harness.outcomes import Kind
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.harness.reports.reading import constant, lost_in
from autograd_conformance.reference.properties import PROPERTIES
from autograd_conformance.strategies.calls import parse
from autograd_conformance.strategies.lengths import LONG, is_short
from autograd_conformance.strategies.magnitudes import SMALL

Judged = tuple[ndjson.Line, Verdict]


@dataclass(frozen=True)
class Group:
    """The failure that names a cause best, its verdict, and the others that have this cause."""

    line: ndjson.Line
    verdict: Verdict
    others: list[ndjson.Line]

    @property
    def is_whole(self) -> bool:
        """Whether the printed call is all that the test did, so that its script makes the same."""
        choices = self.line["failure"].get("chosen") or self.line["failure"].get("hint")
        about = PROPERTIES[self.line["property"]]
        return about.plain and not (self.verdict.follows or choices or "variant" in self.line)

    def other_exceptions(self) -> list[ndjson.Line]:
        """The first of the others with each exception that is another one than the head's."""
        failure = self.line["failure"]
        if failure.get("kind") != Kind.RAISED:
            return []
        raised = [line for line in self.others if line["failure"].get("kind") == Kind.RAISED]
        first = {error_of(line["failure"]): line for line in reversed(raised)}
        return [line for error, line in first.items() if error != error_of(failure)]

    def more_of_test(self) -> list[ndjson.Line]:
        """The further failures of the head's test that are like the first one."""
        mine = own_test(self.line)
        return [line for line in self.others if own_test(line) == mine and "number" in line]

    def other_tests(self) -> dict[str, list[str]]:
        """The other tests by their word, if that is not the head's: so each was called when it was found."""
        words, tests = dict[str, str](), dict[str, list[str]]()
        for other in self.others:
            found = verdict(other)
            assert found is not None
            words.setdefault(ndjson.test_of(other), found.word)
        words.pop(ndjson.test_of(self.line), None)
        for test, word in sorted(words.items(), key=lambda item: item[1] != self.verdict.word):
            tests.setdefault("" if word == self.verdict.word else f" ({word})", []).append(test)
        return tests


# The cause of what is NaN in ordinary calls.
_NAN = "NaN"


class Finds:
    """Faults as they are named as soon as they are found, a line for each cause; the verdict says the rest.

    Nobody has declared the ``drafted`` Functions.
    """

    def __init__(self, drafted: Collection[str] = ()) -> None:
        self._drafted = drafted
        self._causes: set[Any] = set()
        self._follows: dict[str, dict[str, str]] = {}

    def rows(self, line: ndjson.Line) -> list[str]:
        """The word and the property of a fault; empty for other results. What one cause explains is shown once."""
        v = verdict(line)
        if v is None or not v.fault:
            return []
        name = ndjson.test_of(line)
        follows = self._follows.setdefault(line["function"], {})
        v = _folded(line, v, follows)
        if v.word not in RAISED:
            follows |= dict.fromkeys(_names(line), v.follows or (_NAN if _is_nan(line) else ""))
        # The verdict names what a fault follows from, and so does this. An exception follows from no property.
        by_itself = v.word == RAISES and not v.follows
        head = line["failure"]["raised"]["type"] if by_itself else v.follows or name
        # Two exceptions of one type have two causes.
        named = [] if by_itself else [head]
        causes = {(line["function"], each) for each in (_cause(line, v, follows), *named)}
        known = not causes.isdisjoint(self._causes)
        self._causes |= causes
        word = DIFFERS if line["function"] in self._drafted and line["failure"].get("everywhere") else v.word
        return [] if known else [f"found: {line['function']}: {word.upper()}: {met_in(head, name)}"]


def met_in(head: str, test: str) -> str:
    """The property or exception that a fault is one of, and the test that met it, if its name is another one."""
    return head if head == test else f"{head} (met in {test})"


def headlines(faults: Sequence[Judged]) -> list[ndjson.Line]:
    """The line of each group of faults that names the cause best."""
    return [group.line for group in grouped(faults)]


def with_further(faults: Sequence[Judged]) -> Iterator[Judged]:
    """The faults, and after each one the further failures of its test; "alike" if the verdict is the same."""
    for line, v in faults:
        yield line, v
        for number, failure in enumerate(line["failure"].get("further", ()), 2):
            other = {**line, "failure": failure, "number": number}
            judgement = verdict(other)
            assert judgement is not None
            yield {**other, "alike": judgement == v and v.word not in RAISED}, judgement


def grouped(faults: Sequence[Judged]) -> list[Group]:
    """The faults in groups: of one exception, or of one fault and those that follow from it."""
    # What is wrong at ordinary values is wrong at small ones, too; an exception says nothing about numbers.
    tests = {name for line, v in faults if v.word not in RAISED for name in _names(line)}
    ranked = sorted(((line, _folded(line, v, tests)) for line, v in faults), key=_rank)
    # Tests of one property may meet the same number.
    met: dict[Any, Any] = {}
    for line, _ in ranked:
        met.setdefault(_number(line), own_test(line))
    # Exceptions have causes of their own, unless they follow from a failure that is none.
    causes: dict[Any, str] = {}
    raised: dict[Any, Any] = {}
    for line, v in ranked:
        if v.word not in RAISED:
            causes.setdefault(own_test(line), v.follows or (_NAN if _is_nan(line) else ""))
        elif not _by_engine(line):
            raised.setdefault(own_test(line), _cause(line, v, causes))
    found: dict[Any, list[Judged]] = {}
    for line, v in ranked:
        cause = _cause(line, v, causes)
        # The engine has no line of the user's: what it raises belongs to what a line raises in the test that it
        # follows from.
        by_engine = v.word in RAISED and _by_engine(line)
        if v.word not in RAISED and cause == own_test(line) and "variant" in line:
            cause = _root(met[_number(line)], causes)
        found.setdefault(raised.get(v.follows, cause) if by_engine else cause, []).append((line, v))
    return [_headed(group) for group in found.values()]


def adds_nothing(line: ndjson.Line, tests: Collection[str]) -> bool:
    """Whether a test says nothing beside the faults that these ``tests`` found.

    A test at small values does not beside the plain test, and one in long tensors does not if that one failed in these.
    """
    shown_by = {SMALL: line["property"], LONG: _IN_LONG.format(line["property"])}
    return shown_by.get(line.get("variant", "")) in tests


# The other name of a plain test whose failing call has long tensors.
_IN_LONG = "{} in long tensors"


def _names(line: ndjson.Line) -> tuple[str, ...]:
    """The names of a failed test, of which a plain one has two if its call has long tensors."""
    test, call = ndjson.test_of(line), line["failure"].get("call")
    is_long = call is not None and "variant" not in line and not is_short(parse(call))
    return test, *[_IN_LONG.format(test)] * is_long


def _folded(line: ndjson.Line, v: Verdict, tests: Collection[str]) -> Verdict:
    """The verdict beside the faults that these ``tests`` found."""
    return replace(v, follows=line["property"]) if adds_nothing(line, tests) else v


def _number(line: ndjson.Line) -> tuple[Any, ...]:
    """The property, the call and the number of a failure."""
    failure = line["failure"]
    return line["property"], failure.get("call", own_test(line)), failure.get("what"), failure.get("got")


def _by_engine(line: ndjson.Line) -> bool:
    return bool(line["failure"]["raised"].get("by") == "framework")


def _rank(judgement: Judged) -> tuple[bool, bool, int, str]:
    """The place of a fault: what explains most comes first, but an exception says nothing about what it was met in.

    Edges come last.
    """
    line, v = judgement
    about = PROPERTIES[line["property"]]
    return v.edge, v.word in RAISED and about.outside, ORDER.index(about.id), line.get("variant", "")


def _cause(line: ndjson.Line, v: Verdict, causes: Mapping[Any, str]) -> Any:
    """What the faults of one group have in common: an exception, a place, or the property that they follow from."""
    if v.word in LOST:
        return v.word, lost_in(line["failure"])
    if v.word in RAISED and v.follows not in causes:
        return error_of(line["failure"])
    own = line["property"] if v.word == NOT_FINITE else own_test(line)
    # What is found in the search for NaN alone is a fault of its own.
    nan = _is_nan(line) and (not _seeks_nan(own) or _NAN in (c for test, c in causes.items() if not _seeks_nan(test)))
    return _root(v.follows or (_NAN if nan else own), causes)


def _seeks_nan(test: Any) -> bool:
    """Whether a test is one of the property about gradients that are not finite."""
    return isinstance(test, str) and PROPERTIES[test.split("/")[0]].verdict == NOT_FINITE


def _is_nan(line: ndjson.Line) -> bool:
    """Whether a number of an ordinary call is NaN, which shows in every property in the same way."""
    return bool(line["failure"].get("kind") == Kind.NAN) and not PROPERTIES[line["property"]].puts_nan


def own_test(line: ndjson.Line) -> Any:
    """The test of a failure; a further failure of it that is not like the first one is another one."""
    test = ndjson.test_of(line)
    return (test, line["number"]) if "number" in line and not line["alike"] else test


# The variants of tests that can be the cause where the plain test holds: the others look at special values or averages.
_CAUSES = ("owned", "seeds", "leaves", "instances", "flags", "severed", "small", "long")


def _root(name: Any, causes: Mapping[Any, str]) -> Any:
    """The failure from which this one follows in the end, given from which each one follows, "" for none."""
    if name not in causes:
        # A property of which only another test failed, one that looks at more than values.
        name = next((test for test in (f"{name}/{each}" for each in _CAUSES) if test in causes), name)
    seen = {name}
    while causes.get(name) and causes[name] not in seen:
        name = causes[name]
        seen.add(name)
    return name


def error_of(failure: Mapping[str, Any]) -> tuple[str, ...]:
    """What the exceptions of one cause have in common."""
    raised = failure["raised"]
    # One line of the user's code has one cause. The engine raises all its errors in one line.
    message = "" if raised.get("by") == "function" else constant(failure["got"])
    return raised["type"], raised["at"], message


def _headed(group: list[Judged]) -> Group:
    """A group as its head and the others; the head is the one that the most of the others follow from, if any."""
    followed = Counter(v.follows for _, v in group if v.follows)
    independent = {ndjson.test_of(line) for line, v in group if not v.follows}
    cause = max(followed, key=lambda name: (name in independent, followed[name]), default="")
    if not cause and all(_is_nan(line) for line, _ in group):
        # It shows in many properties, but one is about it.
        cause = next((line["property"] for line, _ in group if _seeks_nan(line["property"])), "")
    (line, v), *others = sorted(group, key=lambda pair: (pair[0]["property"] != cause, bool(pair[1].follows)))
    return Group(line, v, [other for other, _ in others])
