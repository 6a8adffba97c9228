"""The progress of a run: how many tests ended, which ones run, which ones failed, and the time left.

On a terminal this is a display that is refreshed in place; in a log it is a line every minute and for each failure.
"""

from __future__ import annotations

import os
import sys
import textwrap
import time
from collections import Counter, defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from autograd_conformance.harness.outcomes import FAILING, MISSING
from autograd_conformance.harness.processes import waiting
from autograd_conformance.harness.processes.blackbox import last_words
from autograd_conformance.harness.text import clock
from autograd_conformance.harness.views import describe

if TYPE_CHECKING:
    from autograd_conformance.harness.running.controller import Controller

# Seconds between two lines in a log.
PERIOD = 60

# The most failures that are shown during the run, and the width of each; the end of the run shows all of them.
FAILURES_SHOWN = 40
_COLUMNS = 160

# The number of tests that must have ended before the time left is estimated.
_ENOUGH = 10


# The phase with which xdist reports a lost worker.
DIED = "???"


class Course:
    """The tests that run and since when, and the durations of those that ended."""

    def __init__(self, nodeids: set[str]) -> None:
        self.total = len(nodeids)
        self.running: dict[str, float] = {}
        self._left = Counter(map(_test, nodeids))
        self._ended: Counter[str] = Counter()
        self._seconds: dict[str, float] = defaultdict(float)
        self._parallel = 1
        self._began = time.monotonic()

    @property
    def done(self) -> int:
        """How many tests have ended."""
        return self._ended.total()

    @property
    def seconds(self) -> float:
        """The time since the first test began."""
        return time.monotonic() - self._began

    def begin(self, nodeid: str) -> None:
        """A test begins."""
        self.running[nodeid] = time.monotonic()
        self._parallel = max(self._parallel, len(self.running))

    def end(self, nodeid: str) -> None:
        """A test has ended."""
        test = _test(nodeid)
        self._left[test] -= 1
        self._ended[test] += 1
        self._seconds[test] += time.monotonic() - self.running.pop(nodeid, time.monotonic())

    def remaining(self) -> float | None:
        """An estimate of the seconds that are left; None while too few tests have ended.

        A test is expected to take as long as it took on other Functions, or else as long as the average test.
        """
        if self.done < min(_ENOUGH, self.total):
            return None
        usual = sum(self._seconds.values()) / self.done
        expected = {test: self._seconds[test] / count for test, count in self._ended.items()}
        return sum(count * expected.get(test, usual) for test, count in self._left.items()) / self._parallel


def _test(nodeid: str) -> str:
    """The test function of a node id."""
    return nodeid.partition("[")[0]


class Display(Protocol):
    """Where progress is shown."""

    def write(self, line: str) -> None:
        """Add a permanent line."""

    def refresh(self) -> None:
        """Show the current progress."""

    def stop(self) -> None:
        """End the display."""


class Log:
    """Progress as lines in a file or a pipe."""

    def __init__(self, progress: Progress, terminal: Any) -> None:
        self._progress, self._terminal = progress, terminal
        self._last = time.monotonic()

    def write(self, line: str) -> None:
        self._terminal.write_line(line)

    def refresh(self) -> None:
        if time.monotonic() - self._last >= PERIOD:
            self._last = time.monotonic()
            self.write(self._progress.summary())

    def stop(self) -> None:
        pass


class Progress:
    """Shows the progress of a run instead of pytest's dots."""

    def __init__(self, controller: Controller, config: pytest.Config, boxes: Path) -> None:
        self._controller, self._config, self._boxes = controller, config, boxes
        self.course: Course | None = None
        self._display: Display | None = None
        self._names: dict[str, str] = {}
        # Those of an earlier part of the run were shown by it.
        self._seen = len(controller.results)
        # Before pytest captures what tests write.
        self._stream = _terminal_of(config)

    # Events.

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        subject = item.callspec.params.get("subject") if hasattr(item, "callspec") else None
        if subject is not None:
            self._names[item.nodeid] = subject.key["id"]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        if self.course is None:
            self._start()
        if self.course is not None:
            self.course.begin(nodeid)

    def _start(self) -> None:
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        self.course = Course(self._controller.collected or set())
        if self._stream is None:
            self._display = Log(self, terminal)
            waiting.phase(self._waits)
        else:
            # Imported where it is used: most runs have no terminal.
            from autograd_conformance.harness.running.live import OverPytest

            self._display = OverPytest(self, terminal, self._stream)
            # It shows what runs.
            waiting.phase(None)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if self.course is None or self._display is None:
            return
        waiting.moved()
        ended = report.nodeid in self._controller.finished or report.when == DIED
        if ended and report.nodeid in self.course.running:
            self.course.end(report.nodeid)
        for line in self._controller.results[self._seen :]:
            self._seen += 1
            self._show(line)
        self._display.refresh()

    def _show(self, line: dict[str, Any]) -> None:
        if line["outcome"] not in FAILING or line["outcome"] == MISSING or self._display is None:
            return
        number = len(self.failed)
        if number <= FAILURES_SHOWN:
            self._display.write(
                textwrap.shorten(f"{line['outcome']}: {line['id']}: {describe.message(line)}", _COLUMNS)
            )
        if number == FAILURES_SHOWN:
            self._display.write("(the end of the run shows all failures)")

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(self) -> Generator[None, Any, Any]:
        # No dots.
        category, _, _ = yield
        return category, "", ""

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        if self._display is not None:
            self._display.stop()
        waiting.phase("the workers to end")

    # What is shown.

    @property
    def failed(self) -> list[str]:
        """The test ids that failed."""
        return [line["id"] for line in self._controller.results if line["outcome"] in FAILING]

    def summary(self) -> str:
        """The progress in one line."""
        if self.course is None:
            return ""
        failed, left = len(self.failed), self.course.remaining()
        parts = [f"{self.course.done} of {self.course.total}"]
        parts += [f"{failed} failed"] if failed else []
        parts += [clock(self.course.seconds)]
        parts += [f"about {clock(max(1, left))} left"] if left is not None else []
        return ", ".join(parts)

    def running(self) -> list[tuple[str, float]]:
        """The test ids that run, and for how many seconds; the longest first."""
        now = time.monotonic()
        running = list(self.course.running.items()) if self.course else []
        if any(nodeid not in self._names for nodeid, _ in running):
            self._read_names()
        return [(self._names.get(nodeid, nodeid.rpartition("::")[2]), now - since) for nodeid, since in running]

    def _waits(self) -> str:
        running = sorted(self.running(), key=lambda test: -test[1])
        tests = ", ".join(f"{id} ({clock(seconds)})" for id, seconds in running) or "workers without a test"
        limit = self._config.option.time_limit
        return f"{tests}; a test is ended after {clock(limit)}" if limit else tests

    def _read_names(self) -> None:
        """Read the test ids that the workers run from their black boxes."""
        for path in self._boxes.iterdir():
            last = None if path.suffix else last_words(path)
            if last is not None and last.key:
                self._names[last.nodeid] = last.key["id"]


def refreshes() -> bool:
    """Whether stdout is a terminal whose text can be refreshed in place."""
    return sys.stdout.isatty() and os.environ.get("TERM", "") not in ("dumb", "unknown")


def _terminal_of(config: pytest.Config) -> Any:
    """The terminal, if text on it can be refreshed in place."""
    if not refreshes() or config.option.capture == "no":
        return None
    return os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8", errors="replace")
