"""What is said of a watched program: a verdict on each Function, and how much of it was checked."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from autograd_conformance.harness.check.report import findings, printing, script_runner
from autograd_conformance.harness.check.report.conclusion import Conclusion, Fault, concluded, path_of
from autograd_conformance.harness.check.report.grouping import Group
from autograd_conformance.harness.check.report.undeclared import worded
from autograd_conformance.harness.check.report.verdicts import DIFFERS, WRONG, Verdict
from autograd_conformance.harness.outcomes import FAILS, HOLDS, UNDECIDED, Kind
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.harness.watching.collecting import Program, Watched
from autograd_conformance.harness.watching.known import Fault as Known
from autograd_conformance.harness.watching.sayings import saying

# The folder of scripts, as of `check`.
SCRIPTS = "autograd-conformance-scripts"

# What a script may take.
_SECONDS = 60.0

_NOTHING = (
    "no custom Function was called; calls of torch's own Functions, calls in code that torch.compile compiled, and "
    "those of a Python that runs with -I, -E or -S are not seen"
)

_UNRECORDED = (
    "no call was an ordinary one: each was under no_grad, inference mode, a transform of torch.func or a tracer, had "
    "no tensor, or was within backward where no process can be forked"
)

# What the last line says of each word of the table.
_COUNTED = {
    "holds": "without a fault",
    WRONG.upper(): "wrong",
    DIFFERS.upper(): "with another gradient than the derivative",
    "known": "with known faults alone",
    "not verified": "not verified",
}


class Summary:
    """The verdicts on the Functions of a program; ``accepted`` are faults that are known, which fail nothing."""

    def __init__(self, program: Program, scripts: Path, accepted: Collection[Known] = ()) -> None:
        self._program, self._accepted = program, accepted
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
            status = known.status(edges_fail=False)
            return HOLDS if status == FAILS and self._is_accepted(one) else status
        held = beyond is not None and beyond.status(edges_fail=False) == HOLDS
        return HOLDS if held else UNDECIDED

    def _is_accepted(self, one: Watched) -> bool:
        """Whether a Function has faults, and all are known."""
        known = self._known.get(one.name)
        if known is None or not known.faults or known.facts.stale or one.always_wrong:
            return False
        return all(self._accepted_in(one, fault.group) for fault in known.faults)

    def _accepted_in(self, one: Watched, group: Group) -> bool:
        # A group has one cause; which of its tests came first depends on the time that there was.
        return any((one.name, test) in self._accepted for test in _properties(group))

    def _of_accepted(self, one: Watched) -> Iterator[str]:
        """The known faults of a Function, and those that were looked for and are gone, a line each."""
        known = self._known.get(one.name)
        faults = known.faults if known is not None else ()
        for fault in faults:
            if self._accepted_in(one, fault.group):
                yield f"known: {one.name}: {fault.group.verdict.word.upper()}: {ndjson.test_of(fault.group.line)}"
        there = {test for fault in faults for test in _properties(fault.group)}
        asked = {line["property"] for line in one.asked}
        for name, test in sorted(self._accepted):
            if name == one.name and test in asked - there:
                yield f"no longer found: {name}: {test}; take it out of the known faults"

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
            yield from self._of_accepted(one)
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
            yield from printing.rows(title, known, about=list(filter(None, [*often, saying(one.where), _kept(one)])))

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
        if self._is_accepted(one):
            return "known"
        found = {fault.group.verdict.word for fault in known.faults} if known is not None else set()
        differs = found == {DIFFERS} and not one.always_wrong
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
}


def _properties(group: Group) -> set[str]:
    return {line["property"] for line in (group.line, *group.others)}


def _unasked(line: ndjson.Line) -> str:
    return _UNASKED.get(line["property"], "in calls that need no gradient")


def _why(line: ndjson.Line, v: Verdict) -> str:
    return f"{v.word}: {ndjson.test_of(line)}: {line.get('reason') or line.get('excuse', '')}"


def _message(fault: Fault) -> str:
    failure = fault.group.line["failure"]
    return f"{failure.get('what') or failure.get('message', '')} ({ndjson.test_of(fault.group.line)})"


def _nothing(one: Watched) -> Conclusion:
    return Conclusion(one.facts, (), (), (), ())


def _with_scripts(one: Watched, known: Conclusion, folder: Path) -> Conclusion:
    """The conclusion with scripts of calls of the same kind, of those that show the fault in a process of their own."""

    def with_script(fault: Fault) -> Fault:
        text, path = one.scripts.get(fault.group.line["id"], ""), path_of(fault.group.line, folder)
        if not text or script_runner.written({path: text})[path]:
            return fault
        if _shows(path, fault):
            return replace(fault, script=path, no_script="")
        path.unlink()
        return fault

    return replace(known, faults=tuple(map(with_script, known.faults)))


def _shows(path: Path, fault: Fault) -> bool:
    """Whether a script ends with what it is for: an exception only where the call raises one."""
    raises = fault.group.line["failure"].get("kind") == Kind.RAISED
    try:
        done = subprocess.run([sys.executable, str(path)], capture_output=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 1 and (raises or b"Traceback" not in done.stderr)


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


def _kept(one: Watched) -> str:
    """Where a call with a fault is kept, or why it is not; empty if nobody asked for that."""
    if one.kept:
        return f"kept with the program's own data: {os.path.relpath(one.kept)} makes such a call again"
    return f"no call is kept: {one.unkept}" if one.unkept else ""


def _called(one: Watched) -> str:
    calls = f"{one.calls} call{'s' * (one.calls != 1)}"
    kinds = f" of {one.kinds} kinds" if one.kinds > 1 else ""
    return f"{calls}{kinds}, {len(one.checked)} checked"
