"""What the processes of a watched program wrote, read again: for each Function its calls, and the results of checks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autograd_conformance.harness.check.declaration.facts import Facts
from autograd_conformance.harness.outcomes import BROKEN, KEPT
from autograd_conformance.harness.reports import ndjson

# A call: the file of its process, and its number there.
Made = tuple[str, int]


@dataclass
class Watched:
    """A Function that a program called, with the results of the checks of its calls."""

    name: str
    # The file and line of its class.
    where: str = ""
    # The calls of each process; one that is killed says no more than which call it has checked last.
    counts: dict[str, int] = field(default_factory=dict)
    kinds: int = 0
    facts: Facts = field(default_factory=Facts)
    code: dict[str, tuple[str, int]] = field(default_factory=dict)
    # One result for each test: of several calls the first that fails. Those of calls that need no gradient, and those
    # about what few programs ask for, are apart.
    lines: dict[str, ndjson.Line] = field(default_factory=dict)
    unrecorded: dict[str, ndjson.Line] = field(default_factory=dict)
    beyond: dict[str, ndjson.Line] = field(default_factory=dict)
    # Scripts of calls of the same kind as those that fail, by the id of the result.
    scripts: dict[str, str] = field(default_factory=dict)
    # The script that makes a call with a fault again, and why there is none.
    kept: str = ""
    unkept: str = ""
    # Words of `inside.following` for what the program does with its calls.
    does: set[str] = field(default_factory=set)
    # Sentences about gradients of the program's own that are NaN or infinite.
    infinite: list[str] = field(default_factory=list)
    # The calls that were checked, and by test those in which it holds and those in which it fails.
    checked: set[Made] = field(default_factory=set)
    right: dict[str, set[Made]] = field(default_factory=dict)
    wrong: dict[str, set[Made]] = field(default_factory=dict)
    # Why calls were not checked, and why those that need no gradient were not.
    left_out: list[str] = field(default_factory=list)
    left_out_unrecorded: list[str] = field(default_factory=list)
    always_wrong: str = ""
    # Whether the derivative along each argument was wrong in each call in which finite differences showed a wrong one.
    everywhere: bool = True

    @property
    def calls(self) -> int:
        """How many calls the program made."""
        return sum(self.counts.values())

    @property
    def differs(self) -> bool:
        """Whether backward is another linear map than the derivative in every call that was checked."""
        return self.everywhere and not self.right.get("VJP-FD")

    def how_often(self, test: str) -> str:
        """In how many calls a test fails, if it holds in others; empty if it does not."""
        wrong, right = self.wrong.get(test, set()), self.right.get(test, set())
        every = len(wrong | right)
        return f"{test} fails in {len(wrong)} of {every} calls" if right and wrong else ""

    def note(self, line: ndjson.Line, made: Made, telling: bool) -> None:
        """A result of one call is known. Right gradients that are not ``telling`` might as well be 0."""
        for calls, outcomes in ((self.wrong, BROKEN), (self.right, KEPT if telling else ())):
            if line["outcome"] in outcomes:
                calls.setdefault(ndjson.test_of(line), set()).add(made)
        if ndjson.test_of(line) == "VJP-FD" and line["outcome"] in BROKEN:
            self.everywhere &= line["failure"].get("everywhere", False)
        _add(self.lines, line)

    def note_value(self, line: dict[str, Any]) -> None:
        """A gradient of the program's own has NaN or infinity in it."""
        self.infinite.append(f"the gradient of argument {line['slot']} of call {line['call']} is {line['not_finite']}")

    @property
    def reasons(self) -> list[str]:
        """Why calls were not checked; those that need no gradient matter where no other is checked."""
        return self.left_out or (self.left_out_unrecorded if not self.lines else [])

    @property
    def asked(self) -> list[ndjson.Line]:
        """The results about what the program does."""
        return [*self.lines.values(), *(line for line in self.beyond.values() if self._does(line))]

    @property
    def not_asked(self) -> list[ndjson.Line]:
        """The results about what it does not do."""
        unrecorded = [line for test, line in self.unrecorded.items() if test not in self.lines]
        return [*unrecorded, *(line for line in self.beyond.values() if not self._does(line))]

    def _does(self, line: ndjson.Line) -> bool:
        return _USES.get(line["property"]) in self.does


# What a program does, by the property that it needs then.
_USES = {"DBL-CORRECT": "second", "DBL-ONCE": "second"}


def _add(lines: dict[str, ndjson.Line], line: ndjson.Line) -> None:
    """Add a result to those of other calls, for each test one."""
    known = lines.setdefault(line["id"], line)
    if known is not line:
        kept = line if _rank(line) < _rank(known) else known
        sums = {name: known.get(name, 0) + line.get(name, 0) for name in ("examples", "checks")}
        lines[line["id"]] = {**kept, **sums}


def _rank(line: ndjson.Line) -> int:
    """What says most about several calls: that one fails, and then that one holds."""
    outcome = line["outcome"]
    return 2 - (outcome in KEPT) - 2 * (outcome in BROKEN)


@dataclass
class Program:
    """The Functions of a program, in the order in which they were called, and the seconds of it and of the checks."""

    functions: dict[str, Watched] = field(default_factory=dict)
    elapsed: float = 0.0
    spent: float = 0.0


def collected(folder: Path) -> Program:
    """What all processes of a program wrote."""
    found = Program()
    for path in sorted(folder.glob("*.ndjson"), key=lambda path: int(path.name.partition("-")[0])):
        for line in _lines(path):
            _note(found, path.name, line)
    return found


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """The whole lines of a file; a process that is killed may leave half a line."""
    for line in path.read_text(encoding="utf-8").split("\n")[:-1]:
        yield json.loads(line)


def _note(program: Program, process: str, line: dict[str, Any]) -> None:
    if "function" not in line:
        program.elapsed += line["elapsed"]
        program.spent += line["spent"]
        return
    name = line["function"]
    one = program.functions.setdefault(name, Watched(name))
    one.where = line.get("where", one.where)
    if "calls" in line:
        one.counts[process] = line["calls"]
        one.kinds += line["kinds"]
    if "call" in line:
        one.counts[process] = max(one.counts.get(process, 0), line["call"])
    if "facts" in line:
        one.facts, one.code = Facts.from_json(line["facts"]), {k: tuple(v) for k, v in line["code"].items()}
    if "call" in line and "test" in line:
        one.checked.add((process, line["call"]))
    beyond, asked = line.get("stage") == "beyond", line.get("recorded") and line.get("stage") != "beyond"
    for result in line.get("lines", ()):
        if asked:
            one.note(result, (process, line["call"]), line["telling"])
        else:
            _add(one.beyond if beyond else one.unrecorded, result)
    one.scripts.update(line.get("scripts", {}))
    one.kept, one.unkept = one.kept or line.get("kept", ""), one.unkept or line.get("unkept", "")
    if "not_finite" in line:
        one.note_value(line)
    one.does |= {line["does"]} if "does" in line else set()
    one.always_wrong = one.always_wrong or line.get("wrong", "")
    left_out = one.left_out if line.get("recorded", True) else one.left_out_unrecorded
    for reason in filter(None, (line.get("left_out"), line.get("lost"))):
        if reason not in left_out:
            left_out.append(reason)
