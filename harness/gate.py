"""The gate: what became of each test id since a baseline, and whether that may pass."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from autograd_conformance.harness import baseline, report, runs, summary
from autograd_conformance.harness.baseline import Baseline, Entry
from autograd_conformance.harness.outcomes import UsageProblem


@dataclass(frozen=True)
class Kind:
    """A way in which a test id may have changed; ``fails`` if the gate does, ``in_full`` if it has much to tell."""

    title: str
    fails: bool = True
    in_full: bool = False


KINDS = {
    "broken": Kind("does not hold any more", in_full=True),
    "added": Kind("is new, and does not hold", in_full=True),
    "other": Kind("fails as before, but in another way", in_full=True),
    # What the adapter supplies, the implementation has lost.
    "helped": Kind("holds with the adapter's help only", in_full=True),
    "unasked": Kind("is not asked any more", in_full=True),
    "refusing": Kind("refuses more than before", in_full=True),
    "missing": Kind("in the baseline, and not run"),
    "mended": Kind("holds, though the baseline or the list of deviations says that it does not"),
    "new": Kind("not in the baseline, and nothing is wrong with it", fails=False),
    "better": Kind("better than before", fails=False),
    "same": Kind("as before", fails=False),
}

# What became of a test id, by what it was (left) and what it is (top); "absent" is one that was not run.
_TABLE = """
             pass    emulated known   unsupported skip    fixed   vacuous fail    error   absent
pass         same    helped   broken  unasked     unasked mended  broken  broken  broken  missing
emulated     better  same     broken  unasked     unasked mended  broken  broken  broken  missing
known        mended  mended   same    unasked     unasked mended  broken  broken  broken  missing
unsupported  better  better   better  same        same    mended  broken  broken  broken  missing
skip         better  better   better  same        same    mended  broken  broken  broken  same
fixed        better  better   broken  unasked     unasked same    broken  broken  broken  missing
vacuous      mended  mended   better  unasked     unasked mended  same    broken  broken  missing
fail         mended  mended   better  unasked     unasked mended  broken  same    broken  missing
error        mended  mended   better  unasked     unasked mended  broken  broken  same    missing
absent       new     new      new     new         new     mended  added   added   added   same
"""


def _verdicts() -> dict[tuple[str, str], str]:
    columns, *rows = (line.split() for line in _TABLE.strip().splitlines())
    return {(row[0], new): kind for row in rows for new, kind in zip(columns, row[1:], strict=True)}


VERDICTS: Mapping[tuple[str, str], str] = _verdicts()

ABSENT = Entry("absent")


@dataclass(frozen=True)
class Change:
    """What became of a test id; ``kind`` is one of `KINDS`."""

    id: str
    kind: str
    old: Entry
    new: Entry


def verify_alike(base: Baseline, new: Mapping[str, str], *, where: str) -> None:
    """Raise UsageProblem unless a run with these parameters can be compared with the baseline in ``where``."""
    for name in {**new, **base.parameters}:
        old, now = base.parameters.get(name, "all"), new.get(name, "all")
        if old != now:
            raise UsageProblem(
                f"{where} is of another run: its {name} is {old}, and this run's is {now}; "
                "compare runs with the same parameters, or accept a new baseline"
            )


def changes(base: Baseline, new: Baseline) -> list[Change]:
    """What became of every test id, sorted by id. Parameters are not looked at; see `verify_alike`."""
    ids = sorted(base.entries.keys() | new.entries.keys())
    return [_change(id, base.entries.get(id, ABSENT), new.entries.get(id, ABSENT)) for id in ids]


def _change(id: str, old: Entry, new: Entry) -> Change:
    kind = VERDICTS[old.outcome, new.outcome]
    if kind == "same" and old.outcome == new.outcome and old != new:
        more = new.refused - old.refused
        kind = "other" if more == 0 else "refusing" if more > 0 else "better"
    return Change(id, kind, old, new)


# Changes told in full, the first of each claim, and those of another kind of which the id is told.
IN_FULL = 40
BY_NAME = 40


@dataclass(frozen=True)
class Gate:
    """A run with this report held against a baseline.

    Of the old run, ``examples`` says how many each test id tried, and ``elsewhere`` what came of the new
    counterexamples there, as far as that is known.
    """

    base: Baseline
    path: Path
    lines: Sequence[report.Line]
    examples: Mapping[str, int] = field(default_factory=dict)
    elsewhere: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def changes(self) -> list[Change]:
        """What became of every test id."""
        return changes(self.base, baseline.of_report(self.path, list(self.lines)))

    @property
    def holds(self) -> bool:
        """Whether the run may pass."""
        return not any(KINDS[change.kind].fails for change in self.changes)

    def told(self) -> Iterator[str]:
        """Each regression with what shows it, the other changes by name, and the verdict."""
        by_kind = {kind: [change for change in self.changes if change.kind == kind] for kind in KINDS}
        results = {line["id"]: line for line in self.lines if line["kind"] == "result"}
        in_full = [change for kind in KINDS if KINDS[kind].in_full for change in by_kind[kind]]
        shown = list({_claim(change.id): change for change in reversed(in_full)}.values())[::-1][:IN_FULL]
        for change in shown:
            yield from self._regression(change, results[change.id])
        rest = [change for change in in_full if change not in shown]
        yield from _names(f"and {len(rest)} more", rest, most=len(rest))
        for kind, found in by_kind.items():
            if kind != "same" and not KINDS[kind].in_full:
                yield from _names(f"{kind}: {KINDS[kind].title}", found)
        counts = [f"{len(found)} {kind}" for kind, found in by_kind.items() if found]
        yield f"gate: {'holds' if self.holds else 'fails'}: {', '.join(counts)}"

    def _regression(self, change: Change, line: report.Line) -> Iterator[str]:
        examples = self.examples.get(change.id, self.base.parameters["examples"])
        yield f"{change.kind}: {change.id} {KINDS[change.kind].title}"
        if change.old != ABSENT:
            yield f"  before: {change.old}, over {examples} examples, on {self.base.version}"
        if change.id in self.elsewhere:
            yield f"  before, with this counterexample: {self.elsewhere[change.id]}"
        yield f"  now: {change.new}, over {line['examples']} examples, on {self.lines[0]['implementation']['version']}"
        yield from summary.details(line)
        yield f"  again: {self._replay(line) if 'failure' in line else runs.again(line, self.lines[0])}"
        yield ""

    def _replay(self, line: report.Line) -> str:
        """The command that runs the counterexample on whatever is installed."""
        words = ["autograd-conformance", "run", self.lines[0]["implementation"]["named"], "--profile", "replay"]
        words += ["--replay", str(self.path), "--properties", report.claim_of(line), "--device", line["device"]]
        return shlex.join(words + (["--functions", line["function"]] if "function" in line else []))


def _claim(id: str) -> str:
    """The property or clause of a test id."""
    return id.partition("[")[0].partition("/")[0]


def _names(title: str, found: Sequence[Change], most: int = BY_NAME) -> Iterator[str]:
    if found:
        yield title
        yield from (f"  {change.id}: {change.old} -> {change.new}" for change in found[:most])
    if len(found) > most:
        yield f"  ... and {len(found) - most} more"
