"""What a user reads at the end of a run: the matrix, each shortfall, one verdict."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from autograd_conformance.harness import clause_table, matrix, report, runs
from autograd_conformance.harness.outcomes import SHORTFALLS

if TYPE_CHECKING:
    from autograd_conformance.harness.selection import Selection

Line = dict[str, Any]

# Shortfalls told with a script, told without one, and of which only the id is told; the report holds all of it.
WITH_SCRIPT = 2
IN_FULL = 8
BY_NAME = 40

_TOLD = ("got", "expected", "bound", "chosen", "hint", "message", "reason")
_LABELS = {"chosen": "with"}


def matrices(results: Sequence[Line], selection: Selection, width: int) -> list[str]:
    """One matrix a device, and what its symbols mean."""
    names = [function.name for function in selection.functions]
    found = matrix.matrices(results, selection.properties, names)
    lines: list[str] = []
    for one in found:
        lines += [f"{selection.implementation.name} on {one.device}", *matrix.text(one, width)]
    return [*lines, *matrix.columns(found[0], width), "", *textwrap.wrap(matrix.legend(found), width)] if found else []


def clauses(results: Sequence[Line], width: int) -> list[str]:
    """A sign for each clause, and a line for each test that an implementation is listed to fail."""
    lines = clause_table.overview(results)
    if lines:
        lines = ["clauses, a sign each", *lines, "", clause_table.legend(results), ""]
    known = [line for line in results if line["outcome"] == "known"]
    if known:
        lines.append(f"{len(known)} listed deviations, a line for each cause (the report tells each in full)")
        for reason, ids in runs.causes(known).items():
            more = f" and {len(ids) - 1} more" if len(ids) > 1 else ""
            lines.append(textwrap.shorten(f"{ids[0]}{more}: {reason}", width, placeholder=" ..."))
    return lines


def shortfalls(results: Sequence[Line], selection: Selection, suite: str | None = None) -> list[str]:
    """Each shortfall with what broke, the smallest call that shows it, and how to look closer."""
    found = sorted((line for line in results if line["outcome"] in SHORTFALLS), key=runs.place)
    header = report.header(selection, None)
    commands = [runs.again(line, header, suite) for line in found[:IN_FULL]]
    told = [_shortfall(line, commands[n], n < WITH_SCRIPT) for n, line in enumerate(found[:IN_FULL])]
    lines = [text for one in told for text in one]
    rest = found[IN_FULL:]
    if rest:
        lines += [f"and {len(rest)} more:", *(f"  {line['outcome']:8}{line['id']}" for line in rest[:BY_NAME])]
    if len(rest) > BY_NAME:
        lines.append(f"  ... {len(rest) - BY_NAME} more, in the report")
    return lines


def _shortfall(line: Line, again: str, in_full: bool) -> list[str]:
    failure: Line = line.get("failure", {})
    lines = [f"{line['outcome']}: {line['id']}", *details(line), f"  again: {again}"]
    if "script" in failure and not in_full:
        lines.append("  without this suite: see the script in the report")
    elif "script" in failure:
        lines += ["  without this suite:", *textwrap.indent(failure["script"], "    ").splitlines()]
    if "no_script" in failure:
        lines.append(f"  no script: {failure['no_script']}")
    return [*lines, ""]


def details(line: Line) -> list[str]:
    """What must hold, the smallest call that shows that it does not, and what came."""
    failure: Line = line.get("failure", {})
    lines = [f"  {row}" for row in textwrap.wrap(runs.sentence(report.claim_of(line)), 98)]
    if "call" in failure:
        lines.append(f"  call: {failure['call']}")
    if "what" in failure:
        lines.append(f"  what: {failure['what']}")
    told = {**failure, "reason": line.get("reason")}
    for key in _TOLD:
        if told.get(key):
            text = f"{failure['type']}: {told[key]}" if key == "message" else str(told[key])
            lines.append(f"  {_LABELS.get(key, key)}: {' '.join(text.split())}")
    if failure.get("flaky"):
        lines.append("  flaky: the same call breaks the property only sometimes")
    return lines + [f"    {row}" for row in failure.get("traceback", ())]


def verdict(counts: Counter[str], selection: Selection) -> str:
    """How many test ids hold, in one line."""
    return f"{selection.implementation.name} {selection.implementation.environment().version}: {runs.told(counts)}"
