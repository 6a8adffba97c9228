"""What is said of a watched program: a verdict on each Function, and how much of it was checked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from autograd_conformance.harness.check.report import findings, printing
from autograd_conformance.harness.check.report.conclusion import Conclusion, concluded
from autograd_conformance.harness.check.report.grouping import Group
from autograd_conformance.harness.check.report.verdicts import WRONG
from autograd_conformance.harness.outcomes import FAILS, HOLDS, UNDECIDED
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.harness.watching import intentions
from autograd_conformance.harness.watching.collecting import Program, Watched
from autograd_conformance.harness.watching.sayings import saying

# The verdict on a backward that is another linear map than the derivative, everywhere: a fault, unless it is meant.
DIFFERS = "differs"
# The folder of scripts, as of `check`.
SCRIPTS = "autograd-conformance-scripts"
# The test that compares with finite differences.
_DERIVATIVE = "VJP-FD"

_NOTHING = (
    "no custom Function was called; calls of torch's own Functions, calls in code that torch.compile compiled, and "
    "those of a Python that runs with -I, -E or -S are not seen"
)

_UNRECORDED = (
    "no call was an ordinary one: each was under no_grad, inference mode, a transform of torch.func or a tracer, or no "
    "argument required grad"
)

# What the last line says of each word of the table.
_COUNTED = {
    "holds": "without a fault",
    WRONG.upper(): "wrong",
    DIFFERS.upper(): "with another gradient than the derivative",
    "not verified": "not verified",
}


class Summary:
    """The verdicts on the Functions of a program."""

    def __init__(self, program: Program, scripts: Path) -> None:
        self._program = program
        checked = [one for one in program.functions.values() if one.lines]
        found = {one.name: concluded(one.facts, list(one.lines.values()), scripts) for one in checked}
        self._known = {one.name: _worded(one, found[one.name]) for one in checked}

    @property
    def status(self) -> int:
        """1 if a Function is wrong, 2 if none is verified, otherwise 0."""
        statuses = [self._status(one) for one in self._program.functions.values()]
        if FAILS in statuses:
            return FAILS
        return HOLDS if HOLDS in statuses else UNDECIDED

    def _status(self, one: Watched) -> int:
        if one.always_wrong:
            return FAILS
        known = self._known.get(one.name)
        return UNDECIDED if known is None else known.status(edges_fail=False)

    def rows(self) -> Iterator[str]:
        """What was found, as rows of text: the Functions with a fault, those that were not checked, and a summary."""
        functions = self._program.functions.values()
        for one in functions:
            if self._status(one) == FAILS:
                yield from self._fault(one)
        for one in functions:
            for reason in one.left_out or [_UNRECORDED] * (not one.checked):
                some = "some calls are" if one.checked else "it is"
                yield f"{one.name}: {some} not checked: {reason}"
        if not functions:
            yield _NOTHING
            return
        yield from self._table()
        yield self._counts()

    def _fault(self, one: Watched) -> Iterator[str]:
        yield ""
        if one.always_wrong:
            yield f"WRONG: {one.always_wrong}"
        if one.name in self._known:
            title = f"{one.name} ({one.where}): {_called(one)}"
            about = [*one.how_often, *filter(None, [saying(one.where)])]
            yield from printing.rows(title, self._known[one.name], about=about)

    def _table(self) -> Iterator[str]:
        width = max(len(one.name) for one in self._program.functions.values())
        for one in self._program.functions.values():
            yield f"  {one.name:<{width}}  {self._word(one):<12}  {_called(one)}"

    def _word(self, one: Watched) -> str:
        """What is said of a Function in one word."""
        known = self._known.get(one.name)
        differs = known is not None and any(fault.group.verdict.word == DIFFERS for fault in known.faults)
        words = {HOLDS: "holds", FAILS: DIFFERS.upper() if differs else WRONG.upper(), UNDECIDED: "not verified"}
        return words[self._status(one)]

    def _counts(self) -> str:
        found = [self._word(one) for one in self._program.functions.values()]
        parts = [f"{found.count(word)} {said}" for word, said in _COUNTED.items() if word in found]
        program = self._program
        own = program.elapsed - program.spent
        share = f"{100 * program.spent / own:.0f} %" if own > 0 else "nothing"
        count = f"{len(found)} Function{'s' * (len(found) != 1)}"
        return f"{count}: {', '.join(parts)}; the checks took {program.spent:.1f} s, {share} of the program's time"

    def document(self, implementation: str = "torch") -> dict[str, Any]:
        """What was found, as `check` writes it for other programs."""
        functions = [
            findings.function(one.name, one.where, self._status(one), self._known[one.name], one.code)
            for one in self._program.functions.values()
            if one.name in self._known
        ]
        problems = [
            {"target": one.name, "message": reason}
            for one in self._program.functions.values()
            for reason in (*one.left_out, *filter(None, [one.always_wrong]))
        ]
        return findings.document(self.status, implementation, functions, problems)


def _worded(one: Watched, known: Conclusion) -> Conclusion:
    """The conclusion in the words for a Function that nobody has declared."""
    differs = _differs(one, known)
    faults = tuple(replace(fault, group=_group(one, fault.group, differs)) for fault in known.faults)
    return replace(known, faults=faults)


def _differs(one: Watched, known: Conclusion) -> bool:
    """Whether backward is another linear map than the derivative, for every argument of every call that was checked."""
    heads = [fault.group for fault in known.faults]
    alone = len(heads) == 1 and heads[0].verdict.word == WRONG and not heads[0].other_tests()
    throughout = bool(one.wrong_arguments) and all(one.wrong_arguments.values()) and not one.right.get(_DERIVATIVE)
    return alone and throughout and ndjson.test_of(heads[0].line) == _DERIVATIVE


def _group(one: Watched, group: Group, differs: bool) -> Group:
    v = group.verdict
    guess, advice = (_undeclared(one.name, text) for text in (v.guess, v.advice))
    if not differs:
        return replace(group, verdict=replace(v, guess=guess, advice=advice))
    line = intentions.line_for(one.name, "surrogate")
    said = (
        "it is another gradient in every call that was checked: a fault, unless it is meant; if it is, write into "
        f"[{intentions.TABLE}] of {intentions.FILE}: {line}"
    )
    return replace(group, verdict=replace(v, word=DIFFERS, guess=guess.partition("; if that is")[0], advice=said))


def _undeclared(name: str, text: str) -> str:
    """What to do where a declaration would say what is meant."""
    for word in intentions.WORDS:
        line = f"write into [{intentions.TABLE}] of {intentions.FILE}: {intentions.line_for(name, word)}"
        text = text.replace(f"declare {word}=True", line)
    return text


def _called(one: Watched) -> str:
    calls = f"{one.calls} call{'s' * (one.calls != 1)}"
    kinds = f" of {one.kinds} kinds" if one.kinds > 1 else ""
    return f"{calls}{kinds}, {len(one.checked)} checked"
