"""What `check` prints about a user's Function."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from autograd_conformance.harness.check.declaration.facts import Facts
from autograd_conformance.harness.check.refusals import declined
from autograd_conformance.harness.check.refusals.long_tensors import LONG, is_short
from autograd_conformance.harness.check.report import facts_in_words, script_runner
from autograd_conformance.harness.check.report.verdicts import (
    DECLINED,
    LOST,
    NOT_FINITE,
    ORDER,
    RAISED,
    REFUSED,
    UNVERIFIED,
    Verdict,
    is_flaky,
    judged,
    verdict,
)
from autograd_conformance.harness.outcomes import Kind, in_words
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.harness.reports.reading import constant, lost_in
from autograd_conformance.reference.properties import PROPERTIES
from autograd_conformance.strategies.calls import parse
from autograd_conformance.strategies.magnitudes import SMALL

_WIDEST = 110

# Lines of a traceback that are shown.
_FRAMES = 6

# The fields of a failure that are shown, with their titles.
_DETAILS = {
    "bound": "bound", "chosen": "with", "hint": "hint", "right_with": "right with", "call": "call", "values": "values",
}  # fmt: skip

# The words of a hint that speak of another block.
_ELSEWHERE = re.compile(r" as well\b| \([A-Z-]+\)|; fix that first")

# A fault that a process of its own does not show.
_ALONE = "a script that makes this call in a process of its own shows no fault"
_DOUBTFUL = "the number that was expected may come from earlier calls, too"
_EARLIER = (
    "the Function keeps something of earlier calls, for example a cache whose key lacks an argument, a class attribute "
    "or a global"
)

_AGAIN = "the same call gave something else when it was made again"

Judged = tuple[ndjson.Line, Verdict]


def rows(title: str, facts: Facts, lines: Sequence[ndjson.Line], scripts: Path, unfinished: str = "") -> Iterator[str]:
    """The facts about a Function, its faults, and the checks without a verdict, as rows of text.

    Standalone scripts are written to the folder ``scripts``, except those that show no fault when they are run.
    ``unfinished`` says why there are no more lines.
    """
    yield title
    for fact in facts_in_words.in_words(facts):
        yield from _wrapped(fact, 2)
    if unfinished:
        yield from _wrapped(unfinished, 2)
    found = judged(lines, compared=facts.compared, asked=facts.asked)
    faults = [(line, v) for line, v in found if v is not None and v.fault]
    notes = [(line, v) for line, v in found if v is not None and not v.fault]
    plain = {(line["property"], v.word) for line, v in notes if "variant" not in line}
    wrong_ones = {ndjson.test_of(line) for line, _ in faults}
    # What every test of a property says is said once, and what small values add to a fault is not said.
    notes = [
        (line, v)
        for line, v in notes
        if "variant" not in line or not ((line["property"], v.word) in plain or adds_nothing(line, wrong_ones))
    ]
    held = sum(line["outcome"] in ("pass", "emulated") and v is None for line, v in found)
    wrong = len(faults)
    counts = f"{held} {'check holds' if held == 1 else 'checks hold'}, {wrong} {'does' if wrong == 1 else 'do'} not" + (
        f", {len(notes)} undecided" if notes else ""
    )
    unverified = [line["property"] for line, v in notes if v.word == UNVERIFIED]
    missing = " and ".join(each.verifies for each in PROPERTIES.values() if each.id in unverified)
    refused = [*declined.lines(facts.declined)]
    refused += declined.lines_of_results([line for line, _ in notes if "declined" in line], facts.declined)
    declined_too = refused or any(v.word == DECLINED for _, v in notes)
    before = f"{missing} not verified; " if missing else "declared calls refused; " if declined_too else ""
    yield f"  {before}{counts}"
    slow = [line for line, v in found if v is None and "slow" in line]
    for line in slow:
        made = f"{line['slow']} examples held before --time-limit; it was too short for all"
        yield from _wrapped(f"{ndjson.test_of(line)}: {made}", 2)
    notes.sort(key=lambda note: (note[1].word != UNVERIFIED, ORDER.index(note[0]["property"])))
    groups = _grouped(list(_every(faults)))
    texts = {_path(line, scripts): line["failure"].get("script", "") for line, _, _ in groups}
    missing_scripts = script_runner.written({path: text for path, text in texts.items() if text})
    right = script_runner.right([path for path, why in missing_scripts.items() if not why])
    # Where one fault comes from earlier calls, so may what was expected of another call.
    history = any(_path(line, scripts) in right and _is_whole(line, v) for line, v, _ in groups)
    for line, v, others in groups:
        yield ""
        path = _path(line, scripts)
        alone, doubtful = path in right, history and v.word not in RAISED
        if alone or doubtful:
            path.unlink(missing_ok=True)
        shown = {**line, "failure": {**line["failure"], "right_with": ""}} if alone or doubtful else line
        yield from _fault(shown, replace(v, guess=_EARLIER) if doubtful else v)
        yield from _script(line, path, _ALONE if alone else _DOUBTFUL if doubtful else missing_scripts.get(path, ""))
        for other in _other_exceptions(line, others):
            yield from _wrapped(f"also raised: {other['failure']['got']} ({ndjson.test_of(other)})", 4)
        for other in others:
            if _own(other) == _own(line) and "number" in other:
                yield from _also(other["failure"])
        for word, tests in _alike(line, v, others).items():
            yield from _wrapped(f"same fault{word}: {', '.join(tests)}", 4)
    for sentence in facts.stale:
        yield ""
        yield from _wrapped(f"STALE: {sentence}", 2)
    for line, v in notes:
        if v.word != DECLINED or "declined" not in line:
            yield ""
            yield from _note(line, v, bool(faults))
    for indent, text in refused:
        if indent == 2:
            yield ""
        yield from _wrapped(text, indent)
    yield ""


# The cause of what is NaN in ordinary calls.
_NAN = "NaN"


def _alike(head: ndjson.Line, v: Verdict, others: Sequence[ndjson.Line]) -> dict[str, list[str]]:
    """The other tests of a group by their word, if that is not the head's: so each was called when it was found."""
    words, tests = dict[str, str](), dict[str, list[str]]()
    for other in others:
        found = verdict(other)
        assert found is not None
        words.setdefault(ndjson.test_of(other), found.word)
    words.pop(ndjson.test_of(head), None)
    for test, word in sorted(words.items(), key=lambda item: item[1] != v.word):
        tests.setdefault("" if word == v.word else f" ({word})", []).append(test)
    return tests


class Finds:
    """Faults as they are named as soon as they are found, a line for each cause; the verdict says the rest."""

    def __init__(self) -> None:
        self._causes: set[Any] = set()
        self._follows: dict[str, dict[str, str]] = {}

    def rows(self, line: ndjson.Line) -> list[str]:
        """The word and the test of a fault; empty for other results. What one cause explains is shown once."""
        v = verdict(line)
        if v is None or not v.fault:
            return []
        name = ndjson.test_of(line)
        follows = self._follows.setdefault(line["function"], {})
        v = _folded(line, v, follows)
        if v.word not in RAISED:
            follows |= dict.fromkeys(_names(line), v.follows or (_NAN if _is_nan(line) else ""))
        cause = (line["function"], _cause(line, v, follows))
        if cause in self._causes:
            return []
        self._causes.add(cause)
        return [f"found: {line['function']}: {v.word.upper()}: {name}"]


def _is_whole(line: ndjson.Line, v: Verdict) -> bool:
    """Whether the printed call is all that a test did, so that its script makes the same."""
    choices = line["failure"].get("chosen") or line["failure"].get("hint")
    return PROPERTIES[line["property"]].plain and not (v.follows or choices or "variant" in line)


def headlines(faults: Sequence[Judged]) -> list[ndjson.Line]:
    """The line of each group of faults that names the cause best."""
    return [line for line, _, _ in _grouped(faults)]


def _every(faults: Sequence[Judged]) -> Iterator[Judged]:
    """The faults, and after each one the further failures of its test; "alike" if the verdict is the same."""
    for line, v in faults:
        yield line, v
        for number, failure in enumerate(line["failure"].get("further", ()), 2):
            other = {**line, "failure": failure, "number": number}
            judgement = verdict(other)
            assert judgement is not None
            yield {**other, "alike": judgement == v and v.word not in RAISED}, judgement


def _grouped(faults: Sequence[Judged]) -> list[tuple[ndjson.Line, Verdict, list[ndjson.Line]]]:
    """The faults in groups: of one exception, or of one fault and those that follow from it."""
    # What is wrong at ordinary values is wrong at small ones, too; an exception says nothing about numbers.
    tests = {name for line, v in faults if v.word not in RAISED for name in _names(line)}
    ranked = sorted(((line, _folded(line, v, tests)) for line, v in faults), key=_rank)
    # Tests of one property may meet the same number.
    met: dict[Any, Any] = {}
    for line, _ in ranked:
        met.setdefault(_number(line), _own(line))
    # Exceptions have causes of their own, unless they follow from a failure that is none.
    causes: dict[Any, str] = {}
    raised: dict[Any, Any] = {}
    for line, v in ranked:
        if v.word not in RAISED:
            causes.setdefault(_own(line), v.follows or (_NAN if _is_nan(line) else ""))
        elif not _by_engine(line):
            raised.setdefault(_own(line), _cause(line, v, causes))
    found: dict[Any, list[Judged]] = {}
    for line, v in ranked:
        cause = _cause(line, v, causes)
        # The engine has no line of the user's: what it raises belongs to what a line raises in the test that it
        # follows from.
        by_engine = v.word in RAISED and _by_engine(line)
        if v.word not in RAISED and cause == _own(line) and "variant" in line:
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
    return line["property"], failure.get("call", _own(line)), failure.get("what"), failure.get("got")


def _by_engine(line: ndjson.Line) -> bool:
    return bool(line["failure"]["raised"].get("by") == "framework")


def _other_exceptions(head: ndjson.Line, others: Sequence[ndjson.Line]) -> list[ndjson.Line]:
    """The first of the others with each exception that is another one than the head's."""
    raised = [line for line in others if line["failure"].get("kind") == Kind.RAISED]
    first = {_error(line["failure"]): line for line in reversed(raised)}
    mine = _error(head["failure"]) if head["failure"].get("kind") == Kind.RAISED else None
    return [line for error, line in first.items() if mine is not None and error != mine]


def _rank(judgement: Judged) -> tuple[bool, int, str]:
    """The place of a fault: what explains most comes first, but an exception says nothing about what it was met in."""
    line, v = judgement
    about = PROPERTIES[line["property"]]
    return v.word in RAISED and about.outside, ORDER.index(about.id), line.get("variant", "")


def _cause(line: ndjson.Line, v: Verdict, causes: Mapping[Any, str]) -> Any:
    """What the faults of one group have in common: an exception, a place, or the property that they follow from."""
    if v.word in LOST:
        return v.word, lost_in(line["failure"])
    if v.word in RAISED and v.follows not in causes:
        return _error(line["failure"])
    own = line["property"] if v.word == NOT_FINITE else _own(line)
    # What is found in the search for NaN alone is a fault of its own.
    nan = _is_nan(line) and (not _seeks_nan(own) or _NAN in (c for test, c in causes.items() if not _seeks_nan(test)))
    return _root(v.follows or (_NAN if nan else own), causes)


def _seeks_nan(test: Any) -> bool:
    """Whether a test is one of the property about gradients that are not finite."""
    return isinstance(test, str) and PROPERTIES[test.split("/")[0]].verdict == NOT_FINITE


def _is_nan(line: ndjson.Line) -> bool:
    """Whether a number of an ordinary call is NaN, which shows in every property in the same way."""
    return bool(line["failure"].get("kind") == Kind.NAN) and not PROPERTIES[line["property"]].puts_nan


def _own(line: ndjson.Line) -> Any:
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


def _error(failure: Mapping[str, Any]) -> tuple[str, ...]:
    """What the exceptions of one cause have in common."""
    raised = failure["raised"]
    # One line of the user's code has one cause. The engine raises all its errors in one line.
    message = "" if raised.get("by") == "function" else constant(failure["got"])
    return raised["type"], raised["at"], message


def _headed(group: list[Judged]) -> tuple[ndjson.Line, Verdict, list[ndjson.Line]]:
    """A group as its head and the others; the head is the one that the most of the others follow from, if any."""
    followed = Counter(v.follows for _, v in group if v.follows)
    independent = {ndjson.test_of(line) for line, v in group if not v.follows}
    cause = max(followed, key=lambda name: (name in independent, followed[name]), default="")
    if not cause and all(_is_nan(line) for line, _ in group):
        # It shows in many properties, but one is about it.
        cause = next((line["property"] for line, _ in group if _seeks_nan(line["property"])), "")
    (line, v), *others = sorted(group, key=lambda pair: (pair[0]["property"] != cause, bool(pair[1].follows)))
    return line, v, [other for other, _ in others]


def _headline(line: ndjson.Line, v: Verdict) -> Iterator[str]:
    """The verdict and the test, and below it what must hold."""
    test = ndjson.test_of(line)
    # It says nothing about the property whose test met it, but about the one that it follows from.
    name = v.follows or test
    met = f" (met in {test})" if name != test else ""
    yield from _wrapped(f"{v.word.upper()}: {name}{met}", 2)
    yield from _wrapped(f"must hold: {PROPERTIES[name.split('/')[0]].sentence}", 4)


def _fault(line: ndjson.Line, v: Verdict) -> Iterator[str]:
    failure = line["failure"]
    yield from _headline(line, v)
    if "what" in failure:
        yield from _wrapped(in_words(failure), 4)
    elif is_flaky(line):
        yield from _wrapped(_AGAIN, 4)
    else:
        lost, frames = v.word in LOST, failure.get("traceback", [])
        yield from _wrapped(failure["message"] if lost else f"{failure['type']}: {failure['message']}", 4)
        # The stack of a lost process has the innermost frame first.
        yield from (f"      {row}" for row in (frames[:_FRAMES] if lost else frames[-_FRAMES:]))
    explains = PROPERTIES[v.follows].explains if v.follows else ""
    for key, title in _DETAILS.items():
        if not _helps(key, failure, v):
            continue
        if failure.get(key):
            # The headline names what the fault follows from: there is nothing else to fix first.
            known = key == "hint" and failure[key] == explains
            text = _ELSEWHERE.sub("", failure[key]) if known else failure[key]
            yield from _wrapped(f"{title}: {text}", 4)
    if v.advice:
        yield from _wrapped(f"advice: {v.advice}", 4)
    if v.guess:
        yield from _wrapped(f"likely cause (a guess): {v.guess}", 4)


def _helps(key: str, failure: Mapping[str, Any], v: Verdict) -> bool:
    """Whether a detail says something: no bound is about NaN, and a hint is about what the fault follows from."""
    if key == "bound":
        return failure.get("kind") != Kind.NAN
    return key != "hint" or not v.follows or v.follows == failure.get("follows", v.follows)


def _also(failure: Mapping[str, Any]) -> Iterator[str]:
    """A further failure that is like the first one of its test."""
    yield from _wrapped(f"also: {in_words(failure)}", 4)
    for key in ("hint", "right_with", "call"):
        if failure.get(key):
            yield from _wrapped(f"{_DETAILS[key]}: {failure[key]}", 6)


def _path(line: ndjson.Line, scripts: Path) -> Path:
    """The file of the standalone script of a failure."""
    which = [str(line["number"])] if "number" in line else []
    name = "-".join((line["function"], ndjson.test_of(line), *which))
    return scripts / (re.sub(r"[^\w.-]+", "-", name) + ".py")


def _script(line: ndjson.Line, path: Path, missing: str) -> Iterator[str]:
    """Where the standalone script is, or why there is none."""
    missing = missing or line["failure"].get("no_script", "")
    if missing:
        yield from _wrapped(f"no script: {missing}", 4)
    elif "script" in line["failure"]:
        yield f"    script: {path}"


def _note(line: ndjson.Line, v: Verdict, beside: bool) -> Iterator[str]:
    """What could not be checked. A refusal ``beside`` faults may follow from these."""
    reason = line.get("reason", "")
    if v.word in (REFUSED, DECLINED):
        reason = f"in {line['excused']} of {line['examples']} examples: {line['excuse']}"
    blame = " (not a fault)" if v.word == REFUSED and not beside else ""
    word = f"{PROPERTIES[line['property']].verifies} {v.word}".upper() if v.word == UNVERIFIED else v.word
    word = declined.TITLE if v.word == DECLINED else word
    yield from _wrapped(f"{word}{blame}: {ndjson.test_of(line)}: {reason}", 2)
    if v.advice:
        first = "fix what is wrong first; if this stays, " if v.word == REFUSED and beside else ""
        yield from _wrapped(f"{first}{v.advice}", 4)


def _wrapped(text: str, indent: int) -> list[str]:
    first, later = " " * indent, " " * (indent + 2)
    return textwrap.wrap(
        text, _width(), initial_indent=first, subsequent_indent=later, break_long_words=False, break_on_hyphens=False
    ) or [first]


def _width() -> int:
    """The columns of a line: those of the terminal, unless it is wide."""
    return min(_WIDEST, shutil.get_terminal_size().columns) if sys.stdout.isatty() else _WIDEST
