"""The gate: how each test id changed since a baseline, and whether the run passes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.harness.reports import asked, baseline, ndjson
from autograd_conformance.harness.reports.baseline import Baseline, Entry


@dataclass(frozen=True)
class Kind:
    """A kind of change of a test id; ``fails`` if it fails the gate, ``in_full`` if it is printed with all details."""

    title: str
    fails: bool = True
    in_full: bool = False


KINDS = {
    "broken": Kind("no longer holds", in_full=True),
    "added": Kind("is new and does not hold", in_full=True),
    "other": Kind("still fails, but in another way", in_full=True),
    # The implementation lost something that the adapter now supplies.
    "helped": Kind("holds only with the adapter's help", in_full=True),
    "dropped": Kind("is no longer checked", in_full=True),
    "refusing": Kind("refuses more than before", in_full=True),
    "asked less": Kind("is asked less than before"),
    "worse": Kind("is not claimed, and does worse than before", in_full=True),
    "missing": Kind("in the baseline, but not run"),
    "recovered": Kind("holds, but the baseline or the list of deviations says that it does not"),
    "new": Kind("not in the baseline, and does not fail", fails=False),
    "better": Kind("better than before", fails=False),
    "same": Kind("as before", fails=False),
}

# The kind of change by the old outcome (left) and the new one (top); "absent" means that the test id was not run.
_TABLE = """
             pass       emulated   known   unsupported  skip     fixed      vacuous  fail    error   missing  absent
pass         same       helped     broken  dropped      dropped  recovered  broken   broken  broken  broken   missing
emulated     better     same       broken  dropped      dropped  recovered  broken   broken  broken  broken   missing
known        recovered  recovered  same    dropped      dropped  recovered  broken   broken  broken  broken   missing
unsupported  better     better     better  same         same     recovered  broken   broken  broken  broken   missing
skip         better     better     better  same         same     recovered  broken   broken  broken  broken   same
fixed        better     better     broken  dropped      dropped  same       broken   broken  broken  broken   missing
vacuous      recovered  recovered  better  dropped      dropped  recovered  same     broken  broken  broken   missing
fail         recovered  recovered  better  dropped      dropped  recovered  broken   same    broken  broken   missing
error        recovered  recovered  better  dropped      dropped  recovered  broken   broken  same    broken   missing
missing      recovered  recovered  better  dropped      dropped  recovered  broken   broken  broken  same     missing
absent       new        new        new     new          new      recovered  added    added   added   added    same
refuses      better     better     better  dropped      same     recovered  broken   broken  broken  broken   missing
holds        better     better     better  dropped      same     recovered  broken   broken  broken  broken   missing
silent       better     better     better  dropped      same     recovered  broken   broken  broken  broken   missing
dies         better     better     better  dropped      same     recovered  broken   broken  broken  broken   missing
"""

# The same where the implementation does not claim the capability now.
_UNCLAIMED_TABLE = """
             refuses  holds    silent   dies
pass         dropped  dropped  broken   broken
emulated     dropped  dropped  broken   broken
known        dropped  dropped  dropped  dropped
unsupported  same     better   worse    worse
skip         same     same     same     same
fixed        dropped  dropped  broken   broken
vacuous      dropped  dropped  dropped  dropped
fail         dropped  dropped  dropped  dropped
error        dropped  dropped  dropped  dropped
missing      dropped  dropped  dropped  dropped
absent       new      new      new      new
refuses      same     better   worse    worse
holds        worse    same     worse    worse
silent       better   better   same     worse
dies         better   better   better   same
"""


def _kinds() -> dict[tuple[str, str], str]:
    found = {}
    for table in (_TABLE, _UNCLAIMED_TABLE):
        columns, *rows = (line.split() for line in table.strip().splitlines())
        found.update({(row[0], new): kind for row in rows for new, kind in zip(columns, row[1:], strict=True)})
    return found


KIND_OF: Mapping[tuple[str, str], str] = _kinds()

ABSENT = Entry("absent")

# The name of an adapter's digest among those of the suite's rooms.
_ADAPTER = "adapter"


@dataclass(frozen=True)
class Change:
    """The old and the new entry of a test id; ``kind`` is a key of `KINDS`."""

    id: str
    kind: str
    old: Entry
    new: Entry
    # What is not asked any more.
    less: tuple[str, ...] = ()


def verify_alike(base: Baseline, new: Mapping[str, str], *, where: str) -> None:
    """Raise UsageProblem unless a run with these parameters can be compared with the baseline in ``where``."""
    for name in {**new, **base.parameters}:
        old, now = base.parameters.get(name, "all"), new.get(name, "all")
        if old != now:
            raise UsageProblem(
                f"{where} cannot be compared with this run: its {name} is {old}, and this run's is {now}; "
                "run with the same parameters, or accept a new baseline"
            )


def other_suite(base: Baseline, new: Mapping[str, str]) -> str:
    """What differs between the suite that made a baseline and one with these sources; empty if nothing does."""
    if not base.sources:
        return "is of format 1, which does not say how much was asked, and by which sources of the suite"
    rooms = [room for room in {**base.sources, **new} if base.sources.get(room) != new.get(room) and room != _ADAPTER]
    return f"was made with another suite: its {', '.join(rooms)} differ" if rooms else ""


def verify_suite(base: Baseline, new: Mapping[str, str], *, where: str) -> None:
    """Raise UsageProblem unless the baseline was made with a suite that has these sources."""
    other = other_suite(base, new)
    if other:
        raise UsageProblem(
            f"{where} {other}, so a test may be weaker than it was; use the suite that made it, or after an update of "
            "the suite accept a report of the implementation that it is of, or compare all the same: --other-suite"
        )


def warnings(base: Baseline, new: Mapping[str, str], *, where: str) -> Iterator[str]:
    """What differs and may explain changes, though it does not decide."""
    other = other_suite(base, new)
    if other:
        yield f"{where} {other}; what changed may be the suite's doing"
    if base.sources and base.sources.get(_ADAPTER) != new.get(_ADAPTER):
        yield f"the adapter is not the one that {where} was made with"


def changes(base: Baseline, new: Baseline) -> list[Change]:
    """The change of every test id, sorted by id. Does not compare parameters; see `verify_alike`."""
    ids = sorted(base.entries.keys() | new.entries.keys())
    return [_change(id, base.entries.get(id, ABSENT), new.entries.get(id, ABSENT)) for id in ids]


def _change(id: str, old: Entry, new: Entry) -> Change:
    kind = KIND_OF[old.outcome, new.outcome]
    if kind == "same" and old[:2] != new[:2] and old.outcome == new.outcome:
        more = new.refused - old.refused
        kind = "other" if more == 0 else "refusing" if more > 0 else "better"
    less = tuple(asked.less((old.outcome, old.asked), (new.outcome, new.asked)))
    return Change(id, "asked less" if less and not KINDS[kind].fails else kind, old, new, less)


@dataclass(frozen=True)
class Gate:
    """A report compared with a baseline.

    ``examples`` is the number of examples of each test id in the old run, if known. ``elsewhere`` is the result of each
    new counterexample on the old implementation, if it was run there.
    """

    base: Baseline
    path: Path
    lines: Sequence[ndjson.Line]
    examples: Mapping[str, int] = field(default_factory=dict)
    elsewhere: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def new(self) -> Baseline:
        """The report, as a baseline."""
        return baseline.of_report(self.path, list(self.lines))

    @cached_property
    def changes(self) -> list[Change]:
        """The change of every test id."""
        return changes(self.base, self.new)

    @property
    def unclaimed(self) -> list[str]:
        """What the adapter does not claim any more."""
        return sorted(self.base.claims - self.new.claims)

    @property
    def holds(self) -> bool:
        """Whether the run passes the gate."""
        return not self.unclaimed and not any(KINDS[change.kind].fails for change in self.changes)
