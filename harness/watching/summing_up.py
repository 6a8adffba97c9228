"""What is said of a watched program: a verdict on each Function, and how much of it was checked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from autograd_conformance.harness.check.report import findings, printing
from autograd_conformance.harness.check.report.conclusion import concluded
from autograd_conformance.harness.outcomes import FAILS, HOLDS, UNDECIDED
from autograd_conformance.harness.watching.collecting import Program, Watched

_NOTHING = (
    "no custom Function was called; calls of torch's own Functions, calls in code that torch.compile compiled, and "
    "those of a Python that runs with -I, -E or -S are not seen"
)

_UNRECORDED = (
    "no call was an ordinary one: each was under no_grad, inference mode, a transform of torch.func or a tracer, or no "
    "argument required grad"
)


class Summary:
    """The verdicts on the Functions of a program."""

    def __init__(self, program: Program, scripts: Path) -> None:
        self._program = program
        checked = [one for one in program.functions.values() if one.lines]
        self._known = {one.name: concluded(one.facts, list(one.lines.values()), scripts) for one in checked}

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
                yield f"{one.name} is not checked: {reason}"
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
            yield from printing.rows(title, self._known[one.name], about=one.how_often)

    def _table(self) -> Iterator[str]:
        words = {HOLDS: "holds", FAILS: "WRONG", UNDECIDED: "not verified"}
        width = max(len(one.name) for one in self._program.functions.values())
        for one in self._program.functions.values():
            yield f"  {one.name:<{width}}  {words[self._status(one)]:<12}  {_called(one)}"

    def _counts(self) -> str:
        found = [self._status(one) for one in self._program.functions.values()]
        words = {HOLDS: "without a fault", FAILS: "wrong", UNDECIDED: "not verified"}
        parts = [f"{found.count(status)} {word}" for status, word in words.items() if status in found]
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


def _called(one: Watched) -> str:
    calls = f"{one.calls} call{'s' * (one.calls != 1)}"
    kinds = f" of {one.kinds} kinds" if one.kinds > 1 else ""
    return f"{calls}{kinds}, {len(one.checked)} checked"
