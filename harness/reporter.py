"""The part of the plugin that runs once, in the process the user started: writes the report and tells the results."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from autograd_conformance.harness import report, summary
from autograd_conformance.harness.blackbox import last_words
from autograd_conformance.harness.memory import Guard
from autograd_conformance.harness.outcomes import OUTCOMES, SHORTFALLS

if TYPE_CHECKING:
    from autograd_conformance.harness.selection import Selection

# The user property under which a test's report carries its result line.
RESULT = "autograd-conformance"

SUITES = Path(__file__).resolve().parent.parent / "suites"

HOLDS, FALLS_SHORT, USAGE = 0, 1, 2


def _stop_when_interrupted(session: pytest.Session) -> None:
    """Let an interrupt end the session even if the exception that it raises is lost, as it is in a finalizer."""

    def interrupt(number: int, frame: Any) -> None:
        session.shouldstop = "interrupted"
        signal.default_int_handler(number, frame)

    def restore() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)

    # Handlers can be set in the main thread only.
    in_main_thread = threading.current_thread() is threading.main_thread()
    if in_main_thread and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
        session.config.add_cleanup(restore)


class Reporter:
    """Collects the result lines of a session and writes each as it comes."""

    def __init__(self, selection: Selection, config: pytest.Config, boxes: Path) -> None:
        self.selection, self.config, self.boxes = selection, config, boxes
        self.file: report.ReportFile | None = None
        if config.option.report is not None:
            report.check_path(Path(config.option.report))
            self.file = report.ReportFile(Path(config.option.report))
        self.results: list[report.Line] = []
        self.counts: Counter[str] = Counter()
        self.pending: dict[str, report.Line] = {}
        self.collected: set[str] | None = None
        self.finished: set[str] = set()
        self.others: list[pytest.TestReport | pytest.CollectReport] = []
        self.complete = self.headed = False
        self.started = time.monotonic()
        self.guard = Guard(boxes, config.option.memory_limit) if config.option.memory_limit else None

    # What is told first.

    def heading(self) -> list[str]:
        """What is checked, where it was found, and how to repeat the run."""
        chosen, found = self.selection, self.selection.implementation.environment()
        seed = "" if chosen.profile.derandomized else f" (repeat with --seed {chosen.seed})"
        return [
            f"checking {chosen.implementation.name} {found.version} from {found.location}",
            f"devices {', '.join(chosen.all_devices)}; profile {chosen.profile.name}, "
            f"{chosen.examples} examples, seed {chosen.seed}{seed}",
        ]

    def pytest_report_header(self) -> list[str]:
        return self.heading()

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        _stop_when_interrupted(session)
        if self.guard is not None:
            self.guard.start()
        # With -q pytest tells no header.
        if self.config.get_verbosity() < 0:
            self._terminal().write_line("\n".join(self.heading()))

    def _terminal(self) -> Any:
        return self.config.pluginmanager.get_plugin("terminalreporter")

    # What comes in.

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if not self.config.pluginmanager.has_plugin("dsession"):
            self._collected([item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        if self.collected is None:
            self._collected(ids)

    def _collected(self, ids: list[str]) -> None:
        self.collected = set(ids)
        ours = [nodeid for nodeid in ids if f"[{self.selection.implementation.name}-" in nodeid]
        self._head(len(ours))

    def _head(self, expected: int | None) -> None:
        if self.file is not None and not self.headed:
            self.file.write(report.header(self.selection, expected))
        self.headed = True

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.others.append(report)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        line = dict(report.user_properties).get(RESULT)
        if isinstance(line, dict):
            # A failing teardown overrides what came before.
            self.pending[report.nodeid] = line
        elif report.failed:
            self.others.append(report)
        if report.when not in ("setup", "call", "teardown"):  # as xdist says it
            self._died(report)
        elif report.when == "teardown":
            self._ended(report)

    def _ended(self, phase: pytest.TestReport) -> None:
        self.finished.add(phase.nodeid)
        line = self.pending.pop(phase.nodeid, None)
        if line is not None:
            self._add(line)

    def _died(self, phase: pytest.TestReport) -> None:
        """A worker was lost while it ran this test."""
        self.pending.pop(phase.nodeid, None)
        gateway = getattr(getattr(phase, "node", None), "gateway", None)
        last = last_words(self.boxes / gateway.id) if gateway is not None else None
        if last is not None and last.nodeid == phase.nodeid:
            self.finished.add(phase.nodeid)
            self._add(report.died_line(last, self.selection))
            self.others.remove(phase)

    def _add(self, line: report.Line) -> None:
        self.results.append(line)
        self.counts[line["outcome"]] += 1
        if self.file is not None:
            self.file.write(line)

    # What is told last.

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if self.guard is not None and self.guard.is_alive():
            self.guard.stop()
        ended = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        self.complete = ended and self.collected is not None and self.collected <= self.finished
        self._head(None)
        if self.file is not None:
            if self.complete:
                seconds = time.monotonic() - self.started
                self.file.write(report.footer(self.counts, sum(r["examples"] for r in self.results), seconds))
            self.file.close()
        session.exitstatus = self._status(exitstatus)

    def _status(self, exitstatus: int) -> int:
        uncollected = any(isinstance(other, pytest.CollectReport) for other in self.others)
        if uncollected or exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            return USAGE
        # A listed death is a failure for xdist alone.
        if self.others or SHORTFALLS & self.counts.keys():
            return FALLS_SHORT
        return HOLDS if self.complete and self._checked() else USAGE

    def _checked(self) -> bool:
        """Whether a test ran, or the session is one of other tests."""
        return not self.results or any(self.counts[name] for name in OUTCOMES if name not in ("skip", "unsupported"))

    @pytest.hookimpl(tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        tell = terminalreporter.write_line
        width = terminalreporter._tw.fullwidth
        if SHORTFALLS & self.counts.keys():
            terminalreporter.section("what does not")
            tell("\n".join(summary.shortfalls(self.results, self.selection, self._suite())))
        if self.config.option.tbstyle == "no":
            for other in self.others:
                terminalreporter.section(other.nodeid)
                tell(other.longreprtext)
        if self.results:
            terminalreporter.section("what holds")
            told = (summary.matrices(self.results, self.selection, width), summary.clauses(self.results, width))
            tell("\n\n".join("\n".join(lines) for lines in told if lines))
        # A session of other tests, those of the suite itself, is left alone.
        if self.results or not self.finished:
            terminalreporter.section("verdict")
            tell("\n".join(self._verdict()))

    def _suite(self) -> str | None:
        """The tests that were named on the command line, unless they are the whole suite."""
        paths = [Path(argument) for argument in self.config.args]
        if len(paths) != 1 or not paths[0].exists() or paths[0].resolve() == SUITES:
            return None
        return str(paths[0])

    def _verdict(self) -> list[str]:
        if not self.collected:
            failed = " (see above)" if self.others else ""
            return [f"nothing was checked{failed}: no test applies to this choice of Functions, properties and device"]
        lines = []
        if not self.complete:
            missing = len(self.collected - self.finished)
            lines.append(f"the run did not finish: {missing} of {len(self.collected)} test ids have no result")
        if not self._checked():
            lines.append("nothing was checked: every test of this choice was skipped or is unsupported")
        lines.append(summary.verdict(self.counts, self.selection))
        if self.file is not None:
            lines.append(f"report: {self.file.path}" + ("" if self.complete else ", without a footer"))
        return lines
