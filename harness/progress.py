"""What is told while a run goes on: how far it is, what is running, what has fallen short, how long it will take.

On a terminal that is a display, refreshed in place; elsewhere a line a minute, and one for each shortfall.
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

from autograd_conformance.harness import runs
from autograd_conformance.harness.blackbox import last_words
from autograd_conformance.harness.outcomes import SHORTFALLS

if TYPE_CHECKING:
    from autograd_conformance.harness.reporter import Reporter

# Seconds between two lines in a log.
PERIOD = 60

# Shortfalls that are told as they come, and the columns that each may take; the end of the run tells all of them.
SHORTFALLS_TOLD = 40
_COLUMNS = 160

# Tests that must have ended before their durations say anything of the others.
_ENOUGH = 10


# The phase in which xdist says that a worker was lost.
DIED = "???"


class Course:
    """How a run goes: the tests that run and since when, and what is known of the others' durations."""

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
        """An estimate of the seconds that are left, None while too little is known.

        A test is expected to take as long as the same test took on other Functions, or as all did.
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
    """Where progress is told."""

    def tell(self, line: str) -> None:
        """Add a line that stays."""

    def refresh(self) -> None:
        """The run has moved on."""

    def stop(self) -> None:
        """Nothing more will come."""


class Log:
    """Lines in a file or a pipe."""

    def __init__(self, progress: Progress, terminal: Any) -> None:
        self._progress, self._terminal = progress, terminal
        self._last = time.monotonic()

    def tell(self, line: str) -> None:
        self._terminal.write_line(line)

    def refresh(self) -> None:
        if time.monotonic() - self._last >= PERIOD:
            self._last = time.monotonic()
            self.tell(self._progress.summary())

    def stop(self) -> None:
        pass


class Progress:
    """Follows a run, and tells of it instead of pytest's dots."""

    def __init__(self, reporter: Reporter, config: pytest.Config, boxes: Path) -> None:
        self._reporter, self._config, self._boxes = reporter, config, boxes
        self.course: Course | None = None
        self._display: Display | None = None
        self._names: dict[str, str] = {}
        self._seen = 0
        # Before pytest captures what tests write.
        self._stream = _terminal_of(config)

    # What comes in.

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
        self.course = Course(self._reporter.collected or set())
        if self._stream is None:
            self._display = Log(self, terminal)
        else:
            # Imported where it is used: most runs have no terminal.
            from autograd_conformance.harness.live import Live

            self._display = Live(self, terminal, self._stream)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if self.course is None or self._display is None:
            return
        ended = report.nodeid in self._reporter.finished or report.when == DIED
        if ended and report.nodeid in self.course.running:
            self.course.end(report.nodeid)
        for line in self._reporter.results[self._seen :]:
            self._seen += 1
            self._told(line)
        self._display.refresh()

    def _told(self, line: dict[str, Any]) -> None:
        if line["outcome"] not in SHORTFALLS or self._display is None:
            return
        number = len(self.short)
        if number <= SHORTFALLS_TOLD:
            self._display.tell(textwrap.shorten(f"{line['outcome']}: {line['id']}: {runs.message(line)}", _COLUMNS))
        if number == SHORTFALLS_TOLD:
            self._display.tell("(more are told at the end)")

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(self) -> Generator[None, Any, Any]:
        # No dots: whether a test passed is told above.
        category, _, _ = yield
        return category, "", ""

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        if self._display is not None:
            self._display.stop()

    # What is told.

    @property
    def short(self) -> list[str]:
        """The ids that have fallen short."""
        return [line["id"] for line in self._reporter.results if line["outcome"] in SHORTFALLS]

    def summary(self) -> str:
        """How far the run is, in one line."""
        if self.course is None:
            return ""
        short, left = len(self.short), self.course.remaining()
        parts = [f"{self.course.done} of {self.course.total}"]
        parts += [f"{short} fall{'s' if short == 1 else ''} short"] if short else []
        parts += [clock(self.course.seconds)]
        parts += [f"about {clock(max(1, left))} left"] if left is not None else []
        return ", ".join(parts)

    def running(self) -> list[tuple[str, float]]:
        """What runs, by test id, and for how many seconds; the longest first."""
        now = time.monotonic()
        running = list(self.course.running.items()) if self.course else []
        if any(nodeid not in self._names for nodeid, _ in running):
            self._look()
        return [(self._names.get(nodeid, nodeid.rpartition("::")[2]), now - since) for nodeid, since in running]

    def _look(self) -> None:
        """Learn from the black boxes of the workers what the tests are called that they run."""
        for path in self._boxes.iterdir():
            last = None if path.suffix else last_words(path)
            if last is not None and last.key:
                self._names[last.nodeid] = last.key["id"]


def _terminal_of(config: pytest.Config) -> Any:
    """The terminal on which something can be refreshed in place, None where there is none."""
    fit = sys.stdout.isatty() and os.environ.get("TERM", "") not in ("dumb", "unknown")
    if not fit or config.option.capture == "no":
        return None
    return os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8", errors="replace")


def clock(seconds: float) -> str:
    """The time in minutes and seconds, or in hours: 2:05, 1:02:05."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"
