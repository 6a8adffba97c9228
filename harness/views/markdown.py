"""A run in Markdown, for the summary page of a CI job."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tabulate import tabulate

from autograd_conformance.harness.outcomes import OUTCOMES
from autograd_conformance.harness.reports import reading
from autograd_conformance.harness.reports.ndjson import Line
from autograd_conformance.harness.reports.reading import Report
from autograd_conformance.harness.views import describe

# GitHub shows no summary of a step that is larger than this number of bytes.
LIMIT = 1024 * 1024

# The most failures shown in full, failures shown by id only, causes of listed deviations, and characters of each text.
# Together they stay far below the limit.
IN_FULL = 20
BY_NAME = 200
CAUSES = 200
CHARACTERS = 1000

_MARKS = {"holds": "✅", "fails": "❌", reading.UNFINISHED: "⚠️", reading.DAMAGED: "⚠️"}
_SHOWN = {
    "what": "what",
    "got": "got",
    "expected": "expected",
    "bound": "bound",
    "chosen": "with",
    "hint": "hint",
    "because": "because",
}

# Characters with a meaning in Markdown, GitHub's mathematics or HTML.
_SPECIAL = re.compile(r"([\\`*_\[\]<>|~#&$!@])")


def text(report: Report) -> str:
    """The summary: the verdict, the number of each outcome, the failures, and the listed deviations in a fold."""
    parts = [*_heading(report), *_failures(report), *_deviations(report)]
    return "\n\n".join(parts) + "\n"


def _heading(report: Report) -> Iterator[str]:
    header = report.header
    name = escaped(f"{report.name} {report.version}")
    yield f"### {_MARKS[report.verdict]} {name} {report.verdict}: {describe.counts(report.counts)}"
    if report.flaw:
        yield f"**The run {report.verdict}**: {escaped(report.flaw.reason)}."
    yield str(tabulate([(n, c, OUTCOMES[n]) for n, c in report.counts.items()], ("outcome", "test ids", ""), "github"))
    shard = f"shard {header['shard']}; " if header.get("shard") else ""
    yield escaped(
        f"{shard}profile {header['profile']}, {header['examples']} examples, seed {header['seed']}; devices "
        f"{', '.join(header['devices'])}; Python {header['python']}; suite {header['suite']['version']}"
    )


def _failures(report: Report) -> Iterator[str]:
    found = report.failures
    if found:
        yield f"#### {len(found)} fail"
    for line in found[:IN_FULL]:
        yield from _failure(report, line)
    rest = found[IN_FULL:]
    if rest:
        named = [f"- {line['outcome']} {escaped(line['id'])}" for line in rest[:BY_NAME]]
        named += [f"- and {len(rest) - BY_NAME} more, in the report"] if len(rest) > BY_NAME else []
        yield _folded(f"{len(rest)} more", "\n".join(named))


def _failure(report: Report, line: Line) -> Iterator[str]:
    """One failure: the sentence, the actual and expected result, the smallest call, and the command to rerun it."""
    failure = line.get("failure", {})
    yield f"**{line['outcome']}: {escaped(line['id'])}** {escaped(describe.must_hold(line))}"
    if "what" in failure:
        yield "\n".join(f"- {title}: {escaped(failure[key])}" for key, title in _SHOWN.items() if failure.get(key))
    else:
        yield f"- why: {escaped(describe.message(line, report.results))}"
    call = [failure["call"]] if failure.get("call") else []
    yield _literal("\n".join([*call, describe.rerun(line, report.header)]))


def _deviations(report: Report) -> Iterator[str]:
    known = [line for line in report.results if line["outcome"] == "known"]
    graded = describe.causes(known).items()
    found = [(grade, reason, ids) for grade, causes in graded for reason, ids in causes.items()]
    items = [f"- {grade}: {escaped(ids[0])}{_more(ids)}: {escaped(reason)}" for grade, reason, ids in found[:CAUSES]]
    items += [f"- and {len(found) - CAUSES} more causes, in the report"] if len(found) > CAUSES else []
    if found:
        yield _folded(f"{len(known)} listed deviations, by {len(found)} causes", "\n".join(items))


def _more(ids: Sequence[str]) -> str:
    return f" and {len(ids) - 1} more" if len(ids) > 1 else ""


def _folded(title: str, body: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def escaped(text: str) -> str:
    """The text on one line, shortened, with everything escaped that Markdown or HTML would interpret."""
    return _SPECIAL.sub(r"\\\1", _cut(" ".join(str(text).split())))


def _literal(text: str) -> str:
    """A block of code; its fence is longer than any fence in the text."""
    text = "\n".join(_cut(line) for line in text.splitlines())
    longest = max((len(found) for found in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def _cut(text: str) -> str:
    return text if len(text) <= CHARACTERS else f"{text[:CHARACTERS]} ..."
