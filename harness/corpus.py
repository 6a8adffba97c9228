"""The corpus: what once broke a test id, as sorted text for review in a pull request, a line each."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from autograd_conformance.harness import report
from autograd_conformance.harness.outcomes import SHORTFALLS, Drawn, UsageProblem
from autograd_conformance.reference.clauses import CLAUSES
from autograd_conformance.reference.functions import EXHIBITS, FUNCTIONS
from autograd_conformance.reference.properties import PROPERTIES
from autograd_conformance.strategies.calls import Call, parse

DEFAULT_PATH = "autograd-conformance-corpus.txt"

_HEAD = ["# What once broke a test id. More of a report: autograd-conformance keep REPORT"]

_ID = re.compile(r"(?P<claim>[A-Z]+(?:-[A-Z]+)*-(?:[A-Z]+|[0-9]+))(?:/[a-z0-9_-]+)?\[(?P<where>\S+)\]")
_DRAWN = re.compile(r"seed=(\d+) examples=(\d+)(?: dtype=(\w+))?")

# Between what is read and what is only for the reader.
_REMARK = "  # "
_LONGEST_REMARK = 160


@dataclass(frozen=True)
class Counterexample:
    """What once broke a test id: a call, or how the examples were drawn among which something did, if that is known.

    ``remark`` tells the reader what had been drawn.
    """

    id: str
    call: Call | None = None
    drawn: Drawn | None = None
    remark: str = field(default="", compare=False)

    @property
    def function(self) -> str:
        """The Function that the id names, "" for a clause's."""
        return self.id.partition("[")[2].rpartition("-")[0]

    def __str__(self) -> str:
        return f"{self.id}  {self.call or self.drawn}" + (_REMARK + self.remark if self.remark else "")


class Kept(NamedTuple):
    """What a corpus then holds, and what of it is new.

    ``lost`` are the ids of failures of which nothing is known to keep, ``unread`` says why reports could not be read.
    """

    all: list[Counterexample]
    new: list[Counterexample]
    lost: list[str]
    unread: list[str]


def read(path: Path) -> tuple[Counterexample, ...]:
    """The counterexamples of a corpus or of a report. Raises UsageProblem for what is neither."""
    text = _text(path)
    if path.suffix == Path(report.DEFAULT_PATH).suffix or text.startswith("{"):
        return of_report(report.read(path), path)
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if _tells(line)]
    return tuple(dict.fromkeys(_parsed(line, f"{path}, line {number}") for number, line in lines))


def of_report(lines: Iterable[report.Line], path: Path) -> tuple[Counterexample, ...]:
    """The counterexamples of a report, those of listed deviations among them. Raises UsageProblem."""
    return tuple(_of_result(line, path) for line in lines if "failure" in line)


def keep(path: Path, reports: Sequence[Path]) -> Kept:
    """Add the counterexamples of reports to a corpus, which is made if there is none.

    Those of listed deviations are left out: the list tells them. Raises UsageProblem.
    """
    old = read(path) if path.exists() else ()
    found: list[Counterexample] = []
    lost: list[str] = []
    unread: list[str] = []
    for each in reports:
        try:
            lines = report.read(each)
        except UsageProblem as problem:
            # What the others found is not to be lost with it.
            unread.append(str(problem))
            continue
        for one in of_report((line for line in lines if line.get("outcome") in SHORTFALLS), each):
            if one.call or one.drawn:
                found.append(one)
            else:
                lost.append(one.id)
    everything = sorted(dict.fromkeys((*old, *found)), key=str)
    if len(unread) < len(reports):
        _write(path, everything)
    return Kept(everything, [one for one in everything if one not in old], lost, unread)


def _of_result(line: report.Line, path: Path) -> Counterexample:
    failure = line["failure"]
    remark = " ".join(str(failure.get("chosen", "")).split())
    remark = remark if len(remark) <= _LONGEST_REMARK else remark[:_LONGEST_REMARK] + " ..."
    call = _call(failure["call"], str(path)) if failure.get("call") else None
    drawn = Drawn(**failure["drawn"]) if failure.get("drawn") and call is None else None
    return Counterexample(line["id"], call, drawn, remark)


def _parsed(line: str, place: str) -> Counterexample:
    told, _, remark = line.strip().partition(_REMARK)
    id, _, text = told.partition(" ")
    named, drawn = _ID.fullmatch(id), _DRAWN.fullmatch(text.strip())
    if named is None or not text:
        raise UsageProblem(f"{place} is neither ID CALL nor ID seed=N examples=M: {line.strip()[:80]!r}")
    if named["claim"] not in PROPERTIES and named["claim"] not in CLAUSES:
        raise UsageProblem(f"{place} is about {named['claim']}, which this suite no longer has: take the line out")
    if drawn is not None:
        seed, examples, dtype = drawn.groups()
        found = Counterexample(id, drawn=Drawn(int(seed), int(examples), dtype), remark=remark)
        _check_function(found.function or None, place)
        return found
    call = _call(text.strip(), place)
    if not id.endswith(f"[{call.function}-{call.device}]"):
        raise UsageProblem(f"{place} holds a call of {call.function} on {call.device}, which is not what {id} is about")
    return Counterexample(id, call, remark=remark)


def _call(text: str, place: str) -> Call:
    try:
        call = parse(text)
    except ValueError as problem:
        raise UsageProblem(f"{place} holds a call that cannot be read: {problem}") from None
    _check_function(call.function, place)
    return call


def _check_function(name: str | None, place: str) -> None:
    if name is not None and name not in FUNCTIONS and name not in EXHIBITS:
        raise UsageProblem(f"{place} holds a call of {name}, which is no Function of this suite")


def _tells(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        reason = getattr(problem, "strerror", None) or "it is not text"
        raise UsageProblem(f"the counterexamples of {path} cannot be read: {reason}") from None


def _write(path: Path, found: Iterable[Counterexample]) -> None:
    """Write the corpus, in one step; what it said in lines of comment stays at its top."""
    said = [line for line in _text(path).splitlines() if line.startswith("#")] if path.exists() else _HEAD
    unfinished = path.with_name(f"{path.name}.new")
    try:
        unfinished.write_text("".join(f"{line}\n" for line in (*said, *found)), encoding="utf-8")
        os.replace(unfinished, path)
    except OSError as problem:
        raise UsageProblem(f"the corpus cannot be written to {path}: {problem.strerror}") from None
