"""One static page from several reports: properties and clauses by implementation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import jinja2

from autograd_conformance.harness.outcomes import FAILING, NOT_RUN, OUTCOMES, UNCLAIMED
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.harness.reports.ndjson import Line
from autograd_conformance.harness.reports.reading import Report
from autograd_conformance.harness.views import capabilities, describe
from autograd_conformance.harness.views.causes import Cause, causes
from autograd_conformance.harness.views.clause_table import worst
from autograd_conformance.harness.views.matrix import SYMBOLS
from autograd_conformance.reference.clauses import CONTRACT, DIALECTS
from autograd_conformance.reference.properties import PROPERTIES

# The sign of each outcome; signs differ in shape, not only in colour.
SIGNS = {
    "error": "✖",
    "fail": "✗",
    "missing": "⊖",
    "vacuous": "∅",
    "fixed": "↑",
    "dies": "☠",
    "silent": "≠",
    "known": "!",
    "emulated": "≈",
    "skip": "↷",
    "refuses": "⊘",
    "holds": "◌",
    "unsupported": "·",
    "pass": "✓",
}

# The most causes of one run that the page lists; the tables have all of them.
CAUSES = 40


@dataclass(frozen=True)
class Column:
    """A report as a column of the page."""

    number: int
    report: Report
    # The time of the run, if there are several of the same version.
    when: str

    @property
    def causes(self) -> list[Cause]:
        """The probable causes of the failures."""
        return causes([line for line in self.report.results if line["outcome"] in FAILING])

    @property
    def unclaimed(self) -> list[tuple[str | int, ...]]:
        """A row for each capability that is not claimed, with the number of test ids of each outcome."""
        return capabilities.unclaimed(self.report.results)

    @property
    def label(self) -> str:
        """The version of the implementation and its accelerators, and the time if several runs have these."""
        return _build(self.report) + (f", {self.when}" if self.when else "")

    def without(self, claim: str) -> str:
        """Why there is no result of a property or clause."""
        header = self.report.header
        if claim not in (*header["properties"], *header["clauses"]):
            return "not selected"
        if self.report.flaw:
            return "not reached"
        return "in another shard" if header.get("shard") else "not selected"


@dataclass(frozen=True)
class Cell:
    """The results of one property or clause in one report."""

    id: str
    lines: Sequence[Line]
    column: Column

    @property
    def executed(self) -> list[Line]:
        """The lines of the test ids that were run, and claimed."""
        return [line for line in self.lines if line["outcome"] not in (*NOT_RUN, *UNCLAIMED)]

    @property
    def outcome(self) -> str:
        """The worst outcome of the test ids that were run."""
        return str(worst(self.executed or self.lines)["outcome"])

    @property
    def share(self) -> str:
        """How many of the test ids that were run hold; empty for a single one."""
        held = sum(line["outcome"] in ("pass", "emulated") for line in self.executed)
        return f"{held}/{len(self.executed)}" if len(self.executed) > 1 else ""

    @property
    def details(self) -> list[Line]:
        """The lines to show in full, the worst first: all except those that hold, are refused or unsupported."""
        ranks = list(SYMBOLS)
        plain = ("pass", "unsupported", "holds", "refuses")
        found = [line for line in self.lines if line["outcome"] not in plain]
        return sorted(found, key=lambda line: ranks.index(line["outcome"]))

    @property
    def unsupported(self) -> str:
        """Why test ids are unsupported."""
        reasons = dict.fromkeys(line.get("reason", "") for line in self.lines if line["outcome"] == "unsupported")
        return "; ".join(reasons)


@dataclass(frozen=True)
class Row:
    """One property or clause, with a cell for each report, or a text if the report has no result of it."""

    id: str
    sentence: str
    level: str
    document: str
    cells: tuple[Cell | str, ...]


@dataclass(frozen=True)
class Section:
    """Rows under one heading."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]

    @property
    def groups(self) -> list[tuple[str, int]]:
        """The implementations, each with the number of its columns."""
        return [(name, len(list(group))) for name, group in _by_name(self.columns)]


def html(reports: Sequence[Report]) -> str:
    """The page."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    names = list(dict.fromkeys(report.name for report in reports))
    columns = tuple(_columns(sorted(reports, key=lambda report: names.index(report.name))))
    return environment.get_template("page.html").render(
        columns=columns, sections=_sections(columns), most_causes=CAUSES,
        signs=SIGNS, meanings=OUTCOMES, when_unclaimed=UNCLAIMED,
        message=describe.message, rerun=describe.rerun,
        must_hold=describe.must_hold,
        version=ndjson.version_of("autograd-conformance"), made=ndjson.now(),
    )  # fmt: skip


def _build(report: Report) -> str:
    """The version of the implementation, and the accelerators that it was checked on."""
    devices = ", ".join(report.header.get("facts", ()))
    return f"{report.version} on {devices}" if devices else report.version


def _columns(reports: Sequence[Report]) -> Iterator[Column]:
    versions = Counter((report.name, _build(report)) for report in reports)
    for number, report in enumerate(reports):
        single = versions[report.name, _build(report)] == 1
        when = "" if single else report.header["started"][:16].replace("T", " ")
        yield Column(number, report, when)


def _sections(columns: tuple[Column, ...]) -> list[Section]:
    properties = tuple(_row(p.id, p.sentence, "property", "", columns) for p in PROPERTIES.values() if not p.own)
    found = [Section("Properties of every documented Function", columns, properties)]
    for group, clauses in groupby(CONTRACT.values(), key=lambda clause: clause.group):
        rows = tuple(_row(c.id, c.sentence, c.level, c.document, columns) for c in clauses)
        found.append(Section(f"PyTorch's contract: {group}", columns, rows))
    for name, those in _by_name(columns):
        mine = tuple(those)
        own = {claim: c for part in DIALECTS.values() for claim, c in part.items()}
        rows = tuple(_row(c.id, c.sentence, c.level, c.quote or c.document, mine) for c in own.values())
        found.append(Section(f"{name}'s own sentences", mine, rows))
    shown = (Section(s.title, s.columns, tuple(row for row in s.rows if _has_results(row))) for s in found)
    return [section for section in shown if section.rows]


def _by_name(columns: Sequence[Column]) -> Iterator[tuple[str, Iterator[Column]]]:
    """The columns of each implementation."""
    return groupby(columns, key=lambda column: column.report.name)


def _has_results(row: Row) -> bool:
    return any(isinstance(cell, Cell) for cell in row.cells)


def _row(claim: str, sentence: str, level: str, document: str, columns: Sequence[Column]) -> Row:
    return Row(claim, sentence, level, document, tuple(_cell(claim, column) for column in columns))


def _cell(claim: str, column: Column) -> Cell | str:
    lines = column.report.by_claim.get(claim)
    if lines is None:
        return column.without(claim)
    return Cell(f"{claim}-{column.number}", lines, column)
