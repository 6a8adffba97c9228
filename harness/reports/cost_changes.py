"""Changes of the costs in two reports."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.harness.reports import ndjson

# A cost is worse if the intervals are apart and it grew by more than both a share of itself and a number of units.
# Eight runs of one torch on a busy machine differed by up to 4.5 % in apply and backward, and by up to 0.045 units
# in the other costs; all intervals overlapped.
SHARE, UNITS = 0.05, 0.05


def of_report(path: Path) -> tuple[ndjson.Line, dict[str, ndjson.Line]]:
    """The implementation of a report, and its costs by name. Raises UsageProblem if it has no costs."""
    lines = ndjson.read(path)
    flaw = ndjson.flaw(lines)
    if flaw:
        raise UsageProblem(f"{path} is not the report of a complete run: {flaw}")
    costs = lines[-1].get("costs")
    if not costs:
        raise UsageProblem(
            f"{path} has no costs; write a report with costs with: autograd-conformance run --cost --report {path}"
        )
    return lines[0]["implementation"], {cost["what"]: cost for cost in costs}


@dataclass(frozen=True)
class Change:
    """A cost in the old and the new report; None if it was not measured."""

    old: ndjson.Line | None
    new: ndjson.Line | None

    @property
    def worse(self) -> bool:
        """Whether the cost grew by more than noise explains, or is no longer measured."""
        if self.old is None or self.new is None:
            return self.new is None
        grown = self.new["ratio"] - self.old["ratio"]
        return bool(self.new["low"] > self.old["high"] and grown > max(UNITS, SHARE * self.old["ratio"]))

    def __str__(self) -> str:
        cost = self.new or self.old or {}
        old, new = (f"{c['ratio']:.3f} ({c['low']:.3f} to {c['high']:.3f})" if c else "-" for c in (self.old, self.new))
        return f"{'worse' if self.worse else 'same'}: {cost['what']} {old} -> {new}, in units of {cost['unit']}"


def changes(base: Path, new: Path) -> Iterator[Change]:
    """The change of each cost. Raises UsageProblem unless both reports have costs of the same implementation."""
    (first, old), (second, found) = of_report(base), of_report(new)
    if first["name"] != second["name"]:
        raise UsageProblem(f"{base} has the costs of {first['name']}, and {new} has those of {second['name']}")
    for what in dict.fromkeys((*old, *found)):
        yield Change(old.get(what), found.get(what))
