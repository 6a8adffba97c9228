"""The part of the plugin that runs once, in the process the user started: writes the report and tells the results."""

from __future__ import annotations

import re
import signal
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from autograd_conformance.harness import cost, costs, report, summary
from autograd_conformance.harness.blackbox import last_words
from autograd_conformance.harness.catalogue import SUITES
from autograd_conformance.harness.memory import Guard
from autograd_conformance.harness.outcomes import OUTCOMES, SHORTFALLS

if TYPE_CHECKING:
    from autograd_conformance.harness.selection import Selection

# The user property under which a test's report carries its result line.
RESULT = "autograd-conformance"

# The census of all test ids, those of other shards included.
ALL = pytest.StashKey[report.Line]()

# Workers that may be lost before they have collected the tests, which the next one will hardly do either.
UNREADY = 3

HOLDS, FALLS_SHORT, USAGE = 0, 1, 2

# Kept counterexamples without a test that are named.
_NAMED = 5


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
        # Before anything else runs.
        self.costs = cost.measured(selection.named) if config.option.cost else []
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
        # Workers that were lost, and the report if it could not be written, each with a sentence.
        self.lost: dict[str, str] = {}
        self.ready: set[Any] = set()
        self.all: report.Line | None = None
        self.header: report.Line | None = None
        self.complete = False
        self.started = time.monotonic()
        self.guard = Guard(boxes, config.option.memory_limit) if config.option.memory_limit else None

    # What is told first.

    def heading(self) -> list[str]:
        """What is checked, where it was found, and how to repeat the run."""
        chosen, found = self.selection, self.selection.implementation.environment()
        seed = "" if chosen.profile.derandomized else f" (repeat with --seed {chosen.seed})"
        shard = f"; shard {chosen.shard}" if chosen.shard else ""
        return [
            f"checking {chosen.implementation.name} {found.version} from {found.location}",
            *([f"which is the fork {chosen.fork}"] if chosen.fork else []),
            f"devices {', '.join(chosen.all_devices)}; profile {chosen.profile.name}, "
            f"{chosen.examples} examples, seed {chosen.seed}{seed}{shard}",
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
            self.all = self.config.stash.get(ALL, None)
            self._collected([item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        self.ready.add(node)
        if self.collected is None:
            self._collected(ids)

    @pytest.hookimpl(optionalhook=True, tryfirst=True)
    def pytest_testnodedown(self, node: Any, error: Any) -> None:
        self.all = getattr(node, "workeroutput", {}).get("conformance_all", self.all)
        if error is None:
            return
        # Of a traceback what was raised; xdist tells all of it.
        raised = re.findall(r"^[\w.]+: .*", str(error), re.MULTILINE)
        worker, reason = node.gateway.id, "; ".join(raised) or str(error)
        self.lost[worker] = f"worker {worker} was lost: {reason}"
        if node not in self.ready and (raised or len(self.lost) >= UNREADY):
            pytest.exit(f"worker {worker} ({node.gateway.spec}) does not start: {reason}", returncode=USAGE)

    def _collected(self, ids: list[str]) -> None:
        self.collected = set(ids)
        # As pytest writes it in a test's name.
        name = self.selection.implementation.name.encode("unicode_escape").decode()
        self._head(len([nodeid for nodeid in ids if f"[{name}-" in nodeid]))

    def _head(self, expected: int | None) -> None:
        if self.header is None:
            self.header = report.header(self.selection, expected)
            self._write(self.header)

    def _write(self, line: report.Line) -> None:
        """Append to the report, until that fails for the first time."""
        if self.file is None or "report" in self.lost:
            return
        try:
            self.file.write(line)
        except OSError as problem:
            reason = problem.strerror or problem
            self.lost["report"] = f"the report {self.file.path} could not be written to its end: {reason}"

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
        worker = phase.node.gateway.id
        last = last_words(self.boxes / worker)
        if phase.nodeid in self.finished:
            # It had ended, which xdist had not yet been told.
            self.others.remove(phase)
        elif last is not None and last.nodeid == phase.nodeid:
            self.finished.add(phase.nodeid)
            self._add(report.died_line(last, self.selection))
            self.others.remove(phase)
            self.lost.pop(worker, None)

    def _add(self, line: report.Line) -> None:
        self.results.append(line)
        self.counts[line["outcome"]] += 1
        self._write(line)

    # What is told last.

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if self.guard is not None and self.guard.is_alive():
            self.guard.stop()
        ended = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) or self._empty()
        self._head(None)
        whole = ended and self.collected is not None and self.collected <= self.finished
        if whole and not self.others and not self.lost and self.header is not None and self.all is not None:
            seconds = time.monotonic() - self.started
            self._write(report.footer([self.header, *self.results], self.all, seconds, self.costs))
            self.complete = not self.lost
        if self.file is not None:
            self.file.close()
        session.exitstatus = self._status(ended)

    def _empty(self) -> bool:
        """Whether all test ids belong to other shards."""
        return self.selection.shard is not None and self.collected == set() and bool(self.all and self.all["count"])

    def _status(self, ended: bool) -> int:
        uncollected = any(isinstance(other, pytest.CollectReport) for other in self.others)
        if uncollected or self.lost or not ended:
            return USAGE
        # A listed death is a failure for xdist alone.
        if self.others or SHORTFALLS & self.counts.keys():
            return FALLS_SHORT
        return HOLDS if self.complete and self._checked() else USAGE

    def _checked(self) -> bool:
        """Whether a test ran, or may have run in another shard, or the session is one of other tests."""
        if self.selection.shard is not None:
            return True
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
        if self.costs:
            terminalreporter.section("what it costs")
            tell("\n".join(costs.table(self.costs)))
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

    def _unfound(self) -> list[str]:
        """What is said of kept counterexamples that had no test."""
        found = {line["id"] for line in self.results}
        ids = sorted(self.selection.kept.keys() - found) if self.selection.shard is None else []
        more = f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else ""
        named = f"{', '.join(ids[:_NAMED])}{more}"
        return [f"{len(ids)} of the kept counterexamples have no test in this run: {named}"] if ids else []

    def _verdict(self) -> list[str]:
        if self._empty():
            return [f"shard {self.selection.shard} has no test id"]
        if not self.collected and self.lost:
            return [*self.lost.values()]
        if not self.collected:
            failed = " (see above)" if self.others else ""
            what = "no test applies to this choice of Functions, properties and device"
            return [*self._unfound(), f"nothing was checked{failed}: {what}"]
        lines = [*self.lost.values()]
        missing = len(self.collected - self.finished)
        if missing:
            lines.append(f"the run did not finish: {missing} of {len(self.collected)} test ids have no result")
        lines += self._unfound()
        if not self._checked():
            lines.append("nothing was checked: every test of this choice was skipped or is unsupported")
        lines.append(summary.verdict(self.counts, self.selection))
        if self.file is not None:
            lines.append(f"report: {self.file.path}" + ("" if self.complete else ", without a footer"))
        return lines
