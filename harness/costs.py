"""Costs in reports: as a table, and held against those of an earlier run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tabulate import tabulate

from autograd_conformance.harness import report
from autograd_conformance.harness.outcomes import UsageProblem

# How much a cost may grow beside what its interval says: a share of it, and in units. Eight runs of one torch on a busy
# machine differed by up to 4.5 % in apply and backward, and by up to 0.045 units in the rest; no intervals were apart.
SLACK, LEAST = 0.05, 0.05


def table(costs: Iterable[report.Line]) -> list[str]:
    """Costs for people."""
    rows = [(c["what"], c["ratio"], f"{c['low']:.3f} to {c['high']:.3f}", c["unit"]) for c in costs]
    return str(tabulate(rows, ("cost of", "ratio", "interval", "to"), floatfmt=".3f")).splitlines()


def of_report(path: Path) -> tuple[report.Line, dict[str, report.Line]]:
    """The implementation of a report, and its costs by what they are of. Raises UsageProblem if there are none."""
    lines = report.read(path)
    whole = report.complete(lines)
    if not whole:
        raise UsageProblem(f"{path} is not the report of a whole run: {whole.reason}")
    costs = lines[-1].get("costs")
    if not costs:
        raise UsageProblem(f"{path} tells no costs; write one with: autograd-conformance run --cost --report {path}")
    return lines[0]["implementation"], {cost["what"]: cost for cost in costs}


@dataclass(frozen=True)
class Change:
    """What became of a cost; None where it was not measured."""

    old: report.Line | None
    new: report.Line | None

    @property
    def worse(self) -> bool:
        """Whether it grew by more than noise explains, or is not measured any more."""
        if self.old is None or self.new is None:
            return self.new is None
        grown = self.new["ratio"] - self.old["ratio"]
        return bool(self.new["low"] > self.old["high"] and grown > max(LEAST, SLACK * self.old["ratio"]))

    def __str__(self) -> str:
        cost = self.new or self.old or {}
        old, new = (f"{c['ratio']:.3f} ({c['low']:.3f} to {c['high']:.3f})" if c else "-" for c in (self.old, self.new))
        return f"{'worse' if self.worse else 'same'}: {cost['what']} {old} -> {new}, in units of {cost['unit']}"


def changes(base: Path, new: Path) -> Iterator[Change]:
    """What became of each cost. Raises UsageProblem unless both reports tell those of one implementation."""
    (first, old), (second, found) = of_report(base), of_report(new)
    if first["name"] != second["name"]:
        raise UsageProblem(f"{base} tells the costs of {first['name']}, and {new} those of {second['name']}")
    for what in dict.fromkeys((*old, *found)):
        yield Change(old.get(what), found.get(what))
