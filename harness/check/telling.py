"""What `check` says while it runs: each fault when it is found, and the verdict on a Function when that is known."""

from __future__ import annotations

from pathlib import Path

from autograd_conformance.harness.check import printing
from autograd_conformance.harness.check.display import Display
from autograd_conformance.harness.check.following import Following
from autograd_conformance.harness.check.processes import Found
from autograd_conformance.harness.check.verdicts import ERROR, LOST, UNVERIFIED, judged
from autograd_conformance.harness.reports import ndjson

# Exit statuses.
_FAULT, _UNCHECKED = 1, 2


class Telling:
    """Says what the results of a target mean as they come. ``status`` is the exit status so far."""

    def __init__(self, found: Found, display: Display, scripts: Path) -> None:
        self.found, self.status = found, 0
        self._display, self._scripts = display, scripts
        self._finds = printing.Finds()
        self._lines: dict[str, list[ndjson.Line]] = {}
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
                self.found.problems[name] = f"{self.found.places[name]}: {name} was not checked: {unfinished}"
                self._display.write([f"Error: {self.found.problems[name]}"])

    def _conclude(self, name: str, unfinished: str = "") -> None:
        """Print the verdict on a Function."""
        self._left.remove(name)
        lines, facts = self._lines[name], self.found.plan.facts[name]
        if self._display.faults:
            self._display.write([""])
        title = f"{name} ({self.found.places[name]}): {self.found.described[name]}"
        self._display.write(printing.rows(title, facts, lines, self._scripts, unfinished))
        verdicts = [v for _, v in judged(lines, compared=facts.compared) if v is not None]
        if any(v.word in (*LOST, ERROR) for v in verdicts):
            status = _UNCHECKED
        elif facts.stale or facts.coarse or any(v.fault for v in verdicts):
            status = _FAULT
        else:
            status = _UNCHECKED if any(v.word == UNVERIFIED for v in verdicts) else 0
        self.status = max(self.status, status)
