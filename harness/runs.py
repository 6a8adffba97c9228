"""Runs as their reports tell them: what every way to show them has in common."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from autograd_conformance.harness import report
from autograd_conformance.harness.blackbox import DEATH, HANG
from autograd_conformance.harness.outcomes import OUTCOMES, SHORTFALLS, UsageProblem
from autograd_conformance.reference.clauses import CLAUSES
from autograd_conformance.reference.properties import PROPERTIES

Line = Mapping[str, Any]

UNFINISHED = "did not finish"
SPOILT = "has a spoilt report"
_SAID_BY_THE_VERDICT = "the run did not finish: "

# Control characters, halves of surrogate pairs, and what is no character.
_INVISIBLE = re.compile("[^\t\n\r\u0020-\u007e\u00a0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_ORDER = {claim: number for number, claim in enumerate((*PROPERTIES, *CLAUSES))}


@dataclass(frozen=True)
class Run:
    """One implementation's run, as its report tells it."""

    path: Path
    lines: tuple[report.Line, ...]
    # Why the report is not all that its run had to say, None if it is.
    flaw: str | None = None

    @property
    def header(self) -> Line:
        return self.lines[0]

    @property
    def name(self) -> str:
        return str(self.header["implementation"]["name"])

    @property
    def version(self) -> str:
        return str(self.header["implementation"]["version"])

    @cached_property
    def results(self) -> tuple[report.Line, ...]:
        """The result lines, in the catalogue's order."""
        return tuple(sorted((line for line in self.lines if line["kind"] == "result"), key=place))

    @cached_property
    def by_claim(self) -> dict[str, list[report.Line]]:
        """The result lines of each property and clause."""
        found: dict[str, list[report.Line]] = {}
        for line in self.results:
            found.setdefault(report.claim_of(line), []).append(line)
        return found

    @property
    def counts(self) -> Counter[str]:
        """How many test ids had each outcome, in the order of the outcomes."""
        found = Counter(line["outcome"] for line in self.results)
        return Counter({name: found[name] for name in OUTCOMES if found[name]})

    @property
    def shortfalls(self) -> list[report.Line]:
        """The result lines with which the run falls short."""
        return [line for line in self.results if line["outcome"] in SHORTFALLS]

    @property
    def footer(self) -> Line | None:
        """The end of a run that finished, None for another's report."""
        return self.lines[-1] if self.lines[-1]["kind"] == "footer" else None

    @property
    def verdict(self) -> str:
        """Whether it holds, falls short, or did not finish, as far as its report can be trusted."""
        if self.flaw is None and self.footer is not None:
            return str(self.footer["verdict"])
        return UNFINISHED if self.footer is None else SPOILT

    def again(self, line: Line) -> str:
        """The command that runs a test id again, with the same examples."""
        return again(line, self.header)


def read(path: Path) -> Run:
    """The run whose report is at this path. Raises UsageProblem for what is none."""
    lines = report.read(path)
    return Run(path, tuple(_visible(line) for line in lines), _flaw(lines))


def read_all(paths: Iterable[Path]) -> tuple[Run, ...]:
    """The runs whose reports are at these paths. Raises UsageProblem for what is none, and for one without results."""
    found = tuple(read(path) for path in paths)
    for one in found:
        if not one.results:
            raise UsageProblem(f"{one.path} has no results: its run ended before the first test")
    return found


def _flaw(lines: Sequence[report.Line]) -> str | None:
    """Why a report is not whole; of one in an older format no more is known than whether its run finished."""
    if lines[0].get("schema") == report.SCHEMA:
        return report.complete(lines).reason.removeprefix(_SAID_BY_THE_VERDICT) or None
    return None if lines[-1]["kind"] == "footer" else "its report has no footer"


def _visible(value: Any) -> Any:
    """The value with characters that XML cannot hold, or no file can, as escapes that can be read: ``\\x1b``."""
    if isinstance(value, dict):
        return {key: _visible(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_visible(each) for each in value]
    if isinstance(value, str):
        return _INVISIBLE.sub(lambda found: found[0].encode("unicode_escape").decode(), value)
    return value


def place(line: Line) -> tuple[int, str]:
    """Where a result line belongs: in the order of the catalogue, then of the ids."""
    return _ORDER.get(report.claim_of(dict(line)), len(_ORDER)), line["id"]


def again(line: Line, header: Line, suite: str | None = None) -> str:
    """The command that runs a test id of the run with this header again, with the same examples."""
    # What ends its process needs one of its own.
    workers = "1" if line.get("failure", {}).get("type") in (HANG, DEATH) else "0"
    words = ["autograd-conformance", "run", header["implementation"]["named"], "-n", workers]
    words += ["--suite", suite] if suite else []
    words += ["--properties", report.claim_of(dict(line))]
    words += ["--functions", line["function"]] if "function" in line else []
    words += ["--device", line["device"], "--profile", header["profile"], "--seed", str(header["seed"])]
    words += ["--replay", header["replay"]] if header.get("replay") else []
    words += ["--corpus", header["corpus"]] if header.get("corpus") else []
    words += ["--dtype", header["dtype"]] if header["dtype"] else []
    return shlex.join(words)


def sentence(claim: str) -> str:
    """What must hold, and of a clause where it says so."""
    if claim in CLAUSES:
        clause = CLAUSES[claim]
        return f"{clause.sentence} ({clause.level}; {clause.document})"
    return PROPERTIES[claim].sentence if claim in PROPERTIES else ""


def message(line: Line) -> str:
    """What became of a test id: why if a reason is listed, else what came and what should have come."""
    failure = line.get("failure", {})
    if line["outcome"] == "fixed":
        return f"holds, though it is listed not to; take it off the list: {line['reason']}"
    if "reason" in line:
        return str(line["reason"])
    if "what" in failure:
        return f"{failure['what']} is {failure['got']}, but should be {failure['expected']}"
    return f"{failure['type']}: {failure['message']}" if failure else ""


def causes(known: Iterable[Line]) -> dict[str, list[str]]:
    """The causes of listed deviations, each with the test ids that show it."""
    found: dict[str, list[str]] = {}
    for line in sorted(known, key=place):
        found.setdefault(line["reason"], []).append(line["id"])
    return found


def told(counts: Counter[str]) -> str:
    """How many test ids hold of those that were asked, and what became of the others."""
    apart = ("unsupported", "skip", "known")
    total = sum(counts.values()) - sum(counts[name] for name in apart)
    held = counts["pass"] + counts["emulated"]
    words = {"skip": "skipped", "fail": "broken", "error": "errors"}
    others = [name for name in (*sorted(SHORTFALLS), "emulated", *apart) if counts[name]]
    listed = ", ".join(f"{counts[name]} {words.get(name, name)}" for name in others)
    return f"{held} of {total} hold" + (f"; {listed}" if listed else "")
