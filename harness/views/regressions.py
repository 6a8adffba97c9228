"""The result of the gate as text: each regression in full, the other changes by id, and the verdict."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from autograd_conformance.harness.reports import ndjson
from autograd_conformance.harness.reports.gate import ABSENT, KINDS, Change, Gate
from autograd_conformance.harness.views import causes, describe, summary

# The most causes shown in full, and the most changes shown by id for each other kind.
IN_FULL = 40
BY_NAME = 40

# What holds unexpectedly while other things fail.
_SIDE_EFFECT = "; this may be a side effect of what is broken above: look at that first"


def text(gate: Gate) -> Iterator[str]:
    """The lines to print."""
    by_kind = _by_kind(gate)
    in_full = {change.id: change for kind in KINDS if KINDS[kind].in_full for change in by_kind[kind]}
    apart = by_cause(gate)
    for cause in apart[:IN_FULL]:
        yield from _regression(gate, in_full, cause)
    rest = [line for cause in apart[IN_FULL:] for line in (cause.head, *cause.nearby)]
    yield from _names(f"and {len(apart) - IN_FULL} more", [in_full[line["id"]] for line in rest])
    yield from _asked_less(gate.unclaimed, by_kind["asked less"])
    for kind, found in by_kind.items():
        if kind not in ("same", "asked less") and not KINDS[kind].in_full:
            aside = _SIDE_EFFECT if kind == "recovered" and apart else ""
            yield from _names(f"{kind}: {KINDS[kind].title}{aside}", found)
    counts = [f"{len(found)} {kind}" for kind, found in by_kind.items() if found]
    counts += [f"{len(gate.unclaimed)} not claimed any more"] if gate.unclaimed else []
    yield f"gate: {'holds' if gate.holds else 'fails'}: {', '.join(counts)}"


def by_cause(gate: Gate) -> list[causes.Cause]:
    """The regressions by their probable cause, which is given once for each kind of change."""
    by_kind = _by_kind(gate)
    results = {line["id"]: line for line in gate.lines if line["kind"] == "result"}
    return [
        cause
        for kind in KINDS
        if KINDS[kind].in_full
        for cause in causes.causes(results[change.id] for change in by_kind[kind])
    ]


def _by_kind(gate: Gate) -> dict[str, list[Change]]:
    return {kind: [change for change in gate.changes if change.kind == kind] for kind in KINDS}


def _asked_less(unclaimed: Sequence[str], found: Sequence[Change]) -> Iterator[str]:
    """What is asked less than before, with an example for each way."""
    if unclaimed:
        yield f"asked less: the adapter does not claim {', '.join(unclaimed)} any more"
    by_way: dict[tuple[str, ...], list[Change]] = {}
    for change in found:
        by_way.setdefault(change.less, []).append(change)
    for less, alike in sorted(by_way.items(), key=lambda way: -len(way[1])):
        first, others = alike[0], [change.id for change in alike[1 : BY_NAME + 1]]
        yield f"asked less: {' and '.join(less)}: {first.id}"
        yield f"  before: {first.old.outcome}, {first.old.asked}"
        yield f"  now: {first.new.outcome}, {first.new.asked}"
        more = f" and {len(alike) - 1 - BY_NAME} more" if len(alike) - 1 > BY_NAME else ""
        if others:
            yield f"  also: {', '.join(others)}{more}"


def _regression(gate: Gate, changes: Mapping[str, Change], cause: causes.Cause) -> Iterator[str]:
    header, line = gate.lines[0], cause.head
    change = changes[line["id"]]
    examples = gate.examples.get(change.id, gate.base.parameters["examples"])
    yield f"{change.kind}: {change.id} {KINDS[change.kind].title}"
    if change.old != ABSENT:
        yield f"  before: {change.old}, over {examples} examples, on {gate.base.version}"
    if change.id in gate.elsewhere:
        yield f"  before, with this counterexample: {gate.elsewhere[change.id]}"
    yield f"  now: {change.new}, over {line['examples']} examples, on {header['implementation']['version']}"
    yield from summary.details(line)
    yield from summary.same_cause(cause)
    yield from summary.in_group(cause, lambda each: _in_a_line(gate, changes[each["id"]], each))
    yield f"  rerun: {_replay(gate, line) if 'failure' in line else describe.rerun(line, header)}"
    yield ""


def _in_a_line(gate: Gate, change: Change, line: ndjson.Line) -> str:
    """A change with what happened."""
    before = f"; before, with this counterexample: {gate.elsewhere[change.id]}" if change.id in gate.elsewhere else ""
    happened = summary.in_a_line(line).removeprefix(f"{change.id}: ")
    return f"{change.id}: {change.old.outcome} -> {change.new.outcome}: {happened}{before}"


def _replay(gate: Gate, line: ndjson.Line) -> str:
    """The command that runs the counterexample again on the installed implementation."""
    words = ["autograd-conformance", "run", gate.lines[0]["implementation"]["named"], "--profile", "replay"]
    words += ["--replay", str(gate.path), "--properties", ndjson.claim_of(line)]
    words += [*describe.packages(gate.lines[0]), "--device", line["device"]]
    return shlex.join(words + (["--functions", line["function"]] if "function" in line else []))


def _names(title: str, found: Sequence[Change]) -> Iterator[str]:
    if found:
        yield title
        yield from (f"  {change.id}: {change.old} -> {change.new}" for change in found[:BY_NAME])
    if len(found) > BY_NAME:
        yield f"  ... and {len(found) - BY_NAME} more"
