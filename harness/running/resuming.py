"""An interrupted run that goes on: what it keeps of its report, and whether that is of the same run."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from autograd_conformance.harness.outcomes import DEATH, UsageProblem
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.harness.reports.ndjson import Line
from autograd_conformance.harness.running import shards

# The last results of an interrupted run; it hardly has more workers.
_LAST = 64


@dataclass(frozen=True)
class Resumed:
    """What a run keeps of the report of its first part: the header, and the results."""

    path: Path
    header: Line
    results: tuple[Line, ...]

    @property
    def ids(self) -> frozenset[str]:
        """The test ids that have a result."""
        return frozenset(line["id"] for line in self.results)

    def __str__(self) -> str:
        return f"resuming {self.path}: {len(self.results)} of {self.header['expected'] or 0} test ids have a result"

    def together(self, header: Line) -> Line:
        """The header of both parts, given that of the second. Raises UsageProblem for another number of test ids."""
        expected = self.header["expected"]
        if expected not in (None, header["expected"]):
            raise self._problem("number of test ids", expected, header["expected"])
        return {**shards.together([self.header, header]), "expected": header["expected"]}

    def verify_same_run(self, header: Line) -> None:
        """Raise UsageProblem for a header of another run, build, suite or shard, or with other parameters."""
        before, now = (_identity(head) for head in (self.header, header))
        for what in {**before, **now}:
            if before.get(what) != now.get(what):
                raise self._problem(what, before.get(what), now.get(what))
        began = datetime.fromisoformat(self.header["started"])
        if now["run id"] is None and datetime.now(timezone.utc) - began > shards.APART:
            raise UsageProblem(
                f"{self.path} cannot be resumed: it started at {began:%Y-%m-%d %H:%M}, and no run id says that "
                "it is of this run; start again with --report FILE and --run-id TEXT"
            )

    def _problem(self, what: str, before: object, now: object) -> UsageProblem:
        return UsageProblem(
            f"{self.path} cannot be resumed: its {what} is {shards.short(before)}, but this run's is "
            f"{shards.short(now)}; run what that report is of, or leave out --resume and name another file with "
            "--report"
        )


def read(path: Path) -> Resumed:
    """What is kept of a report. Raises UsageProblem for one that is damaged."""
    lines = ndjson.read(path)
    flaw = ndjson.flaw(lines)
    if flaw is not None and (flaw.finished or not ndjson.is_linked(lines)):
        reason = str(flaw) if flaw.finished else ndjson.CHANGED
        raise UsageProblem(f"{path} cannot be resumed: {reason}; run from the start with --report FILE")
    results = [line for line in lines if line["kind"] == "result"]
    # What ends a run may have ended its workers first, and these are the last results.
    last = results[-_LAST:] if flaw is not None else []
    kept = [*results[: len(results) - len(last)], *(line for line in last if not _vanished(line))]
    return Resumed(path, lines[0], tuple(kept))


def _vanished(line: Line) -> bool:
    """Whether the process of a test ended without a word, as one that was killed from outside."""
    failure = line.get("failure", {})
    return failure.get("type") == DEATH and not failure["traceback"]


def _identity(head: Line) -> Line:
    return {**shards.parameters(head), "shard": head["shard"], "claims": head["claims"]}
