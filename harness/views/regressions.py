"""The result of the gate as text: each regression in full, the other changes by id, and the verdict."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from autograd_conformance.harness.reports import ndjson
from autograd_conformance.harness.reports.gate import ABSENT, KINDS, Change, Gate
from autograd_conformance.harness.views import causes, describe, summary

# The most causes shown in full, and the most changes shown by id for each other kind.
IN_FULL = 40
BY_NAME = 40


def text(gate: Gate) -> Iterator[str]:
    """The lines to print."""
    by_kind = {kind: [change for change in gate.changes if change.kind == kind] for kind in KINDS}
    results = {line["id"]: line for line in gate.lines if line["kind"] == "result"}
    in_full = {change.id: change for kind in KINDS if KINDS[kind].in_full for change in by_kind[kind]}
    # What a cause explains is shown once for each kind of change.
    apart = [
        cause
        for kind in KINDS
        if KINDS[kind].in_full
        for cause in causes.causes(results[change.id] for change in by_kind[kind])
    ]
    for cause in apart[:IN_FULL]:
        yield from _regression(gate, in_full[cause.head["id"]], cause)
    yield from _names(f"and {len(apart) - IN_FULL} more", [in_full[cause.head["id"]] for cause in apart[IN_FULL:]])
    for kind, found in by_kind.items():
        if kind != "same" and not KINDS[kind].in_full:
            yield from _names(f"{kind}: {KINDS[kind].title}", found)
    counts = [f"{len(found)} {kind}" for kind, found in by_kind.items() if found]
    yield f"gate: {'holds' if gate.holds else 'fails'}: {', '.join(counts)}"


def _regression(gate: Gate, change: Change, cause: causes.Cause) -> Iterator[str]:
    header, line = gate.lines[0], cause.head
    examples = gate.examples.get(change.id, gate.base.parameters["examples"])
    yield f"{change.kind}: {change.id} {KINDS[change.kind].title}"
    if change.old != ABSENT:
        yield f"  before: {change.old}, over {examples} examples, on {gate.base.version}"
    if change.id in gate.elsewhere:
        yield f"  before, with this counterexample: {gate.elsewhere[change.id]}"
    yield f"  now: {change.new}, over {line['examples']} examples, on {header['implementation']['version']}"
    yield from summary.details(line)
    yield from summary.same_cause(cause)
    yield f"  rerun: {_replay(gate, line) if 'failure' in line else describe.rerun(line, header)}"
    yield ""


def _replay(gate: Gate, line: ndjson.Line) -> str:
    """The command that runs the counterexample again on the installed implementation."""
    words = ["autograd-conformance", "run", gate.lines[0]["implementation"]["named"], "--profile", "replay"]
    words += ["--replay", str(gate.path), "--properties", ndjson.claim_of(line), "--device", line["device"]]
    return shlex.join(words + (["--functions", line["function"]] if "function" in line else []))


def _names(title: str, found: Sequence[Change]) -> Iterator[str]:
    if found:
        yield title
        yield from (f"  {change.id}: {change.old} -> {change.new}" for change in found[:BY_NAME])
    if len(found) > BY_NAME:
        yield f"  ... and {len(found) - BY_NAME} more"
