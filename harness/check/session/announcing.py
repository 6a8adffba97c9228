"""What `check` says while it runs: each fault when it is found, and the verdict on a Function when that is known."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from autograd_conformance.harness.check.declaration.naming import module_name
from autograd_conformance.harness.check.report import findings, grouping, printing
from autograd_conformance.harness.check.report.conclusion import concluded
from autograd_conformance.harness.check.report.undeclared import worded
from autograd_conformance.harness.check.report.verdicts import DIFFERS
from autograd_conformance.harness.check.session.child_discovery import Found
from autograd_conformance.harness.check.session.child_session import Following
from autograd_conformance.harness.check.session.display import Display
from autograd_conformance.harness.outcomes import FAILS, HOLDS, UNDECIDED
from autograd_conformance.harness.reports import ndjson

# What each exit status says about a Function, and what else is said of one that is not wrong.
_OUTCOMES = {HOLDS: "without a fault", FAILS: "wrong", UNDECIDED: "not verified"}
_WITH_EDGES, _DIFFERING = "with an edge", "with another gradient than the derivative"


class Announcer:
    """Says what the results of a target mean as they come. ``statuses`` has the exit status of each Function so far.

    ``drafted`` are the full names of Functions that nobody has declared, by those of their declarations.
    """

    def __init__(
        self, found: Found, display: Display, scripts: Path, *, implementation: str = "torch", edges: bool = False,
        drafted: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        self._drafted = drafted or {}
        self.found, self._implementation = found, implementation
        self.statuses: dict[str, int] = {}
        # The Functions with edges and no fault, and whether these fail.
        self.with_edges: list[str] = []
        # Those that have another gradient than the derivative, and no other fault.
        self.differing: list[str] = []
        self._edges_fail = edges
        # Each module has a folder of its own: what lies there of other ones is not of this check.
        target = found.plan.target
        # A file of declarations may lie among the scripts itself.
        target = Path(target).name if scripts.resolve() in Path(target).resolve().parents else target
        self._display, self._scripts = display, scripts / module_name(target)
        self._finds = grouping.Finds(self._drafted)
        self._lines: dict[str, list[ndjson.Line]] = {}
        # What was found about each Function, as data.
        self.functions: list[dict[str, Any]] = []
        self._left = list(found.plan.facts)

    def note(self, line: ndjson.Line | None) -> None:
        """A result has come; None if nothing came for a moment."""
        if line is not None:
            # All checks of one Function are made before those of the next.
            for name in [name for name in self._left if name in self._lines and name != line["function"]]:
                self._conclude(name)
            self._lines.setdefault(line["function"], []).append(line)
            rows = self._finds.rows(line)
            if rows:
                self._display.found(rows)
        self._display.refresh()

    def end(self, unfinished: str, following: Following) -> None:
        """No more results come; ``unfinished`` says why, unless there were all."""
        left = following.total - len(following.results)
        several = len(self.found.plan.facts) > 1
        what = "not all of its checks were made" if several else f"{left} of {following.total} checks were not made"
        for name in list(self._left):
            if name in self._lines:
                self._conclude(name, f"{unfinished}: {what}" if unfinished and left else "")
            elif unfinished:
                self.found.problems[name] = f"{self.found.placed[name]}: not checked: {unfinished}"
                self._display.write([f"Error: {self.found.problems[name]}"])
        for sentence in following.of_devices():
            self._display.write([sentence])

    def _conclude(self, name: str, unfinished: str = "") -> None:
        """Print the verdict on a Function."""
        self._left.remove(name)
        plan = self.found.plan
        known = concluded(plan.facts[name], self._lines[name], self._scripts, self._implementation)
        if name in self._drafted:
            known = worded(known, self._drafted[name])
        if self._display.faults:
            self._display.write([""])
        title = f"{name} ({self.found.places[name]}): {self.found.described[name]}"
        self._display.write(printing.rows(title, known, unfinished))
        self.with_edges += [name] * bool(known.edges and not known.is_wrong)
        self.differing += [name] * ({fault.group.verdict.word for fault in known.faults} == {DIFFERS})
        self.statuses[name] = known.status(edges_fail=self._edges_fail)
        # Checks that were not made may find a fault.
        status = UNDECIDED if unfinished and self.statuses[name] == HOLDS else self.statuses[name]
        self.functions.append(findings.function(name, plan.target, status, known, self.found.code[name]))


def summary(
    statuses: Sequence[tuple[str, int]], with_edges: Collection[str] = (), differing: Collection[str] = ()
) -> str:
    """How many Functions are without a fault, wrong and not verified; the last two by name.

    Those that are ``differing`` have another gradient than the derivative and no other fault; some have edges.
    """
    found = {word: [name for name, each in statuses if each == status] for status, word in _OUTCOMES.items()}
    wrong = found[_OUTCOMES[FAILS]]
    found[_OUTCOMES[FAILS]] = [name for name in wrong if name not in differing]
    found[_DIFFERING] = [name for name in wrong if name in differing]
    found[_WITH_EDGES] = [name for name, _ in statuses if name in with_edges]
    listed = {word: f" ({', '.join(names)})" * (word != _OUTCOMES[HOLDS]) for word, names in found.items()}
    parts = [f"{len(names)} {word}{listed[word]}" for word, names in found.items() if names]
    return f"{len(statuses)} Functions: {', '.join(parts)}"
