"""What `check` prints about a user's Function."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from autograd_conformance.harness.check.declaration.facts import Facts
from autograd_conformance.harness.check.refusals import declined
from autograd_conformance.harness.check.report import facts_in_words, script_runner
from autograd_conformance.harness.check.report.grouping import (
    Group,
    Judged,
    adds_nothing,
    grouped,
    met_in,
    with_further,
)
from autograd_conformance.harness.check.report.verdicts import (
    DECLINED,
    LOST,
    ORDER,
    RAISED,
    REFUSED,
    UNVERIFIED,
    Verdict,
    is_flaky,
    judged,
)
from autograd_conformance.harness.outcomes import Kind, in_words
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.reference.properties import PROPERTIES

_WIDEST = 110

# Lines of a traceback that are shown.
_FRAMES = 6

# The fields of a failure that are shown, with their titles.
_DETAILS = {
    "bound": "bound", "chosen": "with", "hint": "hint", "right_with": "right with", "call": "call", "values": "values",
}  # fmt: skip

# The words of a hint that speak of another block.
_ELSEWHERE = re.compile(r" as well\b| \([A-Z-]+\)|; fix that first")

# A fault that a process of its own does not show.
_ALONE = "a script that makes this call in a process of its own shows no fault"
_DOUBTFUL = "the number that was expected may come from earlier calls, too"
_EARLIER = (
    "the Function keeps something of earlier calls, for example a cache whose key lacks an argument, a class attribute "
    "or a global"
)

_AGAIN = "the same call gave something else when it was made again"


def rows(title: str, facts: Facts, lines: Sequence[ndjson.Line], scripts: Path, unfinished: str = "") -> Iterator[str]:
    """The facts about a Function, its faults, and the checks without a verdict, as rows of text.

    Standalone scripts are written to the folder ``scripts``, except those that show no fault when they are run.
    ``unfinished`` says why there are no more lines.
    """
    found = judged(lines, compared=facts.compared, asked=facts.asked)
    faults = [(line, v) for line, v in found if v is not None and v.fault]
    notes = worth_a_note([(line, v) for line, v in found if v is not None and not v.fault], faults)
    refused = [*declined.lines(facts.declined)]
    refused += declined.lines_of_results([line for line, _ in notes if "declined" in line], facts.declined)
    yield title
    for fact in (*facts_in_words.in_words(facts), *filter(None, [unfinished]), *_own_faults(facts, lines)):
        yield from _wrapped(fact, 2)
    edges = sum(v.edge for _, v in faults)
    yield f"  {_missing(notes, bool(refused))}{_counts(found, len(faults) - edges, edges, len(notes))}"
    for line, v in found:
        if v is None and "slow" in line:
            made = f"{line['slow']} examples held before --time-limit; it was too short for all"
            yield from _wrapped(f"{ndjson.test_of(line)}: {made}", 2)
    yield from _groups(grouped(list(with_further(faults))), scripts)
    for sentence in facts.stale:
        yield ""
        yield from _wrapped(f"STALE: {sentence}", 2)
    for line, v in notes:
        if v.word != DECLINED or "declined" not in line:
            yield ""
            yield from _note(line, v, bool(faults))
    for indent, text in refused:
        if indent == 2:
            yield ""
        yield from _wrapped(text, indent)
    yield ""


def _own_faults(facts: Facts, lines: Sequence[ndjson.Line]) -> Iterator[str]:
    """What failed in the suite itself, each once, with the tests in which it did."""
    met: dict[str, list[str]] = {each: ["discovery"] for each in facts.own_faults}
    for line in lines:
        for each in line.get("own_faults", ()):
            met.setdefault(each, []).append(ndjson.test_of(line))
    for each, tests in met.items():
        yield (
            f"autograd-conformance itself failed in {', '.join(tests)}: {each}; please report it; a cause may be "
            "missing, the verdicts stand"
        )


def worth_a_note(notes: Sequence[Judged], faults: Sequence[Judged]) -> list[Judged]:
    """What is said once of every test of a property, and what small values do not only add to a fault."""
    plain = {(line["property"], v.word) for line, v in notes if "variant" not in line}
    wrong = {ndjson.test_of(line) for line, _ in faults}

    def is_known(line: ndjson.Line, v: Verdict) -> bool:
        return "variant" in line and ((line["property"], v.word) in plain or adds_nothing(line, wrong))

    kept = [(line, v) for line, v in notes if not is_known(line, v)]
    return sorted(kept, key=lambda note: (note[1].word != UNVERIFIED, ORDER.index(note[0]["property"])))


def _counts(found: Sequence[tuple[ndjson.Line, Verdict | None]], wrong: int, edges: int, undecided: int) -> str:
    held = sum(line["outcome"] in ("pass", "emulated") and v is None for line, v in found)
    hold = "check holds" if held == 1 else "checks hold"
    do = "does" if wrong == 1 else "do"
    beside = {f"edge{'s' * (edges > 1)}": edges, "undecided": undecided}
    return ", ".join([f"{held} {hold}, {wrong} {do} not", *(f"{n} {word}" for word, n in beside.items() if n)])


def _missing(notes: Sequence[Judged], refused: bool) -> str:
    """What is not verified, or that declared calls are refused, as the beginning of a sentence."""
    unverified = [line["property"] for line, v in notes if v.word == UNVERIFIED]
    if unverified:
        return f"{' and '.join(each.verifies for each in PROPERTIES.values() if each.id in unverified)} not verified; "
    return "declared calls refused; " if refused or any(v.word == DECLINED for _, v in notes) else ""


def _groups(groups: Sequence[Group], scripts: Path) -> Iterator[str]:
    """The faults, each with the place of its script."""
    texts = {script_path(group.line, scripts): group.line["failure"].get("script", "") for group in groups}
    missing = script_runner.written({path: text for path, text in texts.items() if text})
    right = script_runner.right([path for path, why in missing.items() if not why])
    # Where one fault comes from earlier calls, so may what was expected of another call.
    history = any(script_path(group.line, scripts) in right and group.is_whole for group in groups)
    for group in groups:
        path = script_path(group.line, scripts)
        why = missing.get(path, "")
        if history and group.verdict.word not in RAISED:
            why, group = _DOUBTFUL, replace(group, verdict=replace(group.verdict, guess=_EARLIER))
        if path in right:
            why = _ALONE
        yield ""
        yield from _group(group, path, why)


def _group(group: Group, path: Path, missing: str) -> Iterator[str]:
    """A fault with its script, or why that is ``missing``, and what follows from it."""
    line = group.line
    if missing in (_ALONE, _DOUBTFUL):
        path.unlink(missing_ok=True)
        line = {**line, "failure": {**line["failure"], "right_with": ""}}
    yield from _fault(line, group.verdict)
    yield from _script(line, path, missing)
    for other in group.other_exceptions():
        yield from _wrapped(f"also raised: {other['failure']['got']} ({ndjson.test_of(other)})", 4)
    for other in group.more_of_test():
        yield from _also(other["failure"])
    for word, tests in group.other_tests().items():
        yield from _wrapped(f"same fault{word}: {', '.join(tests)}", 4)


def _headline(line: ndjson.Line, v: Verdict) -> Iterator[str]:
    """The verdict and the test, and below it what must hold."""
    test = ndjson.test_of(line)
    # It says nothing about the property whose test met it, but about the one that it follows from.
    name = v.follows or test
    yield from _wrapped(f"{v.word.upper()}: {met_in(name, test)}", 2)
    yield from _wrapped(f"must hold: {PROPERTIES[name.split('/')[0]].sentence}", 4)


def _fault(line: ndjson.Line, v: Verdict) -> Iterator[str]:
    failure = line["failure"]
    yield from _headline(line, v)
    if "what" in failure:
        yield from _wrapped(in_words(failure), 4)
    elif is_flaky(line):
        yield from _wrapped(_AGAIN, 4)
    else:
        lost, frames = v.word in LOST, failure.get("traceback", [])
        yield from _wrapped(failure["message"] if lost else f"{failure['type']}: {failure['message']}", 4)
        # The stack of a lost process has the innermost frame first.
        yield from (f"      {row}" for row in (frames[:_FRAMES] if lost else frames[-_FRAMES:]))
    explains = PROPERTIES[v.follows].explains if v.follows else ""
    for key, title in _DETAILS.items():
        if not _helps(key, failure, v):
            continue
        if failure.get(key):
            # The headline names what the fault follows from: there is nothing else to fix first.
            known = key == "hint" and failure[key] == explains
            text = _ELSEWHERE.sub("", failure[key]) if known else failure[key]
            yield from _wrapped(f"{title}: {text}", 4)
    if v.advice:
        yield from _wrapped(f"advice: {v.advice}", 4)
    if v.guess:
        yield from _wrapped(f"likely cause (a guess): {v.guess}", 4)


def _helps(key: str, failure: Mapping[str, Any], v: Verdict) -> bool:
    """Whether a detail says something: no bound is about NaN, and a hint is about what the fault follows from."""
    if key == "bound":
        return failure.get("kind") != Kind.NAN
    return key != "hint" or not v.follows or v.follows == failure.get("follows", v.follows)


def _also(failure: Mapping[str, Any]) -> Iterator[str]:
    """A further failure that is like the first one of its test."""
    yield from _wrapped(f"also: {in_words(failure)}", 4)
    for key in ("hint", "right_with", "call"):
        if failure.get(key):
            yield from _wrapped(f"{_DETAILS[key]}: {failure[key]}", 6)


def script_path(line: ndjson.Line, scripts: Path) -> Path:
    """The file of the standalone script of a failure."""
    which = [str(line["number"])] if "number" in line else []
    name = "-".join((line["function"], ndjson.test_of(line), *which))
    return scripts / (re.sub(r"[^\w.-]+", "-", name) + ".py")


def _script(line: ndjson.Line, path: Path, missing: str) -> Iterator[str]:
    """Where the standalone script is, or why there is none."""
    missing = missing or line["failure"].get("no_script", "")
    if missing:
        yield from _wrapped(f"no script: {missing}", 4)
    elif "script" in line["failure"]:
        yield f"    script: {path}"


def _note(line: ndjson.Line, v: Verdict, beside: bool) -> Iterator[str]:
    """What could not be checked. A refusal ``beside`` faults may follow from these."""
    reason = line.get("reason", "")
    if v.word in (REFUSED, DECLINED):
        reason = f"in {line['excused']} of {line['examples']} examples: {line['excuse']}"
    blame = " (not a fault)" if v.word == REFUSED and not beside else ""
    word = f"{PROPERTIES[line['property']].verifies} {v.word}".upper() if v.word == UNVERIFIED else v.word
    word = declined.TITLE if v.word == DECLINED else word
    yield from _wrapped(f"{word}{blame}: {ndjson.test_of(line)}: {reason}", 2)
    if v.advice:
        first = "fix what is wrong first; if this stays, " if v.word == REFUSED and beside else ""
        yield from _wrapped(f"{first}{v.advice}", 4)


def _wrapped(text: str, indent: int) -> list[str]:
    first, later = " " * indent, " " * (indent + 2)
    return textwrap.wrap(
        text, _width(), initial_indent=first, subsequent_indent=later, break_long_words=False, break_on_hyphens=False
    ) or [first]


def _width() -> int:
    """The columns of a line: those of the terminal, unless it is wide."""
    return min(_WIDEST, shutil.get_terminal_size().columns) if sys.stdout.isatty() else _WIDEST
