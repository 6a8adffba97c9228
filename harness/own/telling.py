"""What is said of a user's Function on the terminal."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from autograd_conformance.harness import report
from autograd_conformance.harness.own.discovery import Facts
from autograd_conformance.harness.own.verdicts import ADVICE, ORDER, RAISES, REFUSED, Verdict, mostly_refused, verdict
from autograd_conformance.reference.properties import PROPERTIES

_WIDTH = 110

# Lines of a traceback that are shown.
_FRAMES = 6

Judged = tuple[report.Line, Verdict]


def told(title: str, facts: Facts, lines: Sequence[report.Line], scripts: Path) -> Iterator[str]:
    """A Function's facts, what is wrong with it, and what could not be found out.

    Scripts that show a fault are written to the folder.
    """
    yield title
    for fact in facts.lines():
        yield from _wrapped(fact, 2)
    judged = [(line, verdict(line)) for line in lines]
    faults = [(line, v) for line, v in judged if v is not None and v.fault]
    notes = [(line, v) for line, v in judged if v is not None and not v.fault]
    held = sum(line["outcome"] in ("pass", "emulated") and v is None for line, v in judged)
    yield f"  {held} checks hold, {len(faults)} do not" + (f", {len(notes)} could not be made" if notes else "")
    for line, v, others in _grouped(faults):
        yield ""
        yield from _fault(line, v, scripts)
        if others:
            yield from _wrapped(f"the same: {', '.join(map(report.test_of, others))}", 4)
    for stale in facts.stale:
        yield ""
        yield from _wrapped(f"STALE: {stale}", 2)
    for line, v in notes:
        yield ""
        yield from _note(line, v)
    yield ""


def _grouped(faults: Sequence[Judged]) -> list[tuple[report.Line, Verdict, list[report.Line]]]:
    """The faults, those put together that are one exception, or of which one follows from another."""
    found: dict[Any, list[Judged]] = {}
    for line, v in sorted(faults, key=lambda pair: ORDER.index(pair[0]["property"])):
        # Messages of one cause differ in shapes.
        raised = v.word == RAISES and re.sub(r"\d+", "", line["failure"]["got"])
        key = raised or v.follows or report.test_of(line)
        found.setdefault(key, []).append((line, v))
    return [_headed(group) for group in found.values()]


# What tells most of an exception, if it is not raised by nearly every call.
_TELLING = (
    "VJP-UNUSED", "VJP-MASK", "VJP-SUBSET", "VJP-COTANGENT-LAYOUT", "VJP-REPEAT", "ENV-SAVED-HOOKS", "ENV-THREADS",
)  # fmt: skip
_NEARLY_EVERY = 20


def _headed(group: list[Judged]) -> tuple[report.Line, Verdict, list[report.Line]]:
    """A group behind the one that tells most."""
    first = [group[0][1].follows]
    if group[0][1].word == RAISES:
        first = ["VJP-NONE"] if len(group) > _NEARLY_EVERY else [*_TELLING]
    place = {name: number for number, name in enumerate(first)}
    (line, v), *others = sorted(group, key=lambda pair: place.get(pair[0]["property"], len(place)))
    return line, v, [other for other, _ in others]


def _fault(line: report.Line, v: Verdict, scripts: Path) -> Iterator[str]:
    failure = line["failure"]
    yield from _wrapped(f"{v.word.upper()}: {report.test_of(line)}: {PROPERTIES[line['property']].sentence}", 2)
    if "what" in failure:
        yield from _wrapped(f"{failure['what']} is {failure['got']}, but should be {failure['expected']}", 4)
    else:
        yield from _wrapped(f"{failure['type']}: {failure['message']}", 4)
        yield from (f"      {row}" for row in failure.get("traceback", [])[-_FRAMES:])
    for key, title in (("bound", "bound"), ("chosen", "with"), ("hint", "hint"), ("call", "call")):
        if failure.get(key):
            yield from _wrapped(f"{title}: {failure[key]}", 4)
    # The hint of a second derivative says the same.
    if v.advice and not (v.advice == ADVICE["DBL-CORRECT"] and failure.get("hint")):
        yield from _wrapped(f"usually: {v.advice}", 4)
    if "script" in failure:
        path = scripts / re.sub(r"[^\w.-]+", "-", f"{line['function']}-{report.test_of(line)}.py")
        try:
            scripts.mkdir(parents=True, exist_ok=True)
            path.write_text(failure["script"], encoding="utf-8")
        except OSError as problem:
            yield f"    no script: {path} cannot be written: {problem.strerror}"
        else:
            yield f"    script: {path}"
    elif failure.get("no_script"):
        yield from _wrapped(f"no script: {failure['no_script']}", 4)


def _note(line: report.Line, v: Verdict) -> Iterator[str]:
    reason = line.get("reason", "").removeprefix(f"{report.REFUSED}: ")
    if mostly_refused(line):
        reason = f"in {line['excused']} of {line['examples']} examples: {line['excuse']}"
    blame = ", which is no fault" if v.word == REFUSED else ""
    yield from _wrapped(f"{v.word}{blame}: {report.test_of(line)}: {reason}", 2)
    if v.advice:
        yield from _wrapped(v.advice, 4)


def _wrapped(text: str, indent: int) -> list[str]:
    first, later = " " * indent, " " * (indent + 2)
    return textwrap.wrap(
        text, _WIDTH, initial_indent=first, subsequent_indent=later, break_long_words=False, break_on_hyphens=False
    ) or [first]
