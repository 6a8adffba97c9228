"""Several reports of one implementation: their order, and what changed from each to the next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

from packaging.version import InvalidVersion, Version

from autograd_conformance.harness.outcomes import FAILING
from autograd_conformance.harness.reports.ndjson import Line
from autograd_conformance.harness.reports.reading import Report

# The sign of each kind of change; signs differ in shape, not only in colour.
SIGNS = {"broke": "▼", "recovered": "▲", "changed": "◆", "new": "+", "gone": "○"}

# Parameters of a run; if two runs differ in one, a change may not come from the implementation.
_PARAMETERS = ("profile", "examples", "seed", "dtype", "devices", "suite")


@dataclass(frozen=True)
class Change:
    """A test id whose outcome differs from the run before; an outcome is None if that run has no result."""

    id: str
    before: str | None
    after: str | None
    line: Line

    @property
    def kind(self) -> str:
        """The key of this change in `SIGNS`."""
        if self.before is None or self.after is None:
            return "new" if self.before is None else "gone"
        failed, fails = self.before in FAILING, self.after in FAILING
        if failed is fails:
            return "changed"
        return "broke" if fails else "recovered"


@dataclass(frozen=True)
class Step:
    """Two consecutive reports of one implementation, and what changed from the old to the new."""

    old: Report
    new: Report
    changes: tuple[Change, ...]

    @property
    def counts(self) -> list[tuple[str, int]]:
        """The number of changes of each kind."""
        return counted(self.changes)

    @property
    def differing(self) -> list[str]:
        """The parameters that differ between the runs and may have caused a change."""
        return [
            f"{name} ({_short(self.old.header[name])}, then {_short(self.new.header[name])})"
            for name in _PARAMETERS
            if self.old.header[name] != self.new.header[name]
        ]


def counted(changes: Iterable[Change]) -> list[tuple[str, int]]:
    """The number of changes of each kind."""
    found = Counter(change.kind for change in changes)
    return [(kind, found[kind]) for kind in SIGNS if found[kind]]


def ordered(reports: Iterable[Report]) -> tuple[Report, ...]:
    """The reports grouped by implementation, then sorted by version and time."""
    given = list(reports)
    names = list(dict.fromkeys(report.name for report in given))
    return tuple(
        sorted(given, key=lambda each: (names.index(each.name), _version(each.version), each.header["started"]))
    )


def steps(reports: Sequence[Report]) -> list[Step]:
    """What changed between consecutive reports, which must be in order."""
    found = [list(group) for _, group in groupby(reports, key=lambda report: report.name)]
    return [Step(old, new, tuple(_changes(old, new))) for group in found for old, new in pairwise(group)]


def _changes(old: Report, new: Report) -> list[Change]:
    before, after = ({line["id"]: line for line in report.results} for report in (old, new))
    both = [Change(i, before[i]["outcome"], a["outcome"], a) for i, a in after.items() if i in before]
    # A test id that an incomplete report lacks is neither new nor gone.
    fresh = [Change(i, None, a["outcome"], a) for i, a in after.items() if i not in before and not old.flaw]
    gone = [Change(i, b["outcome"], None, b) for i, b in before.items() if i not in after and not new.flaw]
    found = [change for change in both if change.before != change.after] + fresh + gone
    kinds = list(SIGNS)
    return sorted(found, key=lambda change: kinds.index(change.kind))


def _version(text: str) -> tuple[bool, Any]:
    """A sort key: texts that are not versions come first."""
    try:
        return True, Version(text)
    except InvalidVersion:
        return False, text


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return str(value.get("version", value))
    return ", ".join(value) if isinstance(value, list) else str(value)
