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
    """A Function that a program called, with the results of the checks of its calls.

    ``lines`` has one result for each test: of several calls the first that fails. ``checked`` are the calls that were
    checked, ``wrong`` those in which a test failed, by its name, and ``right`` those in which it held. ``left_out`` are
    sentences that say why calls were not checked.
    """

    name: str
    where: str = ""
    # By process; one that is killed says no more than which call it has checked last.
    counts: dict[str, int] = field(default_factory=dict)
    kinds: int = 0
    facts: Facts = field(default_factory=Facts)
    code: dict[str, tuple[str, int]] = field(default_factory=dict)
    lines: dict[str, ndjson.Line] = field(default_factory=dict)
    checked: set[Made] = field(default_factory=set)
    right: dict[str, set[Made]] = field(default_factory=dict)
    wrong: dict[str, set[Made]] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    always_wrong: str = ""
    # The arguments whose gradient was wrong, and those whose was right, where finite differences showed a wrong number.
    wrong_arguments: dict[str, bool] = field(default_factory=dict)

    @property
    def calls(self) -> int:
        """How many calls the program made."""
        return sum(self.counts.values())

    @property
    def how_often(self) -> list[str]:
        """A sentence for each test that holds in some calls and not in others."""
        every = {test: wrong | self.right.get(test, set()) for test, wrong in self.wrong.items()}
        return [
            f"{test} fails in {len(wrong)} of {len(every[test])} calls"
            for test, wrong in self.wrong.items()
            if len(wrong) < len(every[test])
        ]

    def note(self, line: ndjson.Line, made: Made) -> None:
        """A result of one call is known."""
        test, outcome = line["id"], line["outcome"]
        for calls, outcomes in ((self.wrong, BROKEN), (self.right, KEPT)):
            if outcome in outcomes:
                calls.setdefault(ndjson.test_of(line), set()).add(made)
        known = self.lines.setdefault(test, line)
        if known is not line:
            better = _rank(line) < _rank(known)
            kept = line if better else known
            sums = {name: known.get(name, 0) + line.get(name, 0) for name in ("examples", "checks")}
            self.lines[test] = {**kept, **sums}


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
    for result in line.get("lines", ()):
        one.note(result, (process, line["call"]))
    for argument, is_wrong in line.get("arguments", {}).items():
        one.wrong_arguments[argument] = one.wrong_arguments.get(argument, True) and is_wrong
    one.always_wrong = one.always_wrong or line.get("wrong", "")
    for reason in filter(None, (line.get("left_out"), line.get("lost"))):
        if reason not in one.left_out:
            one.left_out.append(reason)
