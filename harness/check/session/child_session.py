"""The checks of a plan, made in processes that may die, and followed while they are made."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from autograd_conformance.harness.catalogue import SUITES
from autograd_conformance.harness.check.declaration.declaration import REQUESTS
from autograd_conformance.harness.check.declaration.loading import Plan
from autograd_conformance.harness.check.session import plugin
from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.harness.probing.devices import Facts
from autograd_conformance.harness.processes import child, isolation
from autograd_conformance.harness.processes.blackbox import TIMEOUT, LastWords, last_words
from autograd_conformance.harness.reports import files, ndjson
from autograd_conformance.harness.running import pytest_arguments
from autograd_conformance.harness.running.patterns import matching, without_variants
from autograd_conformance.harness.running.results import died_line
from autograd_conformance.implementations.deviations import Deviation
from autograd_conformance.reference.properties import PROPERTIES

_PYTEST = (*pytest_arguments.ARGUMENTS, "-p", plugin.__name__, *pytest_arguments.ROOT, str(SUITES / "functions"))

# Seconds between two looks at what a process has written.
_PERIOD = 0.1


@dataclass
class Following:
    """The results of the checks of a plan so far.

    ``folder`` has the files in which the processes write what they do. If one dies, the test that it ran is lost, and
    another process goes on with those that are left.
    """

    folder: Path
    options: Mapping[str, Any]
    # The name that the user gave the implementation, and its listed deviations.
    implementation: str
    deviations: Sequence[Deviation]
    header: ndjson.Line | None = None
    results: list[ndjson.Line] = field(default_factory=list)
    _kept: bool = False
    _files: int = 0
    _read: int = 0
    _left: list[ndjson.Line] = field(default_factory=list)
    _running: tuple[str, float] | None = None
    _stopped: float | None = None

    @property
    def total(self) -> int:
        """The number of checks; 0 until it is known."""
        return self.header["expected"] or 0 if self.header is not None else 0

    @property
    def complete(self) -> bool:
        """Whether every check has a result."""
        return self.header is not None and len(self.results) == self.header["expected"]

    def of_devices(self) -> Iterator[str]:
        """What the accelerators do not take, and how accurate they are, in words."""
        for device, found in ((self.header or {}).get("facts") or {}).items():
            yield from (f"{device}: {sentence}" for sentence in Facts(**found).sentences())

    def running(self) -> tuple[str, float] | None:
        """The id of the test that runs, and for how many seconds."""
        last = self._last_words()
        if last is None:
            return None
        if self._running is None or self._running[0] != last.key["id"]:
            self._running = last.key["id"], time.monotonic()
        return last.key["id"], time.monotonic() - self._running[1]

    def lines(self, plan: Path, report: Path | None) -> Iterator[ndjson.Line | None]:
        """Make the checks. Yields each result as it comes, and None if nothing came for a moment.

        Each result goes to the ``report`` at once. Raises UsageProblem if no test can be run.
        """
        began, file, self._kept = time.monotonic(), None, report is not None
        try:
            for line in self._made(plan):
                if line is not None and report is not None:
                    file = file or ndjson.ReportFile(report)
                    file.write(line)
                yield None if line is None or line["kind"] == "header" else line
            if file is not None and self.header is not None:
                ids = ndjson.census(line["id"] for line in self.results)
                file.write(ndjson.footer([self.header, *self.results], ids, time.monotonic() - began))
        except OSError as problem:
            reason = problem.strerror or problem
            if report is None:
                raise UsageProblem(f"the checks cannot be made: {reason}: {problem.filename}") from None
            if file is not None and file.begun:
                message = f"the report {report} is incomplete, since it cannot be written: {reason}"
                raise UsageProblem(message) from None
            raise files.Output(report, files.REPORT).problem(str(reason)) from None
        finally:
            if file is not None:
                file.close()

    def _made(self, plan: Path) -> Iterator[ndjson.Line | None]:
        """The header, each result as it comes, and None if nothing came for a moment."""
        while not self.complete:
            before = len(self.results)
            for line in self._of_process(plan):
                yield from self._noted(line)
            last = self._last_words()
            if not self.complete and last is not None:
                yield from self._noted(died_line(last, self.deviations))
            if not self.complete and len(self.results) == before:
                raise UsageProblem(f"no test could be run; the end of pytest's output: {_tail(self._log)}")
        if not self.results:
            raise UsageProblem(self._why_nothing(Plan.read(plan)))

    def _why_nothing(self, plan: Plan) -> str:
        """Why no test applies, and what to do."""
        given = self.options["properties"]
        chosen = set(matching("property", without_variants(given), PROPERTIES))
        lacking = {word: tests for word, tests in REQUESTS.items() if word not in plan.options.get("also", ())}
        asked = [w for w, tests in lacking.items() if chosen & {test.partition("/")[0] for test in tests}]
        none, request = f"no test{f' of {given}' if given else ''} applies", " and ".join(f"--also {w}" for w in asked)
        if asked and given:
            return f"{none}: it is made on request only, or not with what is declared; add {request}"
        return (
            f"{none}: what is declared leaves it out, as surrogate leaves out VJP-FD; choose other properties, or "
            "declare less"
        )

    def _noted(self, line: ndjson.Line | None) -> Iterator[ndjson.Line | None]:
        """The line, unless it is another header."""
        if line is not None and line["kind"] == "result":
            self.results.append(line)
        elif line is not None and self.header is not None:
            return
        elif line is not None:
            self.header = line
        yield line

    def _last_words(self) -> LastWords | None:
        """What the process was doing when it wrote last, unless that has a result."""
        last = last_words(self._box)
        return None if last is None or any(r["id"] == last.key["id"] for r in self.results) else last

    @property
    def _box(self) -> Path:
        return self.folder / "box"

    @property
    def _log(self) -> Path:
        return self.folder / "pytest.log"

    def _of_process(self, plan: Path) -> Iterator[ndjson.Line | None]:
        """The header, if it is the first, and the results that a process writes until it ends."""
        self._files += 1
        self._read = 0
        report, done = (self.folder / f"{name}-{self._files}" for name in ("report", "done"))
        done.write_text("\n".join(line["id"] for line in self.results), encoding="utf-8")
        self._box.unlink(missing_ok=True)
        words = [f"--{name.replace('_', '-')}={value}" for name, value in self.options.items() if value is not None]
        own = {
            "declared": plan,
            "done": done,
            "report": report,
            "box": self._box,
            "implementation": self.implementation,
        }
        words += [f"--{name}={value}" for name, value in own.items()]
        words += ["--kept"] * self._kept
        fork = child.forks(self.implementation)
        with child.started(_pytest, (*_PYTEST, *words), str(self._log), fork=fork) as process:
            yield from self._followed(report, process)

    def _followed(self, report: Path, process: Any) -> Iterator[ndjson.Line | None]:
        """The lines of a report except its footer, while a process writes it."""
        while True:
            ended = not process.is_alive()
            lines = self._new(report)
            for self._left in (lines[n:] for n in range(1, len(lines) + 1)):
                yield lines[-len(self._left) - 1]
            if ended:
                return
            if not lines:
                yield None
                process.join(_PERIOD)
                self._end_if_stopped(process)

    def _end_if_stopped(self, process: Any) -> None:
        """End a process that is stopped for longer than the time limit: it cannot end itself."""
        with suppress(psutil.Error, OSError):
            if psutil.Process(process.pid).status() != psutil.STATUS_STOPPED:
                self._stopped = None
                return
            self._stopped = self._stopped or time.monotonic()
            if time.monotonic() - self._stopped > self.options["time_limit"]:
                with self._box.open("a", encoding="utf-8") as box:
                    box.write(f"{TIMEOUT}\n")
                process.kill()

    def _new(self, report: Path) -> list[ndjson.Line]:
        """The lines of a report that were not read before, except its footer."""
        # The last line may be half written.
        *texts, _ = report.read_bytes()[self._read :].split(b"\n") if report.exists() else [b""]
        self._read += sum(len(text) + 1 for text in texts)
        return [line for line in map(json.loads, texts) if line["kind"] != "footer"]

    def rest(self) -> list[ndjson.Line]:
        """The results that a process has written, but that were not yielded before it was interrupted."""
        found = self._left + self._new(self.folder / f"report-{self._files}")
        lines = [line for line in found if line["kind"] == "result"]
        self.results += lines
        return lines


def _pytest(words: Sequence[str], log: str) -> None:
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(file, 1)
    os.dup2(file, 2)
    isolation.isolate_environment()
    sys.exit(int(pytest.main(list(words))))


def _tail(log: Path) -> str:
    return " ".join(log.read_text(encoding="utf-8", errors="replace").split()[-60:]) if log.exists() else "nothing"
