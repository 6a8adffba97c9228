"""The part of the plugin in the process that the user started: it writes the report and prints the results."""

from __future__ import annotations

import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from autograd_conformance.harness.catalogue import SUITES
from autograd_conformance.harness.outcomes import FAILING, OUTCOMES, UsageProblem, one_line
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.harness.running import cost, header, results
from autograd_conformance.harness.running.blackbox import last_words
from autograd_conformance.harness.running.memory import Guard
from autograd_conformance.harness.views import summary

if TYPE_CHECKING:
    from autograd_conformance.harness.running.selection import Selection

# The user property of a pytest report that has the result line.
RESULT = "autograd-conformance"

# The census of all test ids, including those of other shards.
ALL_IDS = pytest.StashKey[ndjson.Line]()

# The run ends when this number of workers were lost before they had collected the tests.
UNREADY = 3

HOLDS, FAILS, USAGE = 0, 1, 2

# The most kept counterexamples without a test that are named.
_NAMED = 5

# The options of pytest that leave tests out.
_LEAVING_OUT = {"keyword": "-k", "markexpr": "-m", "deselect": "--deselect"}


def _stop_when_interrupted(session: pytest.Session) -> None:
    """Let an interrupt end the session even if its exception is lost, as in a finalizer."""

    def interrupt(number: int, frame: Any) -> None:
        session.shouldstop = "interrupted"
        signal.default_int_handler(number, frame)

    def restore() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)

    # Only the main thread can set handlers.
    in_main_thread = threading.current_thread() is threading.main_thread()
    if in_main_thread and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
        session.config.add_cleanup(restore)


def _named_tests(arguments: Sequence[str]) -> str | None:
    """The tests that were named on the command line, unless they are the complete suite."""
    paths = [Path(argument) for argument in arguments]
    if len(paths) != 1 or not paths[0].exists() or paths[0].resolve() == SUITES:
        return None
    return str(paths[0])


def _choice(config: pytest.Config) -> str:
    """What chose the tests of the run."""
    given = {flag: config.getoption(name, None) or () for name, flag in _LEAVING_OUT.items()}
    values = {flag: [value] if isinstance(value, str) else value for flag, value in given.items()}
    words = [f"{flag} {value}" for flag, several in values.items() for value in several]
    what = "this choice of Functions, properties and device"
    return f"{what}, with pytest's {' '.join(words)}" if words else what


class Controller:
    """Collects the result lines of a session, writes each to the report, and prints the results."""

    def __init__(self, selection: Selection, config: pytest.Config, boxes: Path) -> None:
        self.selection, self.config, self.boxes = selection, config, boxes
        # Measured before anything else runs.
        self.costs = cost.measured(selection.named) if config.option.cost else []
        self.path = Path(config.option.report) if config.option.report is not None else None
        if self.path is not None:
            ndjson.check_path(self.path)
        # Opened with the first line: a session that cannot start leaves the report of an earlier run.
        self.file: ndjson.ReportFile | None = None
        self.results: list[ndjson.Line] = []
        self.counts: Counter[str] = Counter()
        self.pending: dict[str, ndjson.Line] = {}
        self.collected: set[str] | None = None
        self.finished: set[str] = set()
        self.others: list[pytest.TestReport | pytest.CollectReport] = []
        # A sentence for each lost worker, and for a report that could not be written.
        self.lost: dict[str, str] = {}
        self.ready: set[Any] = set()
        self.all_ids: ndjson.Line | None = None
        self.header: ndjson.Line | None = None
        self.complete = False
        self.started = time.monotonic()
        self.guard = Guard(boxes, config.option.memory_limit) if config.option.memory_limit else None

    # Before the tests.

    def heading(self) -> list[str]:
        """The implementation, its location, and the options that repeat the run."""
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

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionstart(self, session: pytest.Session) -> Iterator[None]:
        try:
            yield
        except Exception as raised:
            if not self.config.pluginmanager.has_plugin("dsession"):
                raise
            # xdist starts the workers; it would print a stack.
            specs = ", ".join(dict.fromkeys(self.config.option.tx))
            raise pytest.UsageError(f"the workers {specs} cannot start: {one_line(raised)}") from raised
        _stop_when_interrupted(session)
        if self.guard is not None:
            self.guard.start()
        # With -q pytest prints no header.
        if self.config.get_verbosity() < 0:
            self._terminal().write_line("\n".join(self.heading()))

    def _terminal(self) -> Any:
        return self.config.pluginmanager.get_plugin("terminalreporter")

    # During the tests.

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if not self.config.pluginmanager.has_plugin("dsession"):
            self.all_ids = self.config.stash.get(ALL_IDS, None)
            self._collected([item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        self.ready.add(node)
        if self.collected is None:
            self._collected(ids)

    @pytest.hookimpl(optionalhook=True, tryfirst=True)
    def pytest_testnodedown(self, node: Any, error: Any) -> None:
        self.all_ids = getattr(node, "workeroutput", {}).get("conformance_all_ids", self.all_ids)
        if error is None:
            return
        # Only the exceptions of a traceback; xdist prints all of it.
        raised = re.findall(r"^[\w.]+: .*", str(error), re.MULTILINE)
        worker, reason = node.gateway.id, "; ".join(raised) or str(error)
        self.lost[worker] = f"worker {worker} was lost: {reason}"
        if node not in self.ready and (raised or len(self.lost) >= UNREADY):
            pytest.exit(f"worker {worker} ({node.gateway.spec}) cannot start: {reason}", returncode=USAGE)

    def _collected(self, ids: list[str]) -> None:
        self.collected = set(ids)
        # Escaped as in pytest's node ids.
        name = self.selection.implementation.name.encode("unicode_escape").decode()
        self._head(len([nodeid for nodeid in ids if f"[{name}-" in nodeid]))

    def _head(self, expected: int | None) -> None:
        if self.header is not None:
            return
        self.header = header.header(self.selection, expected)
        try:
            self.file = ndjson.ReportFile(self.path) if self.path is not None else None
        except UsageProblem as problem:
            self.lost["report"] = str(problem)
        self._write(self.header)

    def _header(self) -> ndjson.Line:
        """The header, even if the run ends before it is written."""
        return self.header or header.header(self.selection, None)

    def _write(self, line: ndjson.Line) -> None:
        """Append to the report, until this fails for the first time."""
        if self.file is None or "report" in self.lost:
            return
        try:
            self.file.write(line)
        except OSError as problem:
            reason = problem.strerror or problem
            self.lost["report"] = f"the report {self.file.path} is incomplete, since it cannot be written: {reason}"

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.others.append(report)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        line = dict(report.user_properties).get(RESULT)
        if isinstance(line, dict):
            # A failing teardown overrides the result of the call.
            self.pending[report.nodeid] = line
        elif report.failed:
            self.others.append(report)
        if report.when not in ("setup", "call", "teardown"):  # xdist's own phase for a lost worker
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
            # The test had ended, but xdist did not know yet.
            self.others.remove(phase)
        elif last is not None and last.nodeid == phase.nodeid:
            self.finished.add(phase.nodeid)
            self._add(results.died_line(last, self.selection.implementation.deviations))
            self.others.remove(phase)
            self.lost.pop(worker, None)

    def _add(self, line: ndjson.Line) -> None:
        self.results.append(line)
        self.counts[line["outcome"]] += 1
        self._write(line)

    # After the tests.

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if self.guard is not None and self.guard.is_alive():
            self.guard.stop()
        ended = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) or self._empty()
        self._head(None)
        every = ended and self.collected is not None and self.collected <= self.finished
        if every and not self.others and not self.lost and self.header is not None and self.all_ids is not None:
            seconds = time.monotonic() - self.started
            self._write(ndjson.footer([self.header, *self.results], self.all_ids, seconds, self.costs))
            self.complete = not self.lost
        if self.file is not None:
            self.file.close()
        session.exitstatus = self._status(ended)

    def _empty(self) -> bool:
        """Whether all test ids belong to other shards."""
        return (
            self.selection.shard is not None
            and self.collected == set()
            and bool(self.all_ids and self.all_ids["count"])
        )

    def _status(self, ended: bool) -> int:
        uncollected = any(isinstance(other, pytest.CollectReport) for other in self.others)
        if uncollected or self.lost or not (ended or self._stopped_by_failures()):
            return USAGE
        # A listed death is a failure only for xdist.
        if self.others or FAILING & self.counts.keys():
            return FAILS
        # A kept counterexample whose test is gone would hold for ever.
        found = not (self.selection.replays and self._unfound())
        return HOLDS if self.complete and self._checked() and found else USAGE

    def _stopped_by_failures(self) -> bool:
        """Whether -x or --maxfail ended a session with workers, which pytest reports like an interrupt."""
        dsession = self.config.pluginmanager.get_plugin("dsession")
        most = self.config.getoption("maxfail")
        return bool(most) and dsession is not None and dsession.countfailures >= most

    def _checked(self) -> bool:
        """Whether a test ran, may have run in another shard, or was not one of the suite."""
        if self.selection.shard is not None:
            return True
        return not self.results or any(self.counts[name] for name in OUTCOMES if name not in ("skip", "unsupported"))

    @pytest.hookimpl(tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        write = terminalreporter.write_line
        width = terminalreporter._tw.fullwidth
        if FAILING & self.counts.keys():
            terminalreporter.section("failures")
            write("\n".join(summary.failures(self.results, self._header(), _named_tests(self.config.args))))
        if self.config.option.tbstyle == "no":
            for other in self.others:
                terminalreporter.section(other.nodeid)
                write(other.longreprtext)
        if self.results:
            terminalreporter.section("results")
            parts = (summary.matrices(self.results, self._header(), width), summary.clauses(self.results, width))
            write("\n\n".join("\n".join(lines) for lines in parts if lines))
        if self.costs:
            terminalreporter.section("costs")
            write("\n".join(summary.costs(self.costs)))
        # A session of other tests, such as the selftests, gets no verdict.
        if self.results or not self.finished:
            terminalreporter.section("verdict")
            write("\n".join(self._verdict()))

    def _unfound(self) -> list[str]:
        """A sentence about kept counterexamples that have no test."""
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
            return [*self._unfound(), f"nothing was checked{failed}: no test applies to {_choice(self.config)}"]
        lines = [*self.lost.values()]
        missing = len(self.collected - self.finished)
        if missing:
            lines.append(f"the run did not finish: {missing} of {len(self.collected)} test ids have no result")
        lines += self._unfound()
        if not self._checked():
            lines.append("nothing was checked: every test of this choice was skipped or is unsupported")
        lines.append(summary.verdict(self.counts, self._header()))
        if self.file is not None:
            lines.append(f"report: {self.file.path}" + ("" if self.complete else ", without a footer"))
        return lines
