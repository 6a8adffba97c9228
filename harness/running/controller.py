"""The part of the plugin in the process that the user started: it writes the report and prints the results."""

from __future__ import annotations

import signal
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from autograd_conformance.harness.catalogue import SUITES
from autograd_conformance.harness.outcomes import (
    FAILING,
    FAILS,
    HOLDS,
    NOT_RUN,
    OUTCOMES,
    UNCLAIMED,
    UNDECIDED,
    UsageProblem,
)
from autograd_conformance.harness.processes.blackbox import last_words
from autograd_conformance.harness.processes.memory import Guard
from autograd_conformance.harness.reports import files, ndjson
from autograd_conformance.harness.running import corpus, header, results
from autograd_conformance.harness.running.selection import inputs
from autograd_conformance.harness.running.watchdog import Watchdog, why_not_started
from autograd_conformance.harness.text import clock, shown
from autograd_conformance.harness.views import clause_table, summary

if TYPE_CHECKING:
    from autograd_conformance.harness.running.resuming import Resumed
    from autograd_conformance.harness.running.selection import Selection

# The user property of a pytest report that has the result line.
RESULT = "autograd-conformance"

# The user property of the report of a setup that has the first fields of the result line.
KEY = "autograd-conformance-key"

# The census of all test ids, including those of other shards.
ALL_IDS = pytest.StashKey[ndjson.Line]()

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


def _stopped_by_failures(config: pytest.Config) -> bool:
    """Whether -x or --maxfail ended a session with workers, which pytest reports like an interrupt."""
    dsession, most = config.pluginmanager.get_plugin("dsession"), config.getoption("maxfail")
    return bool(most) and dsession is not None and dsession.countfailures >= most


def _without_test(selection: Selection, results: Sequence[ndjson.Line]) -> list[str]:
    """The ids of kept counterexamples that have no test."""
    found = {line["id"] for line in results}
    # Of the shards of a run `merge` knows.
    return sorted(selection.kept.keys() - found) if selection.shard is None else []


def _unfound(selection: Selection, results: Sequence[ndjson.Line]) -> list[str]:
    """A sentence about kept counterexamples that have no test."""
    ids = _without_test(selection, results)
    return [corpus.in_words(ids)] if ids else []


def _added(selection: Selection) -> str:
    """The packages that are checked with the implementation."""
    found = [f"{name} {version}".rstrip() for name, version in selection.implementation.added.items()]
    return f" with {', '.join(found)}" if found else ""


class Controller:
    """Collects the result lines of a session, writes each to the report, and prints the results.

    ``resumed`` is what is kept of the first part of this run, which was interrupted.
    """

    def __init__(
        self, selection: Selection, config: pytest.Config, boxes: Path, resumed: Resumed | None = None
    ) -> None:
        self.selection, self.config, self.boxes, self.resumed = selection, config, boxes, resumed
        report = config.option.report or config.option.resume
        self.path = Path(report) if report is not None else None
        if self.path is not None:
            files.verify([files.Output(self.path, files.REPORT)], inputs(config.option))
        # Opened with the first line: a session that cannot start leaves the report of an earlier run.
        self.file: ndjson.ReportFile | None = None
        self.results: list[ndjson.Line] = list(resumed.results) if resumed else []
        self.counts = Counter(line["outcome"] for line in self.results)
        self.chain = ndjson.Chain({})
        self.pending: dict[str, ndjson.Line] = {}
        self.collected: set[str] | None = None
        self.finished: set[str] = set()
        self.others: list[pytest.TestReport | pytest.CollectReport] = []
        # A sentence for each lost worker, and for a report that could not be written.
        self.lost: dict[str, str] = {}
        self.ready: set[Any] = set()
        self.all_ids: ndjson.Line | None = None
        self.header: ndjson.Line | None = None
        self.complete, self.interrupted = False, False
        self.started = time.monotonic()
        self.guard = Guard(boxes, config.option.memory_limit) if config.option.memory_limit else None
        self.watchdog = Watchdog(boxes, config.option.time_limit)

    # Before the tests.

    def heading(self) -> list[str]:
        """The implementation, its location, and the options that repeat the run."""
        chosen, found = self.selection, self.selection.implementation.environment()
        seed = "" if chosen.profile.derandomized else f" (repeat with --seed {chosen.seed})"
        shard = f"; shard {chosen.shard}" if chosen.shard else ""
        never = ", a release that was never checked" if header.unchecked(chosen.implementation) else ""
        lines = [
            f"checking {chosen.implementation.name} {found.version}{_added(chosen)} from {found.location}{never}",
            *([f"which is the fork {chosen.fork}"] if chosen.fork else []),
            f"devices {', '.join(chosen.all_devices)}; profile {chosen.profile.name}, "
            f"{chosen.examples} examples, seed {chosen.seed}{seed}{shard}",
            *(f"{device}: {fact}" for device, facts in chosen.facts.items() for fact in facts.sentences()),
            *([str(self.resumed)] if self.resumed else []),
        ]
        return [shown(line) for line in lines]

    def pytest_report_header(self) -> list[str]:
        return self.heading()

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionstart(self, session: pytest.Session) -> Iterator[None]:
        if not self.config.pluginmanager.has_plugin("dsession"):
            yield
        else:
            try:
                self.watchdog.start()
                with self.watchdog.starting():
                    yield
            except Exception as raised:
                self.watchdog.stop()
                # It may be the output that cannot be written.
                if any(frame.name == "write_raw" for frame in traceback.extract_tb(raised.__traceback__)):
                    raise
                # xdist starts the workers; it would print a stack.
                raise pytest.UsageError(f"the workers cannot start: {why_not_started(raised)}") from raised
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
        self.watchdog.end(node.gateway.id)
        if self.collected is None:
            self._collected(ids)

    def _collected(self, ids: list[str]) -> None:
        self.collected = set(ids)
        # Escaped as in pytest's node ids.
        name = self.selection.implementation.name.encode("unicode_escape").decode()
        self._head(len([nodeid for nodeid in ids if f"[{name}-" in nodeid]) + len(self.results))

    def _head(self, expected: int | None) -> None:
        # Without a collection the report of the first part stays as it is.
        if self.header is not None or (self.resumed is not None and expected is None):
            return
        found = header.header(self.selection, expected)
        try:
            self.header = self.resumed.together(found) if self.resumed else found
        except UsageProblem as problem:
            pytest.exit(shown(str(problem)), returncode=UNDECIDED)
        self.chain = ndjson.Chain(self.header)
        self.results = [self.chain.linked(line) for line in self.results]
        try:
            self.file = ndjson.ReportFile(self.path) if self.path is not None else None
        except UsageProblem as problem:
            self.lost["report"] = str(problem)
        self._write(self.header, *self.results)

    def _header(self) -> ndjson.Line:
        """The header, even if the run ends before it is written."""
        return self.header or header.header(self.selection, None)

    def _write(self, *lines: ndjson.Line) -> None:
        """Append to the report, until this fails for the first time."""
        if self.file is None or "report" in self.lost:
            return
        try:
            self.file.write(*lines)
        except OSError as problem:
            reason = problem.strerror or str(problem)
            if self.file.begun:
                self.lost["report"] = f"the report {self.file.path} is incomplete, since it cannot be written: {reason}"
                return
            self.lost["report"] = str(files.Output(self.file.path, files.REPORT).problem(reason))
            self.file.close()
            self.file = None

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.others.append(report)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        properties = dict(report.user_properties)
        line = properties.get(RESULT)
        if report.when == "setup" and KEY in properties and hasattr(report, "node"):
            self.ready.add(report.node)
            self.watchdog.begin(report.nodeid, report.node, cast("ndjson.Line", properties[KEY]))
        if isinstance(line, dict):
            # A failing teardown overrides the result of the call.
            self.pending[report.nodeid] = line
        elif report.failed:
            self.others.append(report)
        # In xdist's own phase for a lost worker, only some have a result.
        if report.when == "teardown" or (report.when not in ("setup", "call") and line is not None):
            self._ended(report)

    def _ended(self, phase: pytest.TestReport) -> None:
        self.finished.add(phase.nodeid)
        self.watchdog.end(phase.nodeid)
        line = self.pending.pop(phase.nodeid, None)
        if line is not None:
            self._add(line)

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: Any) -> None:
        """A worker was lost while it ran this test: make its result, which xdist reports next."""
        self.pending.pop(crashitem, None)
        worker = report.node.gateway.id
        last, running = last_words(self.boxes / worker), self.watchdog.end(crashitem)
        if last is None and running is not None:
            # It left no black box, as on a full disk.
            last = self.watchdog.last_words(crashitem, running)
        if crashitem in self.finished:
            # The test had ended, but xdist did not know yet.
            report.when, report.outcome = "teardown", "passed"
        elif last is not None and shown(last.nodeid) == crashitem:
            i = self.selection.implementation
            line = results.died_line(last, (*i.deviations, *i.of_accelerators))
            report.user_properties.append((RESULT, line))
            results.agree(report, line)
            self.lost.pop(worker, None)

    def _add(self, line: ndjson.Line) -> None:
        self.results.append(self.chain.linked(line))
        self.counts[line["outcome"]] += 1
        self._write(self.results[-1])

    # After the tests.

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if self.guard is not None and self.guard.is_alive():
            self.guard.stop()
        self.watchdog.stop()
        self.interrupted = exitstatus == pytest.ExitCode.INTERRUPTED
        ended = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) or self._empty()
        if not ended:
            self._end_workers()
        self._head(None)
        every = ended and self.collected is not None and self.collected <= self.finished
        every = every and self._has_results()
        if every and not self.others and not self.lost and self.header is not None and self.all_ids is not None:
            seconds = time.monotonic() - self.started
            self._write(ndjson.footer([self.header, *self.results], self.all_ids, seconds))
            self.complete = not self.lost
        if self.file is not None:
            self.file.close()
        session.exitstatus = self._status(ended)

    def _end_workers(self) -> None:
        """End the workers of a run that was interrupted: xdist would wait until they do so."""
        dsession = self.config.pluginmanager.get_plugin("dsession")
        for gateway in getattr(getattr(dsession, "nodemanager", None), "group", ()):
            # One may have ended.
            with suppress(Exception):
                gateway._io.kill()

    def _empty(self) -> bool:
        """Whether no test id is left: all have a result, or belong to other shards."""
        of_others = self.selection.shard is not None and bool(self.all_ids and self.all_ids["count"])
        return self.collected == set() and (bool(self.results) or of_others)

    def _status(self, ended: bool) -> int:
        uncollected = any(isinstance(other, pytest.CollectReport) for other in self.others)
        if uncollected or self.lost or not (ended or _stopped_by_failures(self.config)):
            return UNDECIDED
        # A listed death is a failure only for xdist.
        if self.others or FAILING & self.counts.keys():
            return FAILS
        # A kept counterexample whose test is gone would hold for ever.
        found = not any(map(self.selection.should_run, _without_test(self.selection, self.results)))
        return HOLDS if self.complete and self._checked() and found else UNDECIDED

    def _has_results(self) -> bool:
        """Whether there are results, or need be none: a session of other tests, such as the selftests, has none."""
        return bool(self.results or self.selection.shard or not self.config.option.suite_of_run)

    def _checked(self) -> bool:
        """Whether a test ran, may have run in another shard, or was not one of the suite."""
        if self.selection.shard is not None:
            return True
        if not self.results:
            return self._has_results()
        return any(self.counts[name] for name in OUTCOMES.keys() - {*NOT_RUN, *UNCLAIMED})

    @pytest.hookimpl(tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        write = terminalreporter.write_line
        width = terminalreporter._tw.fullwidth
        if FAILING & self.counts.keys():
            terminalreporter.section("failures")
            write("\n".join(summary.failures(self.results, self._header(), _named_tests(self.config.args))))
        if self.config.option.tbstyle == "no":
            for other in self.others:
                terminalreporter.section(shown(other.nodeid))
                write(shown(other.longreprtext))
        if self.results:
            terminalreporter.section("results")
            parts = (
                summary.matrices(self.results, self._header(), width),
                clause_table.overview(self.results, width),
                [*summary.missing(self.results), *summary.not_run(self.results)],
                summary.known(self.results, self._header()),
            )
            write("\n\n".join("\n".join(lines) for lines in parts if lines))
        unclaimed = summary.unclaimed(self.results, width)
        if unclaimed:
            terminalreporter.section("not claimed")
            write("\n".join(unclaimed))
        # A session of other tests, such as the selftests, gets no verdict.
        if self.results or not self.finished or self.config.option.suite_of_run:
            terminalreporter.section("verdict")
            write(shown("\n".join(self._verdict())))
            write(f"took {clock(time.monotonic() - self.started)}")
            # Pytest counts otherwise, and says of an interrupt where in the suite it came.
            terminalreporter.summary_stats = terminalreporter._report_keyboardinterrupt = lambda: None

    def _verdict(self) -> list[str]:
        nothing_left = self._empty()
        if nothing_left and not self.results:
            return [f"shard {self.selection.shard} has no test id"]
        if not self.collected and self.lost:
            return [*self.lost.values()]
        if self.collected is None and self.interrupted:
            return ["the run was interrupted before it knew its tests: nothing was checked"]
        if not self.collected and not nothing_left:
            failed = " (see above)" if self.others else ""
            return [
                *_unfound(self.selection, self.results),
                f"nothing was checked{failed}: no test applies to {_choice(self.config)}",
            ]
        lines = [*self.lost.values()]
        if nothing_left:
            lines.append(f"nothing was left to run: all {len(self.results)} test ids had a result")
        collected = self.collected or set()
        missing = len(collected - self.finished)
        if missing:
            why = "; it was interrupted" if self.interrupted else ""
            lines.append(f"the run did not finish: {missing} of {len(collected)} test ids have no result{why}")
        lines += _unfound(self.selection, self.results)
        if not self._checked():
            foreign = f"no test in {self.config.option.suite_of_run} is about a property or clause"
            reason = (
                "every test of this choice was skipped, is unsupported, or is not claimed" if self.results else foreign
            )
            lines.append(f"nothing was checked: {reason}")
        lines += [summary.verdict(self.counts, self._header()), *filter(None, [summary.score(self.results)])]
        if self.file is not None:
            lines.append(f"report: {self.file.path}" + ("" if self.complete else ", without a footer"))
        return [*lines, *filter(None, [summary.unchecked(self._header())])]
