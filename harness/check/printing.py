"""What `check` prints about a user's Function."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from autograd_conformance.harness.check.facts import Facts
from autograd_conformance.harness.check.verdicts import (
    LOST,
    NOT_FINITE,
    ORDER,
    OUTSIDE,
    RAISES,
    REFUSED,
    UNVERIFIED,
    VERIFYING,
    Verdict,
    judged,
    verdict,
)
from autograd_conformance.harness.outcomes import in_words
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.reference.properties import PROPERTIES

_WIDEST = 110

# Lines of a traceback that are shown.
_FRAMES = 6

# The fields of a failure that are shown, with their titles.
_DETAILS = {"bound": "bound", "chosen": "with", "hint": "hint", "right_with": "right with", "call": "call"}

# What differs between two messages of one error.
_VARYING = r"'[^']*'|\d+"

Judged = tuple[ndjson.Line, Verdict]


def rows(title: str, facts: Facts, lines: Sequence[ndjson.Line], scripts: Path, unfinished: str = "") -> Iterator[str]:
    """The facts about a Function, its faults, and the checks without a verdict, as rows of text.

    Reproduction scripts are written to the folder ``scripts``. ``unfinished`` says why there are no more lines.
    """
    yield title
    for fact in facts.lines():
        yield from _wrapped(fact, 2)
    if unfinished:
        yield from _wrapped(unfinished, 2)
    found = judged(lines, compared=facts.compared)
    faults = [(line, v) for line, v in found if v is not None and v.fault]
    notes = [(line, v) for line, v in found if v is not None and not v.fault]
    held = sum(line["outcome"] in ("pass", "emulated") and v is None for line, v in found)
    wrong = len(faults) + len(facts.coarse)
    counts = f"{held} {'check holds' if held == 1 else 'checks hold'}, {wrong} {'does' if wrong == 1 else 'do'} not" + (
        f", {len(notes)} undecided" if notes else ""
    )
    unverified = [line["property"] for line, v in notes if v.word == UNVERIFIED]
    missing = " and ".join(what for name, what in VERIFYING.items() if name in unverified)
    yield f"  {f'{missing} not verified; ' if missing else ''}{counts}"
    few = ", ".join(f"{ndjson.test_of(line)} ({line['slow']})" for line, v in found if v is None and "slow" in line)
    if few:
        yield from _wrapped(f"too slow for all examples, held in those before --time-limit: {few}", 2)
    notes.sort(key=lambda note: (note[1].word != UNVERIFIED, ORDER.index(note[0]["property"])))
    for line, v, others in _grouped(list(_every(faults))):
        yield ""
        yield from _fault(line, v, scripts)
        if others:
            yield from _wrapped(f"same fault: {', '.join(dict.fromkeys(map(ndjson.test_of, others)))}", 4)
    for word, sentences in (("MISFITS", facts.coarse), ("STALE", facts.stale)):
        for sentence in sentences:
            yield ""
            yield from _wrapped(f"{word}: {sentence}", 2)
    for line, v in notes:
        yield ""
        yield from _note(line, v)
    yield ""


class Finds:
    """Faults in the words in which they are shown as soon as they are found, before the verdict groups them."""

    def __init__(self) -> None:
        self._causes: set[Any] = set()
        self._follows: dict[str, dict[str, str]] = {}

    def rows(self, line: ndjson.Line) -> list[str]:
        """What a result says; empty if it is no fault. What one cause explains is shown once."""
        v = verdict(line)
        if v is None or not v.fault:
            return []
        name, failure = ndjson.test_of(line), line.get("failure", {})
        follows = self._follows.setdefault(line["function"], {})
        if v.word != RAISES:
            follows[name] = v.follows
        cause = (line["function"], _cause(line, v, follows))
        if cause in self._causes:
            return []
        self._causes.add(cause)
        sentence = PROPERTIES[line["property"]].sentence
        result = in_words(failure) if "what" in failure else failure.get("message", "")
        shown = [*_wrapped(f"found: {line['function']}: {v.word.upper()}: {name}: {sentence}", 0), *_wrapped(result, 4)]
        return [*shown, *(_wrapped(f"call: {failure['call']}", 4) if failure.get("call") else [])]


def headlines(faults: Sequence[Judged]) -> list[ndjson.Line]:
    """The line of each group of faults that names the cause best."""
    return [line for line, _, _ in _grouped(faults)]


def _every(faults: Sequence[Judged]) -> Iterator[Judged]:
    """The faults, and after each one the further failures of its test."""
    for line, v in faults:
        yield line, v
        for number, failure in enumerate(line["failure"].get("further", ()), 2):
            other = {**line, "failure": failure, "number": number}
            judgement = verdict(other)
            assert judgement is not None
            yield other, judgement


def _grouped(faults: Sequence[Judged]) -> list[tuple[ndjson.Line, Verdict, list[ndjson.Line]]]:
    """The faults in groups: of one exception, or of one fault and those that follow from it."""
    ranked = sorted(faults, key=_rank)
    # Exceptions have causes of their own, unless they follow from a failure that is none.
    causes: dict[Any, str] = {}
    for line, v in ranked:
        if v.word != RAISES:
            causes.setdefault(_own(line), v.follows)
    found: dict[Any, list[Judged]] = {}
    for line, v in ranked:
        found.setdefault(_cause(line, v, causes), []).append((line, v))
    return [_headed(group) for group in found.values()]


def _rank(judgement: Judged) -> tuple[bool, int, str]:
    """The place of a fault: what explains most comes first, but an exception says nothing about what it was met in."""
    line, v = judgement
    return v.word == RAISES and line["property"] in OUTSIDE, ORDER.index(line["property"]), line.get("variant", "")


def _cause(line: ndjson.Line, v: Verdict, causes: Mapping[Any, str]) -> Any:
    """What the faults of one group have in common: an exception, a place, or the property that they follow from."""
    if v.word in LOST:
        return v.word, _innermost(line["failure"].get("traceback", []))
    if v.word == RAISES and v.follows not in causes:
        return _error(line["failure"])
    own = line["property"] if v.word == NOT_FINITE else _own(line)
    return _root(v.follows or own, causes)


def _own(line: ndjson.Line) -> Any:
    """The test of a failure; a further failure of it is another one."""
    test = ndjson.test_of(line)
    return (test, line["number"]) if "number" in line else test


def _root(name: Any, causes: Mapping[Any, str]) -> Any:
    """The failure from which this one follows in the end, given from which each one follows, "" for none."""
    seen = {name}
    while causes.get(name) and causes[name] not in seen:
        name = causes[name]
        seen.add(name)
    return name


def _innermost(stack: Sequence[str]) -> str:
    """The function in which a process was lost; the stack has those of other threads first."""
    current = next((n for n, row in enumerate(stack) if row.startswith("Current thread")), -1)
    return re.sub(_VARYING, "", next(iter(stack[current + 1 :]), ""))


def _error(failure: Mapping[str, Any]) -> tuple[str, ...]:
    """What the exceptions of one cause have in common."""
    raised = failure["raised"]
    # One line of the user's code has one cause. The engine raises all its errors in one line.
    message = "" if raised.get("by") == "function" else re.sub(_VARYING, "", failure["got"])
    return raised["type"], raised["at"], message


def _headed(group: list[Judged]) -> tuple[ndjson.Line, Verdict, list[ndjson.Line]]:
    """A group as its head and the others; the head is the one that the most of the others follow from, if any."""
    followed = Counter(v.follows for _, v in group if v.follows)
    independent = {ndjson.test_of(line) for line, v in group if not v.follows}
    cause = max(followed, key=lambda name: (name in independent, followed[name]), default="")
    (line, v), *others = sorted(group, key=lambda pair: pair[0]["property"] != cause)
    return line, v, [other for other, _ in others]


def _fault(line: ndjson.Line, v: Verdict, scripts: Path) -> Iterator[str]:
    failure = line["failure"]
    yield from _wrapped(f"{v.word.upper()}: {ndjson.test_of(line)}: {PROPERTIES[line['property']].sentence}", 2)
    if "what" in failure:
        yield from _wrapped(in_words(failure), 4)
    else:
        lost, frames = v.word in LOST, failure.get("traceback", [])
        yield from _wrapped(failure["message"] if lost else f"{failure['type']}: {failure['message']}", 4)
        # The stack of a lost process has the innermost frame first.
        yield from (f"      {row}" for row in (frames[:_FRAMES] if lost else frames[-_FRAMES:]))
    for key, title in _DETAILS.items():
        if failure.get(key):
            yield from _wrapped(f"{title}: {failure[key]}", 4)
    if v.advice:
        yield from _wrapped(f"advice: {v.advice}", 4)
    if v.guess:
        yield from _wrapped(f"likely cause (a guess): {v.guess}", 4)
    if "script" in failure:
        which = [str(line["number"])] if "number" in line else []
        name = "-".join((line["function"], ndjson.test_of(line), *which))
        path = scripts / (re.sub(r"[^\w.-]+", "-", name) + ".py")
        try:
            scripts.mkdir(parents=True, exist_ok=True)
            path.write_text(failure["script"], encoding="utf-8")
        except OSError as problem:
            yield f"    no script: {path} cannot be written: {problem.strerror}"
        else:
            yield f"    script: {path}"
    elif failure.get("no_script"):
        yield from _wrapped(f"no script: {failure['no_script']}", 4)


def _note(line: ndjson.Line, v: Verdict) -> Iterator[str]:
    reason = line.get("reason", "")
    if v.word == REFUSED:
        reason = f"in {line['excused']} of {line['examples']} examples: {line['excuse']}"
    blame = " (not a fault)" if v.word == REFUSED else ""
    word = f"{VERIFYING[line['property']]} {v.word}".upper() if v.word == UNVERIFIED else v.word
    yield from _wrapped(f"{word}{blame}: {ndjson.test_of(line)}: {reason}", 2)
    if v.advice:
        yield from _wrapped(v.advice, 4)


def _wrapped(text: str, indent: int) -> list[str]:
    first, later = " " * indent, " " * (indent + 2)
    return textwrap.wrap(
        text, _width(), initial_indent=first, subsequent_indent=later, break_long_words=False, break_on_hyphens=False
    ) or [first]


def _width() -> int:
    """The columns of a line: those of the terminal, unless it is wide."""
    return min(_WIDEST, shutil.get_terminal_size().columns) if sys.stdout.isatty() else _WIDEST
