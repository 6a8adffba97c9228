"""A report that was read: its header, results, counts, and whether it is complete."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from autograd_conformance.harness.outcomes import FAILING, OUTCOMES, UsageProblem
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.harness.reports.ndjson import Flaw, Line
from autograd_conformance.harness.text import visible
from autograd_conformance.reference.clauses import CLAUSES
from autograd_conformance.reference.properties import PROPERTIES

UNFINISHED = "did not finish"
DAMAGED = "has a damaged report"

# What differs between two messages of one error.
_VARYING = re.compile(r"'[^']*'|\"[^\"]*\"|0x[0-9a-f]+|\d+")

_ORDER = {claim: number for number, claim in enumerate((*PROPERTIES, *CLAUSES))}


@dataclass(frozen=True)
class Report:
    """The report of one run of one implementation; ``flaw`` says what is missing from it or wrong with it."""

    path: Path
    lines: tuple[Line, ...]
    flaw: Flaw | None = None

    @property
    def header(self) -> Line:
        return self.lines[0]

    @property
    def name(self) -> str:
        """The name of the implementation."""
        return str(self.header["implementation"]["name"])

    @property
    def version(self) -> str:
        """The version of the implementation."""
        return str(self.header["implementation"]["version"])

    @cached_property
    def results(self) -> tuple[Line, ...]:
        """The result lines, in the catalogue's order."""
        return tuple(sorted((line for line in self.lines if line["kind"] == "result"), key=place))

    @cached_property
    def by_claim(self) -> dict[str, list[Line]]:
        """The result lines of each property and clause."""
        found: dict[str, list[Line]] = {}
        for line in self.results:
            found.setdefault(ndjson.claim_of(line), []).append(line)
        return found

    @property
    def counts(self) -> Counter[str]:
        """The number of test ids with each outcome, in the order of the outcomes."""
        found = Counter(line["outcome"] for line in self.results)
        return Counter({name: found[name] for name in OUTCOMES if found[name]})

    @property
    def failures(self) -> list[Line]:
        """The result lines that make the run fail."""
        return [line for line in self.results if line["outcome"] in FAILING]

    @property
    def footer(self) -> Line | None:
        """The last line of a run that finished, else None."""
        return self.lines[-1] if self.lines[-1]["kind"] == "footer" else None

    @property
    def verdict(self) -> str:
        """``holds``, ``fails``, or why the report says neither."""
        if self.flaw is None and self.footer is not None:
            return str(self.footer["verdict"])
        return UNFINISHED if self.footer is None else DAMAGED


def read(path: Path) -> Report:
    """The report at this path. Raises UsageProblem for a file that is not a report."""
    lines = ndjson.read(path)
    return Report(path, tuple(visible(line) for line in lines), _flaw(lines))


def read_all(paths: Iterable[Path]) -> tuple[Report, ...]:
    """The reports at these paths. Raises UsageProblem for a file that is not a report, or has no results."""
    found = tuple(read(path) for path in paths)
    for one in found:
        if not one.results:
            raise UsageProblem(f"{one.path} has no results: its run ended before the first test")
    return found


def _flaw(lines: Sequence[Line]) -> Flaw | None:
    """What is missing from a report or wrong with it; in an older format only the footer can be looked for."""
    if lines[0].get("schema") == ndjson.SCHEMA:
        return ndjson.flaw(lines)
    return None if lines[-1]["kind"] == "footer" else Flaw("its report has no footer", finished=False)


def place(line: Line) -> tuple[int, str, str]:
    """The sort key of a result line: the order of the catalogue, a test before its variants, then of the ids."""
    return _ORDER.get(ndjson.claim_of(line), len(_ORDER)), ndjson.test_of(line), line["id"]


def constant(text: str) -> str:
    """A message without what differs between two messages of one error."""
    return " ".join(_VARYING.sub("", text).split())


def lost_in(failure: Line) -> str:
    """The function in which a process was lost; its stack has those of other threads first."""
    stack = failure.get("traceback", [])
    current = next((n for n, row in enumerate(stack) if row.startswith("Current thread")), -1)
    return constant(next(iter(stack[current + 1 :]), ""))
