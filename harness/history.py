"""Several runs of one implementation: their order, and what changed from each to the next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

from packaging.version import InvalidVersion, Version

from autograd_conformance.harness.outcomes import SHORTFALLS
from autograd_conformance.harness.runs import Line, Run

# The sign of each kind of change, told apart by its shape.
SIGNS = {"broke": "▼", "mended": "▲", "changed": "◆", "new": "+", "gone": "○"}

# What two runs should have in common, if what changed is to say something of the implementation.
_PARAMETERS = ("profile", "examples", "seed", "dtype", "devices", "suite")


@dataclass(frozen=True)
class Change:
    """A test id that has another outcome than in the run before, None where a run has none."""

    id: str
    before: str | None
    after: str | None
    line: Line

    @property
    def kind(self) -> str:
        """What kind of change that is."""
        if self.before is None or self.after is None:
            return "new" if self.before is None else "gone"
        fell, falls = self.before in SHORTFALLS, self.after in SHORTFALLS
        if fell is falls:
            return "changed"
        return "broke" if falls else "mended"


@dataclass(frozen=True)
class Step:
    """Two neighbouring runs of one implementation, and what changed from the old to the new."""

    old: Run
    new: Run
    changes: tuple[Change, ...]

    @property
    def counts(self) -> list[tuple[str, int]]:
        """How many changes there are of each kind."""
        return counted(self.changes)

    @property
    def differing(self) -> list[str]:
        """What else differs between the runs, so that a change may come from it."""
        return [
            f"{name} ({_short(self.old.header[name])}, then {_short(self.new.header[name])})"
            for name in _PARAMETERS
            if self.old.header[name] != self.new.header[name]
        ]


def counted(changes: Iterable[Change]) -> list[tuple[str, int]]:
    """How many changes there are of each kind."""
    found = Counter(change.kind for change in changes)
    return [(kind, found[kind]) for kind in SIGNS if found[kind]]


def ordered(runs: Iterable[Run]) -> tuple[Run, ...]:
    """The runs, those of an implementation together, by version and then by time."""
    given = list(runs)
    names = list(dict.fromkeys(run.name for run in given))
    return tuple(sorted(given, key=lambda run: (names.index(run.name), _version(run.version), run.header["started"])))


def steps(runs: Sequence[Run]) -> list[Step]:
    """What changed between neighbours, of runs that are in order."""
    found = [list(group) for _, group in groupby(runs, key=lambda run: run.name)]
    return [Step(old, new, tuple(_changes(old, new))) for group in found for old, new in pairwise(group)]


def _changes(old: Run, new: Run) -> list[Change]:
    before, after = ({line["id"]: line for line in run.results} for run in (old, new))
    both = [Change(i, before[i]["outcome"], a["outcome"], a) for i, a in after.items() if i in before]
    # Of a run that did not finish nobody knows what it would have had.
    fresh = [Change(i, None, a["outcome"], a) for i, a in after.items() if i not in before and not old.flaw]
    gone = [Change(i, b["outcome"], None, b) for i, b in before.items() if i not in after and not new.flaw]
    found = [change for change in both if change.before != change.after] + fresh + gone
    kinds = list(SIGNS)
    return sorted(found, key=lambda change: kinds.index(change.kind))


def _version(text: str) -> tuple[bool, Any]:
    """Versions in their order, after whatever else names one."""
    try:
        return True, Version(text)
    except InvalidVersion:
        return False, text


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return str(value.get("version", value))
    return ", ".join(value) if isinstance(value, list) else str(value)
