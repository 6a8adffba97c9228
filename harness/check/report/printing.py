"""What `check` prints about a user's Function."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from autograd_conformance.harness.check.declaration.facts import Facts
from autograd_conformance.harness.check.refusals import declined
from autograd_conformance.harness.check.report import facts_in_words
from autograd_conformance.harness.check.report.conclusion import Conclusion, Fault
from autograd_conformance.harness.check.report.grouping import met_in
from autograd_conformance.harness.check.report.verdicts import (
    DECLINED,
    LOST,
    REFUSED,
    UNVERIFIED,
    Verdict,
    is_flaky,
)
from autograd_conformance.harness.outcomes import in_words
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.reference.properties import PROPERTIES

_WIDEST = 110

# Lines of a traceback that are shown.
_FRAMES = 6

# The titles of the details of a fault.
_TITLES = {"chosen": "with", "right_with": "right with"}

_AGAIN = "the same call gave something else when it was made again"


def rows(title: str, known: Conclusion, unfinished: str = "", about: Sequence[str] | None = None) -> Iterator[str]:
    """The facts about a Function, its faults, and the checks without a verdict, as rows of text.

    ``unfinished`` says why there are no more results, and ``about`` what is said instead of the facts.
    """
    facts, undecided = known.facts, [line for line, _ in known.notes if "declined" in line]
    refused = [*declined.lines(facts.declined), *declined.lines_of_results(undecided, facts.declined)]
    yield title
    said = facts_in_words.in_words(facts) if about is None else about
    for fact in (*said, *filter(None, [unfinished]), *_own_faults(facts, known.lines)):
        yield from _wrapped(fact, 2)
    yield f"  {_missing(known, bool(refused))}{_counts(known)}"
    for line, v in known.found:
        if v is None and "slow" in line:
            made = f"{line['slow']} examples held before --time-limit; it was too short for all"
            yield from _wrapped(f"{ndjson.test_of(line)}: {made}", 2)
    for fault in known.faults:
        yield ""
        yield from _group(fault)
    for sentence in facts.stale:
        yield ""
        yield from _wrapped(f"STALE: {sentence}", 2)
    for line, v in known.notes:
        if v.word != DECLINED or "declined" not in line:
            yield ""
            yield from _note(line, v, bool(known.faults))
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


def _counts(known: Conclusion) -> str:
    hold = "check holds" if known.held == 1 else "checks hold"
    do = "does" if known.wrong == 1 else "do"
    beside = {f"edge{'s' * (known.edges > 1)}": known.edges, "undecided": len(known.notes)}
    more = (f"{n} {word}" for word, n in beside.items() if n)
    return ", ".join([f"{known.held} {hold}, {known.wrong} {do} not", *more])


def _missing(known: Conclusion, refused: bool) -> str:
    """What is not verified, or that declared calls are refused, as the beginning of a sentence."""
    if known.unverified:
        words = (each.verifies for each in PROPERTIES.values() if each.id in known.unverified)
        return f"{' and '.join(words)} not verified; "
    return "declared calls refused; " if refused or any(v.word == DECLINED for _, v in known.notes) else ""


def _group(fault: Fault) -> Iterator[str]:
    """A fault with its script, or why there is none, and what follows from it."""
    group = fault.group
    yield from _fault(fault)
    if fault.no_script:
        yield from _wrapped(f"no script: {fault.no_script}", 4)
    elif fault.script is not None:
        yield f"    script: {fault.script}"
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


def _fault(fault: Fault) -> Iterator[str]:
    line, v = fault.group.line, fault.group.verdict
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
    for key, text in fault.details.items():
        yield from _wrapped(f"{_TITLES.get(key, key)}: {text}", 4)
    if v.advice:
        yield from _wrapped(f"advice: {v.advice}", 4)
    if v.guess:
        yield from _wrapped(f"likely cause (a guess): {v.guess}", 4)


def _also(failure: Mapping[str, Any]) -> Iterator[str]:
    """A further failure that is like the first one of its test."""
    yield from _wrapped(f"also: {in_words(failure)}", 4)
    for key in ("hint", "right_with", "call"):
        if failure.get(key):
            yield from _wrapped(f"{_TITLES.get(key, key)}: {failure[key]}", 6)


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
