"""A run in Markdown, for the summary page of a CI job."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tabulate import tabulate

from autograd_conformance.harness import report, runs
from autograd_conformance.harness.outcomes import OUTCOMES
from autograd_conformance.harness.runs import Line, Run

# Bytes that GitHub shows of one step: a summary that is larger is not shown at all.
LIMIT = 1024 * 1024

# Shortfalls told in full, shortfalls of which only the id is told, causes of listed deviations that are told, and
# characters told of each text. Together they stay far below the limit.
IN_FULL = 20
BY_NAME = 200
CAUSES = 200
CHARACTERS = 1000

_MARKS = {"holds": "✅", "falls short": "❌", runs.UNFINISHED: "⚠️", runs.SPOILT: "⚠️"}
_TOLD = {"what": "what", "got": "got", "expected": "expected", "bound": "bound", "chosen": "with", "hint": "hint"}

# What Markdown, GitHub's mathematics and HTML read as something else than itself.
_SPECIAL = re.compile(r"([\\`*_\[\]<>|~#&$!@])")


def text(run: Run) -> str:
    """The summary: the verdict, how many had each outcome, what falls short, and the listed deviations folded away."""
    parts = [*_heading(run), *_shortfalls(run), *_deviations(run)]
    return "\n\n".join(parts) + "\n"


def _heading(run: Run) -> Iterator[str]:
    header = run.header
    yield f"### {_MARKS[run.verdict]} {escaped(f'{run.name} {run.version}')} {run.verdict}: {runs.told(run.counts)}"
    if run.flaw:
        yield f"**The run {run.verdict}**: {escaped(run.flaw)}."
    yield str(tabulate([(n, c, OUTCOMES[n]) for n, c in run.counts.items()], ("outcome", "test ids", ""), "github"))
    shard = f"shard {header['shard']}; " if header.get("shard") else ""
    yield escaped(
        f"{shard}profile {header['profile']}, {header['examples']} examples, seed {header['seed']}; devices "
        f"{', '.join(header['devices'])}; Python {header['python']}; suite {header['suite']['version']}"
    )


def _shortfalls(run: Run) -> Iterator[str]:
    found = run.shortfalls
    if found:
        yield f"#### {len(found)} fall short"
    for line in found[:IN_FULL]:
        yield from _shortfall(run, line)
    rest = found[IN_FULL:]
    if rest:
        named = [f"- {line['outcome']} {escaped(line['id'])}" for line in rest[:BY_NAME]]
        named += [f"- and {len(rest) - BY_NAME} more, in the report"] if len(rest) > BY_NAME else []
        yield _folded(f"{len(rest)} more", "\n".join(named))


def _shortfall(run: Run, line: Line) -> Iterator[str]:
    """One shortfall: the sentence, the smallest call, what came, and the command that shows it again."""
    failure = line.get("failure", {})
    yield f"**{line['outcome']}: {escaped(line['id'])}** {escaped(runs.sentence(report.claim_of(dict(line))))}"
    if "what" in failure:
        yield "\n".join(f"- {title}: {escaped(failure[key])}" for key, title in _TOLD.items() if failure.get(key))
    else:
        yield f"- why: {escaped(runs.message(line))}"
    call = [failure["call"]] if failure.get("call") else []
    yield _literal("\n".join([*call, run.again(line)]))


def _deviations(run: Run) -> Iterator[str]:
    known = [line for line in run.results if line["outcome"] == "known"]
    found = list(runs.causes(known).items())
    told = [f"- {escaped(ids[0])}{_more(ids)}: {escaped(reason)}" for reason, ids in found[:CAUSES]]
    told += [f"- and {len(found) - CAUSES} causes more, in the report"] if len(found) > CAUSES else []
    if found:
        yield _folded(f"{len(known)} listed deviations, by {len(found)} causes", "\n".join(told))


def _more(ids: Sequence[str]) -> str:
    return f" and {len(ids) - 1} more" if len(ids) > 1 else ""


def _folded(title: str, body: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def escaped(text: str) -> str:
    """The text on one line, cut to what is told of it, with nothing in it that Markdown or HTML would act upon."""
    return _SPECIAL.sub(r"\\\1", _cut(" ".join(str(text).split())))


def _literal(text: str) -> str:
    """A block of code, in a fence longer than what the text holds of its kind."""
    text = "\n".join(_cut(line) for line in text.splitlines())
    longest = max((len(found) for found in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def _cut(text: str) -> str:
    return text if len(text) <= CHARACTERS else f"{text[:CHARACTERS]} ..."
