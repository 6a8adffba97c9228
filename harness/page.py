"""The matrix over implementations and their history: one static page, from the reports of several runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import jinja2

from autograd_conformance.harness import history, plots, report
from autograd_conformance.harness.clause_table import worst
from autograd_conformance.harness.history import Change, Step
from autograd_conformance.harness.matrix import SYMBOLS
from autograd_conformance.harness.outcomes import OUTCOMES, UNASKED
from autograd_conformance.harness.runs import Line, Run, message
from autograd_conformance.reference.clauses import CONTRACT, DIALECTS
from autograd_conformance.reference.definitions import FLOATING
from autograd_conformance.reference.properties import PROPERTIES

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

# Changes of one step that the page lists; the others are in the table.
CHANGES = 200


@dataclass(frozen=True)
class Column:
    """A run as a column of the page."""

    number: int
    run: Run
    # The time, where it takes one to tell the run from others of the same version.
    when: str
    changes: Mapping[str, Sequence[Change]]

    @property
    def label(self) -> str:
        """What tells the run from the others of its implementation."""
        return f"{self.run.version}, {self.when}" if self.when else self.run.version

    def without(self, claim: str) -> str:
        """Why there is no result of a property or clause."""
        header = self.run.header
        if claim not in (*header["properties"], *header["clauses"]):
            return "not asked"
        if self.run.flaw:
            return "not reached"
        return "in another shard" if header.get("shard") else "not asked"


@dataclass(frozen=True)
class Cell:
    """What one run says of one claim: the worst outcome of its test ids, and what they tell."""

    id: str
    lines: Sequence[Line]
    column: Column
    changes: Sequence[Change]

    @property
    def asked(self) -> list[Line]:
        """The lines of the test ids that were asked."""
        return [line for line in self.lines if line["outcome"] not in UNASKED]

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

    @property
    def changed(self) -> list[tuple[str, int]]:
        """How many changes of each kind there are since the run before."""
        return history.counted(self.changes)


@dataclass(frozen=True)
class Row:
    """One property or clause, with a cell for each run; a text where the run has no result of it."""

    id: str
    sentence: str
    level: str
    document: str
    cells: tuple[Cell | str, ...]


@dataclass(frozen=True)
class Section:
    """Rows that belong together."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]

    @property
    def groups(self) -> list[tuple[str, int]]:
        """The implementations, with the number of their columns."""
        return [(name, len(list(group))) for name, group in groupby(self.columns, key=lambda column: column.run.name)]


def html(runs: Sequence[Run]) -> str:
    """The page."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    found = history.ordered(runs)
    steps = history.steps(found)
    columns = tuple(_columns(found, steps))
    labels = {id(column.run): column.label for column in columns}
    return environment.get_template("page.html").render(
        columns=columns, sections=_sections(columns), steps=steps, most=CHANGES, signs=SIGNS, meanings=OUTCOMES,
        change_signs=history.SIGNS, plots=plots.plots(found), ticks=plots.ticks(), dtypes=FLOATING,
        label=lambda run: labels[id(run)], message=message,
        version=report.version_of("autograd-conformance"), made=report.now(),
    )  # fmt: skip


def _columns(runs: Sequence[Run], steps: Sequence[Step]) -> Iterator[Column]:
    versions = Counter((run.name, run.version) for run in runs)
    changes = {id(step.new): step.changes for step in steps}
    for number, run in enumerate(runs):
        alone = versions[run.name, run.version] == 1
        when = "" if alone else run.header["started"][:16].replace("T", " ")
        by_claim: dict[str, list[Change]] = {}
        for change in changes.get(id(run), ()):
            by_claim.setdefault(report.claim_of(dict(change.line)), []).append(change)
        yield Column(number, run, when, by_claim)


def _sections(columns: tuple[Column, ...]) -> list[Section]:
    properties = tuple(_row(p.id, p.sentence, "property", "", columns) for p in PROPERTIES.values())
    found = [Section("Properties of every documented Function", columns, properties)]
    for group, clauses in groupby(CONTRACT.values(), key=lambda clause: clause.group):
        rows = tuple(_row(c.id, c.sentence, c.level, c.document, columns) for c in clauses)
        found.append(Section(f"PyTorch's contract: {group}", columns, rows))
    for name, those in groupby(columns, key=lambda column: column.run.name):
        mine = tuple(those)
        own = {claim: c for part in DIALECTS.values() for claim, c in part.items()}
        rows = tuple(_row(c.id, c.sentence, c.level, c.quote or c.document, mine) for c in own.values())
        found.append(Section(f"{name}'s own sentences", mine, rows))
    asked = (Section(s.title, s.columns, tuple(row for row in s.rows if _has_results(row))) for s in found)
    return [section for section in asked if section.rows]


def _has_results(row: Row) -> bool:
    return any(isinstance(cell, Cell) for cell in row.cells)


def _row(claim: str, sentence: str, level: str, document: str, columns: Sequence[Column]) -> Row:
    return Row(claim, sentence, level, document, tuple(_cell(claim, column) for column in columns))


def _cell(claim: str, column: Column) -> Cell | str:
    lines = column.run.by_claim.get(claim)
    if lines is None:
        return column.without(claim)
    return Cell(f"{claim}-{column.number}", lines, column, column.changes.get(claim, ()))
