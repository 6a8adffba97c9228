"""The corpus: counterexamples that once broke a test id, as sorted lines of text for review in a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from autograd_conformance.harness.outcomes import FAILING, Drawn, UsageProblem
from autograd_conformance.harness.reports import files, ndjson
from autograd_conformance.reference.clauses import CLAUSES
from autograd_conformance.reference.functions import EXHIBITS, FUNCTIONS
from autograd_conformance.reference.properties import PROPERTIES
from autograd_conformance.strategies.calls import Call, parse

DEFAULT_PATH = "autograd-conformance-corpus.txt"

_HEAD = ["# Counterexamples that once broke a test id. To add those of a report: autograd-conformance keep REPORT"]

_ID = re.compile(r"(?P<claim>[A-Z]+(?:-[A-Z]+)*-(?:[A-Z]+|[0-9]+))(?:/[a-z0-9_-]+)?\[(?P<where>\S+)\]")
_DRAWN = re.compile(r"seed=(\d+) examples=(\d+)(?: dtype=(\w+))?")

# Separates a counterexample from the remark for the reader.
_REMARK = "  # "
_LONGEST_REMARK = 160

# The most test ids that a sentence names.
_NAMED = 5


@dataclass(frozen=True)
class Counterexample:
    """What once broke a test id: a call, or else how the examples were drawn, if known.

    ``remark`` is for the reader: what else the test had drawn.
    """

    id: str
    call: Call | None = None
    drawn: Drawn | None = None
    remark: str = field(default="", compare=False)

    @property
    def function(self) -> str:
        """The Function in the id; empty for a clause."""
        return self.id.partition("[")[2].rpartition("-")[0]

    def __str__(self) -> str:
        return f"{self.id}  {self.call or self.drawn}" + (_REMARK + self.remark if self.remark else "")


class Kept(NamedTuple):
    """The counterexamples of a corpus after `keep`, and the new ones among them.

    ``lost`` has the ids of failures without a call or seed, ``unread`` the reasons why reports could not be read.
    """

    all: list[Counterexample]
    new: list[Counterexample]
    lost: list[str]
    unread: list[str]


def read(path: Path) -> tuple[Counterexample, ...]:
    """The counterexamples of a corpus or a report. Raises UsageProblem for any other file."""
    text = _text(path)
    if path.suffix == Path(ndjson.DEFAULT_PATH).suffix or text.startswith("{"):
        return of_report(ndjson.read(path), path)
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if _has_content(line)]
    return tuple(dict.fromkeys(_parsed(line, f"{path}, line {number}") for number, line in lines))


def of_report(lines: Iterable[ndjson.Line], path: Path) -> tuple[Counterexample, ...]:
    """The counterexamples of a report, including those of listed deviations. Raises UsageProblem."""
    return tuple(_of_result(line, path) for line in lines if "failure" in line)


def keep(path: Path, reports: Sequence[Path]) -> Kept:
    """Add the counterexamples of reports to a corpus; create the file if necessary.

    Leaves out those of listed deviations. Raises UsageProblem.
    """
    output = files.Output(path, files.CORPUS, "the corpus", "--corpus")
    files.verify([output], {f"the report {each}": each for each in reports})
    old = read(path) if path.exists() else ()
    found: list[Counterexample] = []
    lost: list[str] = []
    unread: list[str] = []
    for each in reports:
        try:
            lines = ndjson.read(each)
        except UsageProblem as problem:
            # The counterexamples of the other reports are kept.
            unread.append(str(problem))
            continue
        for one in of_report((line for line in lines if line.get("outcome") in FAILING), each):
            if one.call or one.drawn:
                found.append(one)
            else:
                lost.append(one.id)
    everything = sorted(dict.fromkeys((*old, *found)), key=str)
    if len(unread) < len(reports):
        comments = [line for line in _text(path).splitlines() if line.startswith("#")] if path.exists() else _HEAD
        output.write("".join(f"{line}\n" for line in (*comments, *everything)))
    return Kept(everything, [one for one in everything if one not in old], lost, unread)


def in_words(ids: Sequence[str]) -> str:
    """A sentence about ids of kept counterexamples that have no test."""
    more = f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else ""
    return f"{len(ids)} of the kept counterexamples have no test in this run: {', '.join(ids[:_NAMED])}{more}"


def digest(kept: Iterable[Counterexample]) -> str | None:
    """A digest of counterexamples, without the remarks; None if there are none."""
    rows = sorted(f"{replace(one, remark='')}\n" for one in kept)
    return ndjson.digest(rows) if rows else None


def _of_result(line: ndjson.Line, path: Path) -> Counterexample:
    failure = line["failure"]
    remark = " ".join(str(failure.get("chosen", "")).split())
    remark = remark if len(remark) <= _LONGEST_REMARK else remark[:_LONGEST_REMARK] + " ..."
    call = _call(failure["call"], str(path)) if failure.get("call") else None
    drawn = Drawn(**failure["drawn"]) if failure.get("drawn") and call is None else None
    return Counterexample(line["id"], call, drawn, remark)


def _parsed(line: str, place: str) -> Counterexample:
    content, _, remark = line.strip().partition(_REMARK)
    id, _, text = content.partition(" ")
    named, drawn = _ID.fullmatch(id), _DRAWN.fullmatch(text.strip())
    if named is None or not text:
        raise UsageProblem(f"{place} must be ID CALL or ID seed=N examples=M, but is {line.strip()[:80]!r}")
    if named["claim"] not in PROPERTIES and named["claim"] not in CLAUSES:
        raise UsageProblem(f"{place} is about {named['claim']}, which this suite does not have; remove the line")
    if drawn is not None:
        seed, examples, dtype = drawn.groups()
        found = Counterexample(id, drawn=Drawn(int(seed), int(examples), dtype), remark=remark)
        _check_function(found.function or None, place)
        return found
    call = _call(text.strip(), place)
    if not id.endswith(f"[{call.function}-{call.device}]"):
        raise UsageProblem(f"{place} has a call of {call.function} on {call.device}, which does not match {id}")
    return Counterexample(id, call, remark=remark)


def _call(text: str, place: str) -> Call:
    try:
        call = parse(text)
    except ValueError as problem:
        raise UsageProblem(f"{place} has a call that cannot be read: {problem}") from None
    _check_function(call.function, place)
    return call


def _check_function(name: str | None, place: str) -> None:
    if name is not None and name not in FUNCTIONS and name not in EXHIBITS:
        raise UsageProblem(f"{place} has a call of {name}, which is not a Function of this suite")


def _has_content(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        reason = getattr(problem, "strerror", None) or "it is not text"
        advice = "give a report, or a corpus that autograd-conformance keep has written"
        raise UsageProblem(f"the counterexamples of {path} cannot be read: {reason}; {advice}") from None
