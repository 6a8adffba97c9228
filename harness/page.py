"""The matrix over implementations: one static page, from the reports of several runs."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

import jinja2

from autograd_conformance.harness import report
from autograd_conformance.harness.clause_table import worst
from autograd_conformance.harness.matrix import SYMBOLS
from autograd_conformance.harness.outcomes import OUTCOMES, UsageProblem
from autograd_conformance.reference.clauses import CONTRACT, DIALECTS
from autograd_conformance.reference.properties import PROPERTIES

Line = Mapping[str, Any]

# The sign of each outcome, told apart by its shape as well as by its colour.
SIGNS = {
    "error": "✖",
    "fail": "✗",
    "vacuous": "∅",
    "fixed": "↑",
    "known": "!",
    "emulated": "≈",
    "skip": "↷",
    "unsupported": "·",
    "pass": "✓",
}


@dataclass(frozen=True)
class Report:
    """One implementation's run, as its report tells it."""

    path: Path
    lines: tuple[Line, ...]

    @property
    def header(self) -> Line:
        return self.lines[0]

    @property
    def footer(self) -> Line | None:
        """The end of a run that finished, None for another's report."""
        return self.lines[-1] if self.lines[-1]["kind"] == "footer" else None

    @property
    def name(self) -> str:
        return str(self.header["implementation"]["name"])

    @property
    def version(self) -> str:
        return str(self.header["implementation"]["version"])

    @property
    def dialect(self) -> Mapping[str, Any]:
        """The clauses of its own interface that the run checked."""
        return {id: c for part in DIALECTS.values() for id, c in part.items() if id in self.by_claim}

    @cached_property
    def by_claim(self) -> dict[str, list[Line]]:
        """The result lines of each property and clause."""
        found: dict[str, list[Line]] = {}
        for line in self.lines:
            if line["kind"] == "result":
                found.setdefault(report.claim_of(dict(line)), []).append(line)
        return found

    @property
    def counts(self) -> list[tuple[str, int]]:
        """How many test ids had each outcome."""
        found = Counter(line["outcome"] for lines in self.by_claim.values() for line in lines)
        return [(name, found[name]) for name in OUTCOMES if found[name]]

    @property
    def verdict(self) -> str:
        """Whether it holds, falls short, or did not finish."""
        if self.footer is None:
            return "did not finish"
        return str(self.footer["verdict"])

    def again(self, line: Line) -> str:
        """The command that runs a test id again, with the same examples."""
        head = self.header
        words = ["autograd-conformance", "run", head["implementation"].get("named", self.name)]
        words += ["--properties", report.claim_of(dict(line))]
        words += ["--functions", line["function"]] if "function" in line else []
        words += ["--device", line["device"], "--profile", head["profile"], "--seed", str(head["seed"])]
        words += ["--dtype", head["dtype"]] if head["dtype"] else []
        return shlex.join(words)


@dataclass(frozen=True)
class Cell:
    """What one implementation does with one claim: the worst outcome of its test ids, and what they tell."""

    id: str
    lines: Sequence[Line]
    source: Report

    @property
    def asked(self) -> list[Line]:
        """The lines of the test ids that were asked."""
        return [line for line in self.lines if line["outcome"] not in ("unsupported", "skip")]

    @property
    def outcome(self) -> str:
        """The worst outcome of those that were asked."""
        return str(worst(self.asked or self.lines)["outcome"])

    @property
    def share(self) -> str:
        """How many of several test ids hold, of those that were asked."""
        held = sum(line["outcome"] in ("pass", "emulated") for line in self.asked)
        return f"{held}/{len(self.asked)}" if len(self.asked) > 1 else ""

    @property
    def telling(self) -> list[Line]:
        """The lines that say more than that it holds or was not asked, the worst first."""
        ranks = list(SYMBOLS)
        found = [line for line in self.lines if line["outcome"] not in ("pass", "unsupported")]
        return sorted(found, key=lambda line: ranks.index(line["outcome"]))

    @property
    def unasked(self) -> str:
        """Why it was not asked, where it was not."""
        reasons = dict.fromkeys(line.get("reason", "") for line in self.lines if line["outcome"] == "unsupported")
        return "; ".join(reasons)


@dataclass(frozen=True)
class Row:
    """One property or clause, with a cell for each implementation, None where its run did not include it."""

    id: str
    sentence: str
    level: str
    document: str
    cells: tuple[Cell | None, ...]


@dataclass(frozen=True)
class Section:
    """Rows that belong together."""

    title: str
    reports: tuple[Report, ...]
    rows: tuple[Row, ...]


def read(paths: Iterable[Path]) -> tuple[Report, ...]:
    """The reports at these paths. Raises UsageProblem for what is none, and for one that has no results."""
    found = tuple(Report(path, tuple(report.read(path))) for path in paths)
    for one in found:
        if not one.by_claim:
            raise UsageProblem(f"{one.path} has no results: its run ended before the first test")
    return found


def html(reports: Sequence[Report]) -> str:
    """The page."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    return environment.get_template("page.html").render(
        reports=reports, sections=_sections(tuple(reports)), signs=SIGNS, meanings=OUTCOMES,
        version=report.version_of("autograd-conformance"), made=report.now(),
    )  # fmt: skip


def _sections(reports: tuple[Report, ...]) -> list[Section]:
    properties = tuple(_row(p.id, p.sentence, "property", "", reports) for p in PROPERTIES.values())
    found = [Section("Properties of every documented Function", reports, properties)]
    for group, clauses in groupby(CONTRACT.values(), key=lambda clause: clause.group):
        rows = tuple(_row(c.id, c.sentence, c.level, c.document, reports) for c in clauses)
        found.append(Section(f"PyTorch's contract: {group}", reports, rows))
    for one in reports:
        own = tuple(_row(c.id, c.sentence, c.level, c.quote or c.document, (one,)) for c in one.dialect.values())
        found.append(Section(f"{one.name}'s own sentences", (one,), own))
    asked = (Section(s.title, s.reports, tuple(row for row in s.rows if any(row.cells))) for s in found)
    return [section for section in asked if section.rows]


def _row(id: str, sentence: str, level: str, document: str, reports: Sequence[Report]) -> Row:
    cells = (
        Cell(f"{id}-{number}", one.by_claim[id], one) if id in one.by_claim else None
        for number, one in enumerate(reports)
    )
    return Row(id, sentence, level, document, tuple(cells))
