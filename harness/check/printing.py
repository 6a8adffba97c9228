"""What `check` prints about a user's Function."""

from __future__ import annotations

import re
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

_WIDTH = 110

# Lines of a traceback that are shown.
_FRAMES = 6

# The fields of a failure that are shown, with their titles.
_DETAILS = {"bound": "bound", "chosen": "with", "hint": "hint", "right_with": "right with", "call": "call"}

# What differs between two messages of one error.
_VARYING = r"'[^']*'|\d+"

Judged = tuple[ndjson.Line, Verdict]


def rows(title: str, facts: Facts, lines: Sequence[ndjson.Line], scripts: Path) -> Iterator[str]:
    """The facts about a Function, its faults, and the checks without a verdict, as rows of text.

    Reproduction scripts are written to the folder ``scripts``.
    """
    yield title
    for fact in facts.lines():
        yield from _wrapped(fact, 2)
    found = judged(lines, compared=facts.compared)
    faults = [(line, v) for line, v in found if v is not None and v.fault]
    notes = [(line, v) for line, v in found if v is not None and not v.fault]
    held = sum(line["outcome"] in ("pass", "emulated") and v is None for line, v in found)
    counts = f"{held} checks hold, {len(faults) + len(facts.coarse)} do not" + (
        f", {len(notes)} undecided" if notes else ""
    )
    unverified = [line["property"] for line, v in notes if v.word == UNVERIFIED]
    missing = " and ".join(what for name, what in VERIFYING.items() if name in unverified)
    yield f"  {f'{missing} not verified; ' if missing else ''}{counts}"
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
    ranked = sorted(faults, key=lambda pair: (ORDER.index(pair[0]["property"]), pair[0].get("variant", "")))
    # Exceptions have causes of their own, unless they follow from a failure that is none.
    causes = {ndjson.test_of(line): v.follows for line, v in ranked if v.word != RAISES}
    found: dict[Any, list[Judged]] = {}
    for line, v in ranked:
        raised = v.word == RAISES and v.follows not in causes
        own = line["property"] if v.word == NOT_FINITE else ndjson.test_of(line)
        key = _error(line["failure"]) if raised else _root(v.follows or own, causes)
        found.setdefault(key, []).append((line, v))
    return [_headed(group) for group in found.values()]


def _root(name: str, causes: Mapping[str, str]) -> str:
    """The failure from which this one follows in the end, given from which each one follows, "" for none."""
    seen = {name}
    while causes.get(name) and causes[name] not in seen:
        name = causes[name]
        seen.add(name)
    return name


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
        text, _WIDTH, initial_indent=first, subsequent_indent=later, break_long_words=False, break_on_hyphens=False
    ) or [first]
