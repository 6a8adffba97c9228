"""The end of a run for the terminal: the failures, the matrices and the verdict."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable, Sequence

from tabulate import tabulate

from autograd_conformance.harness.outcomes import BROKEN, FAILING, KEPT, MISSING, NOT_RUN, UNCLAIMED, Kind, in_words
from autograd_conformance.harness.reports.ndjson import Line
from autograd_conformance.harness.views import capabilities, causes, describe, findings, matrix
from autograd_conformance.implementations.deviations import in_a_row

# The most failures shown with a script, shown in full, and shown by id; the report has all of them.
WITH_SCRIPT = 2
IN_FULL = 8
BY_NAME = 40
# The most parts of a package shown that it lacks, and the most reasons for which tests are not run.
PARTS = 12

_SHOWN = ("got", "expected", "bound", "chosen", "hint", "because", "message", "reason")
_LABELS = {"chosen": "with"}


def matrices(results: Sequence[Line], header: Line, width: int) -> list[str]:
    """How many rows of the matrices pass, the others, and the meaning of the symbols."""
    found = matrix.matrices(results, header["properties"], header["functions"])
    if not found:
        return []
    shown = matrix.remarkable(found)
    rows, others = sum(len(one.properties) for one in found), len(shown.properties)
    title = f"{header['implementation']['name']} on {', '.join(one.device for one in found)}"
    if not others:
        return [f"{title}: all {rows} rows pass"]
    lines = [f"{title}: {rows - others} of {rows} rows pass; {'this does' if others == 1 else 'these do'} not"]
    names = matrix.columns(shown, width)
    return [*lines, *matrix.text(shown, width), *names, "", *textwrap.wrap(matrix.legend([shown]), width)]


def known(results: Sequence[Line], header: Line) -> list[str]:
    """How many test ids are known, by how many findings of each grade, and what lists these."""
    found = [line for line in results if line["outcome"] == "known"]
    if not found:
        return []
    name = header["implementation"]["name"]
    scripts = {str(d.cause): d.cause.script for d in findings.listed().get(name, ())}
    lists = "autograd-conformance list findings" if scripts else "autograd-conformance report"
    lines = [f"known: {_several(len(found), 'test id')}, which {lists} explains"]
    for grade, causes_of in describe.causes(found).items():
        ids = sum(map(len, causes_of.values()))
        number = len({scripts.get(reason, reason) for reason in causes_of})
        lines.append(f"  {grade}: {_several(ids, 'test id')} of {_several(number, 'finding')}")
    return lines


def _several(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number > 1 else ''}"


def unclaimed(results: Sequence[Line], width: int) -> list[str]:
    """What happens where a capability is not claimed: a row for each one, and a line for each finding.

    Nothing, if all is refused or holds: the verdict counts that.
    """
    found = [line for line in results if line["outcome"] in ("silent", "dies")]
    if not found:
        return []
    lines = str(tabulate(capabilities.unclaimed(results), ("not claimed", *UNCLAIMED))).splitlines()
    for cause in causes.causes(found)[:BY_NAME]:
        more = f" and {len(cause.lines) - 1} more" if len(cause.lines) > 1 else ""
        said = " ".join(describe.message(cause.head).split())
        row = f"{cause.head['outcome']}: {cause.head['id']}{more}: {said}"
        lines.append(textwrap.shorten(row, width, placeholder=" ..."))
    return lines


def failures(results: Sequence[Line], header: Line, suite: str | None = None) -> list[str]:
    """Each cause of failures with its smallest call, the actual and expected result, and the command to rerun it."""
    failing = [line for line in results if line["outcome"] in FAILING and line["outcome"] != MISSING]
    found = causes.causes(failing)
    lines: list[str] = []
    if len(found) < len(failing):
        which = "one probable cause" if len(found) == 1 else f"{len(found)} probable causes, the largest first"
        lines += [f"{len(failing)} test ids by {which}", ""]
    for number, cause in enumerate(found[:IN_FULL]):
        lines += _failure(cause, describe.rerun(cause.head, header, suite), number < WITH_SCRIPT, results)
    rest = found[IN_FULL:]
    if rest:
        lines += [f"and {len(rest)} more:", *(f"  {c.head['outcome']:8}{c.title}" for c in rest[:BY_NAME])]
    if len(rest) > BY_NAME:
        lines.append(f"  ... {len(rest) - BY_NAME} more, in the report")
    return lines


def _failure(cause: causes.Cause, rerun: str, with_script: bool, results: Sequence[Line]) -> list[str]:
    line = cause.head
    failure: Line = line.get("failure", {})
    lines = [
        f"{line['outcome']}: {line['id']}",
        *details(line, results),
        *same_cause(cause),
        *in_group(cause, in_a_line),
    ]
    lines.append(f"  rerun: {rerun}")
    if "script" in failure and not with_script:
        lines.append("  standalone: see the script in the report")
    elif "script" in failure:
        lines += ["  standalone:", *textwrap.indent(failure["script"], "    ").splitlines()]
    if "no_script" in failure:
        lines.append(f"  no script: {failure['no_script']}")
    return [*lines, ""]


def same_cause(cause: causes.Cause) -> list[str]:
    """The other test ids of a cause in a line, if there are any."""
    count = len(cause.lines) - 1
    return [f"  same cause: {count} more test id{'s' if count > 1 else ''}: {cause.others}"] if count else []


def in_a_line(line: Line) -> str:
    """A failing test id with what happened, in a line."""
    return f"{line['id']}: {' '.join(describe.message(line).split())}"


def in_group(cause: causes.Cause, said: Callable[[Line], str]) -> list[str]:
    """What also fails in the group of a cause, a line each: these may be other faults."""
    rows = [f"    {said(line)}" for line in cause.nearby[:BY_NAME]]
    rows += [f"    and {len(cause.nearby) - BY_NAME} more, in the report"] if len(cause.nearby) > BY_NAME else []
    return ["  also failing in this group:", *rows] if rows else []


def details(line: Line, results: Sequence[Line] = ()) -> list[str]:
    """What must hold, the smallest call that breaks it, and the actual and expected result.

    ``results`` are those of the run, which say what to do about a listed deviation that passes.
    """
    failure: Line = line.get("failure", {})
    lines = [f"  {row}" for row in textwrap.wrap(describe.must_hold(line), 98)]
    if "call" in failure:
        lines.append(f"  call: {failure['call']}")
    raised = failure.get("kind") == Kind.RAISED
    if "what" in failure:
        lines.append(f"  {' '.join(in_words(failure).split())}" if raised else f"  what: {failure['what']}")
    reason = describe.message(line, results) if line["outcome"] == "fixed" else line.get("reason")
    shown = {**failure, "reason": reason, **(dict.fromkeys(("got", "expected")) if raised else {})}
    for key in _SHOWN:
        if shown.get(key):
            text = f"{failure['type']}: {shown[key]}" if key == "message" else str(shown[key])
            lines.append(f"  {_LABELS.get(key, key)}: {' '.join(text.split())}")
    if failure.get("flaky"):
        lines.append("  flaky: the same call does not always break the property")
    return lines + [f"    {row}" for row in failure.get("traceback", ())]


def missing(results: Sequence[Line]) -> list[str]:
    """What the package lacks, a line for each part with the number of test ids that need it."""
    parts = Counter(line["reason"].removeprefix("needs ") for line in results if line["outcome"] == MISSING)
    rows = [f"missing: {name}, for {_several(count, 'test id')}" for name, count in parts.most_common(PARTS)]
    rest = len(parts) - len(rows)
    return [*rows, *([f"missing: {_several(rest, 'more part')}, in the report"] if rest > 0 else [])]


def score(results: Sequence[Line]) -> str:
    """How many sentences are kept, broken, or about what is missing; empty if nothing is missing.

    What was not run says nothing about a sentence. One of which something was not decided is in no count.
    """
    found: dict[str, set[str]] = {}
    for line in results:
        if line["outcome"] not in NOT_RUN:
            found.setdefault(line.get("clause") or line["property"], set()).add(line["outcome"])
    broken = sum(bool(outcomes & BROKEN) for outcomes in found.values())
    lacking = sum(MISSING in outcomes and not outcomes & BROKEN for outcomes in found.values())
    kept = sum(outcomes <= KEPT for outcomes in found.values())
    return f"sentences: {kept} kept, {broken} broken, {lacking} about what is missing" if lacking else ""


def verdict(counts: Counter[str], header: Line) -> str:
    """How many test ids hold, in one line."""
    implementation = header["implementation"]
    return f"{implementation['name']} {implementation['version']}: {describe.counts(counts)}"


def unchecked(header: Line) -> str:
    """That the release is one that was never checked; empty if it was."""
    implementation = header["implementation"]
    if "checked" not in implementation:
        return ""
    return (
        f"{implementation['name']} {implementation['version']} is a release that this suite was never checked with "
        f"(but with {in_a_row(implementation['checked'])}): "
        "what fails may be known of other releases, or new in this one"
    )


def not_run(results: Sequence[Line]) -> list[str]:
    """Why test ids are unsupported or skipped, a line for each reason with the number of them and one of them."""
    ids: dict[tuple[str, str], list[str]] = {}
    for line in results:
        outcome: str = line["outcome"]
        if outcome in NOT_RUN:
            ids.setdefault((describe.WORDS.get(outcome, outcome), line["reason"]), []).append(line["id"])
    rows = sorted(ids.items(), key=lambda row: -len(row[1]))
    lines = [f"{word}: {_several(len(f), 'test id')}, such as {f[0]}: {reason}" for (word, reason), f in rows[:PARTS]]
    rest = rows[PARTS:]
    more = f"not run for other reasons: {_several(sum(len(f) for _, f in rest), 'test id')}, in the report"
    return [*lines, *([more] if rest else [])]
