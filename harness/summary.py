"""What a user reads at the end of a run: the matrix, each shortfall, one verdict."""

from __future__ import annotations

import shlex
import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from autograd_conformance.harness import clause_table, matrix, report
from autograd_conformance.harness.blackbox import DEATH, HANG
from autograd_conformance.harness.outcomes import SHORTFALLS
from autograd_conformance.reference.clauses import CLAUSES
from autograd_conformance.reference.properties import PROPERTIES

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
        lines += [textwrap.shorten(text, width, placeholder=" ...") for text in _causes(known)]
    return lines


def _causes(known: Sequence[Line]) -> list[str]:
    """Of each cause the first test id that shows it, and how many more do."""
    order = {claim: number for number, claim in enumerate((*PROPERTIES, *CLAUSES))}
    causes: dict[str, list[str]] = {}
    for line in sorted(known, key=lambda line: (order[report.claim_of(line)], line["id"])):
        causes.setdefault(line["reason"], []).append(line["id"])
    return [
        f"{ids[0]}{f' and {len(ids) - 1} more' if len(ids) > 1 else ''}: {reason}" for reason, ids in causes.items()
    ]


def shortfalls(results: Sequence[Line], selection: Selection, suite: str | None = None) -> list[str]:
    """Each shortfall with what broke, the smallest call that shows it, and how to look closer."""
    order = {claim: number for number, claim in enumerate((*selection.properties, *selection.clauses))}
    found = [line for line in results if line["outcome"] in SHORTFALLS]
    found.sort(key=lambda line: (order.get(report.claim_of(line), 0), line["id"]))
    told = [_shortfall(line, selection, suite, number < WITH_SCRIPT) for number, line in enumerate(found[:IN_FULL])]
    lines = [text for one in told for text in one]
    rest = found[IN_FULL:]
    if rest:
        lines += [f"and {len(rest)} more:", *(f"  {line['outcome']:8}{line['id']}" for line in rest[:BY_NAME])]
    if len(rest) > BY_NAME:
        lines.append(f"  ... {len(rest) - BY_NAME} more, in the report")
    return lines


def _shortfall(line: Line, selection: Selection, suite: str | None, in_full: bool) -> list[str]:
    failure: Line = line.get("failure", {})
    lines = [f"{line['outcome']}: {line['id']}"]
    lines += [f"  {row}" for row in textwrap.wrap(_sentence(report.claim_of(line)), 98)]
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
    lines += [f"    {row}" for row in failure.get("traceback", ())]
    lines.append(f"  again: {command(line, selection, suite)}")
    if "script" in failure and not in_full:
        lines.append("  without this suite: see the script in the report")
    elif "script" in failure:
        lines += ["  without this suite:", *textwrap.indent(failure["script"], "    ").splitlines()]
    if "no_script" in failure:
        lines.append(f"  no script: {failure['no_script']}")
    return [*lines, ""]


def _sentence(claim: str) -> str:
    """What must hold, and of a clause where it says so."""
    if claim in CLAUSES:
        clause = CLAUSES[claim]
        return f"{clause.sentence} ({clause.level}; {clause.document})"
    return PROPERTIES[claim].sentence if claim in PROPERTIES else ""


def command(line: Line, selection: Selection, suite: str | None = None) -> str:
    """The command that runs one test id again, with the same examples."""
    # What ends its process needs one of its own.
    workers = "1" if line.get("failure", {}).get("type") in (HANG, DEATH) else "0"
    words = ["autograd-conformance", "run", selection.named, "-n", workers]
    words += ["--suite", suite] if suite else []
    words += ["--properties", report.claim_of(line)]
    words += ["--functions", line["function"]] if "function" in line else []
    words += ["--device", line["device"]]
    words += ["--profile", selection.profile.name, "--seed", str(selection.seed)]
    words += ["--replay", selection.replay] if selection.replay else []
    words += ["--dtype", selection.dtype] if selection.dtype else []
    return shlex.join(words)


def verdict(counts: Counter[str], selection: Selection) -> str:
    """How many test ids hold, in one line."""
    found = selection.implementation.environment()
    apart = ("unsupported", "skip", "known")
    total = sum(counts.values()) - sum(counts[name] for name in apart)
    held = counts["pass"] + counts["emulated"]
    words = {"skip": "skipped", "fail": "broken", "error": "errors"}
    others = [name for name in (*sorted(SHORTFALLS), "emulated", *apart) if counts[name]]
    told = ", ".join(f"{counts[name]} {words.get(name, name)}" for name in others)
    return f"{selection.implementation.name} {found.version}: {held} of {total} hold" + (f"; {told}" if told else "")
