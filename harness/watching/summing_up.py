"""What is said of a watched program: a verdict on each Function, and how much of it was checked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from autograd_conformance.harness.check.report import findings, printing, script_runner
from autograd_conformance.harness.check.report.conclusion import Conclusion, Fault, concluded, path_of
from autograd_conformance.harness.check.report.undeclared import worded
from autograd_conformance.harness.check.report.verdicts import DIFFERS, WRONG, Verdict
from autograd_conformance.harness.outcomes import FAILS, HOLDS, UNDECIDED
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.harness.watching.collecting import Program, Watched
from autograd_conformance.harness.watching.sayings import saying

# The folder of scripts, as of `check`.
SCRIPTS = "autograd-conformance-scripts"

_NOTHING = (
    "no custom Function was called; calls of torch's own Functions, calls in code that torch.compile compiled, and "
    "those of a Python that runs with -I, -E or -S are not seen"
)

_UNRECORDED = (
    "no call was an ordinary one: each was under no_grad, inference mode, a transform of torch.func or a tracer, or "
    "had no tensor"
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
        functions = program.functions.values()
        self._known = {
            one.name: _worded(one, concluded(one.facts, one.asked, scripts), scripts) for one in functions if one.asked
        }
        self._beyond = {one.name: _beyond(one, scripts) for one in functions if one.not_asked}

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
        known, beyond = self._known.get(one.name), self._beyond.get(one.name)
        if known is not None:
            return known.status(edges_fail=False)
        held = beyond is not None and beyond.status(edges_fail=False) == HOLDS
        return HOLDS if held else UNDECIDED

    def rows(self) -> Iterator[str]:
        """What was found, as rows of text: the Functions with a fault, those that were not checked, and a summary."""
        functions = self._program.functions.values()
        for one in functions:
            if self._status(one) == FAILS:
                yield from self._fault(one)
        for one in functions:
            for reason in one.reasons or [_UNRECORDED] * (not one.checked):
                some = "some calls are" if one.checked else "it is"
                yield f"{one.name}: {some} not checked: {reason}"
            if self._status(one) == UNDECIDED and one.name in self._known:
                yield from (f"{one.name}: {_why(line, v)}" for line, v in self._known[one.name].notes[:1])
        if not functions:
            yield _NOTHING
            return
        for one in functions:
            yield from self._notes(one)
        yield from self._table()
        yield self._counts()

    def _fault(self, one: Watched) -> Iterator[str]:
        yield ""
        if one.always_wrong:
            yield f"WRONG: {one.always_wrong}"
        if one.name in self._known:
            title = f"{one.name} ({one.where}): {_called(one)}"
            known = self._known[one.name]
            often = [one.how_often(ndjson.test_of(fault.group.line)) for fault in known.faults]
            yield from printing.rows(title, known, about=list(filter(None, [*often, saying(one.where)])))

    def _notes(self, one: Watched) -> Iterator[str]:
        """What is wrong with a Function that the program does not ask for, a line each."""
        for sentence in one.infinite:
            yield f"NOTE: {one.name}: {sentence}, and its outputs are finite"
        for fault in self._beyond[one.name].faults if one.name in self._beyond else ():
            script = f"; script: {fault.script}" if fault.script else ""
            found = f"{_unasked(fault.group.line)}: {fault.group.verdict.word}: {_message(fault)}"
            yield f"NOTE: {one.name}: {found}{script}"

    def _table(self) -> Iterator[str]:
        width = max(len(one.name) for one in self._program.functions.values())
        for one in self._program.functions.values():
            yield f"  {one.name:<{width}}  {self._word(one):<12}  {_called(one)}"

    def _word(self, one: Watched) -> str:
        """What is said of a Function in one word."""
        known = self._known.get(one.name)
        differs = known is not None and all(fault.group.verdict.word == DIFFERS for fault in known.faults)
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
            self._function(one)
            for one in self._program.functions.values()
            if one.name in self._known or one.name in self._beyond
        ]
        problems = [
            {"target": one.name, "message": reason}
            for one in self._program.functions.values()
            for reason in (*one.reasons, *filter(None, [one.always_wrong]))
        ]
        return findings.document(self.status, implementation, functions, problems)

    def _function(self, one: Watched) -> dict[str, Any]:
        """What was found about one Function; what the program does not ask for is a note."""
        known, beyond = self._known.get(one.name), self._beyond.get(one.name)
        found = findings.function(one.name, one.where, self._status(one), known or _nothing(one), one.code)
        more = findings.function(one.name, one.where, HOLDS, beyond or _nothing(one), one.code)
        notes = [{**each, "level": findings.NOTE} for each in more["findings"] if each["level"] == findings.ERROR]
        return {**found, "findings": [*found["findings"], *notes]}


# Why a program does not ask for a property; other results are of calls that need no gradient.
_UNASKED = {
    "DBL-CORRECT": "the program takes no second derivatives",
    "DBL-ONCE": "the program takes no second derivatives",
    "FWD-DTYPE": "in double precision",
    "VJP-MASK": "where parameters of an object that is passed need no gradient",
}


def _unasked(line: ndjson.Line) -> str:
    return _UNASKED.get(line["property"], "in calls that need no gradient")


def _why(line: ndjson.Line, v: Verdict) -> str:
    return f"{v.word}: {ndjson.test_of(line)}: {line.get('reason') or line.get('excuse', '')}"


def _message(fault: Fault) -> str:
    failure = fault.group.line["failure"]
    return f"{failure['what']} ({ndjson.test_of(fault.group.line)})"


def _nothing(one: Watched) -> Conclusion:
    return Conclusion(one.facts, (), (), (), ())


def _with_scripts(one: Watched, known: Conclusion, folder: Path) -> Conclusion:
    """The conclusion with scripts of calls of the same kind, of those that show a fault in a process of their own."""
    texts = {fault.group.line["id"]: one.scripts.get(fault.group.line["id"], "") for fault in known.faults}
    paths = {fault.group.line["id"]: path_of(fault.group.line, folder) for fault in known.faults}
    script_runner.written({paths[test]: text for test, text in texts.items() if text})
    right = script_runner.right([paths[test] for test, text in texts.items() if text])
    for path in right:
        path.unlink()
    shown = {test: paths[test] for test, text in texts.items() if text and paths[test] not in right}

    def with_script(fault: Fault) -> Fault:
        path = shown.get(fault.group.line["id"])
        return fault if path is None else replace(fault, script=path, no_script="")

    return replace(known, faults=tuple(map(with_script, known.faults)))


def _beyond(one: Watched, scripts: Path) -> Conclusion:
    """What is concluded of what the program does not do; what follows from a fault of what it does is known."""
    every, alone = (concluded(one.facts, lines, scripts) for lines in ([*one.asked, *one.not_asked], one.not_asked))
    faults = tuple(fault for fault in every.faults if fault.group.line in one.not_asked)
    return _worded(one, replace(alone, faults=faults), scripts)


def _worded(one: Watched, known: Conclusion, scripts: Path) -> Conclusion:
    """The conclusion in the words for a Function that nobody has declared, with its scripts."""
    found = worded(known, one.name, everywhere=one.differs)
    # Functions of several modules may have one name.
    return _with_scripts(one, found, scripts / one.name.rpartition(":")[0])


def _called(one: Watched) -> str:
    calls = f"{one.calls} call{'s' * (one.calls != 1)}"
    kinds = f" of {one.kinds} kinds" if one.kinds > 1 else ""
    return f"{calls}{kinds}, {len(one.checked)} checked"
