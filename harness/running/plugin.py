"""The pytest plugin: its options, the subjects of the tests, and the result of each test."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from dataclasses import asdict
from functools import partial, wraps
from pathlib import Path
from typing import Any

import pytest

from autograd_conformance.harness.outcomes import (
    UNDECIDED,
    Broken,
    NotRun,
    OutOfTime,
    Record,
    UsageProblem,
    Vacuous,
    one_line,
    shortage,
)
from autograd_conformance.harness.probing import smoke
from autograd_conformance.harness.probing.devices import start
from autograd_conformance.harness.processes.blackbox import BlackBox
from autograd_conformance.harness.processes.supervision import leave_with_main_thread
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.harness.running import header, pytest_arguments, results, resuming, unclaimed
from autograd_conformance.harness.running.controller import (
    ALL_IDS,
    KEY,
    RESULT,
    Controller,
)
from autograd_conformance.harness.running.options import TIME_LIMIT, pytest_addoption
from autograd_conformance.harness.running.progress import Progress
from autograd_conformance.harness.running.selection import Catalog, Selection, Try
from autograd_conformance.harness.running.stand_ins import importable
from autograd_conformance.harness.running.unclaimed import Tested
from autograd_conformance.harness.running.workers import LACKING, Workers
from autograd_conformance.harness.testing import drawing
from autograd_conformance.harness.testing.clauses import ClauseSubject
from autograd_conformance.harness.testing.examined import PartMissing
from autograd_conformance.harness.testing.marks import AnyClaim, claim_of
from autograd_conformance.harness.testing.steering import steers
from autograd_conformance.harness.testing.subject import Subject
from autograd_conformance.harness.text import shown, visible
from autograd_conformance.implementations.deviations import Frequency

__all__ = ["TIME_LIMIT", "pytest_addoption"]

# The least number of examples before a listed deviation that few examples show counts as fixed.
_LISTED = 300

# The source of the Functions, if another plugin sets it.
CATALOG = pytest.StashKey[Catalog]()
# The black box of this process.
BOX = pytest.StashKey[BlackBox]()

_SELECTION = pytest.StashKey[Selection]()
_BOXES = pytest.StashKey[Path]()
# The test ids that have a result from an earlier part of the run.
_DONE = pytest.StashKey[frozenset[str]]()


class InWorker:
    """What a worker does when the machine lacks something: it gives the controller a sentence instead of a stack."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(tryfirst=True)
    def pytest_internalerror(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        lack = shortage(excinfo.value)
        if lack:
            self._config.workeroutput[LACKING] = shown(lack)  # type: ignore[attr-defined]
            pytest.exit(shown(lack), returncode=pytest.ExitCode.INTERNAL_ERROR)


def pytest_configure(config: pytest.Config) -> None:
    try:
        _configure(config)
    except (OSError, MemoryError, RuntimeError) as raised:
        if not shortage(raised):
            raise
        raise pytest.UsageError(shown(shortage(raised))) from None


def _configure(config: pytest.Config) -> None:
    worker: dict[str, Any] | None = getattr(config, "workerinput", {}).get("conformance")
    resumed = None
    try:
        selection = Selection.from_options(
            config.option,
            controller=worker,
            before_loading=None if worker or config.option.verified else _verify_adapter,
            catalog=config.stash.get(CATALOG, None),
        )
        if worker is not None:
            leave_with_main_thread()
            config.pluginmanager.register(InWorker(config), "autograd-conformance-worker")
            _send_visible(config)
            _verify_the_same(worker["versions"], header.versions(selection))
        else:
            resumed = _resumed(config.option.resume, selection)
            config.stash[_BOXES] = boxes = Path(tempfile.mkdtemp(prefix="autograd-conformance-"))
            controller = Controller(selection, config, boxes, resumed)
            config.pluginmanager.register(controller, "autograd-conformance-controller")
            config.pluginmanager.register(Workers(controller), "autograd-conformance-workers")
            if config.option.progress and config.get_verbosity() < 0:
                config.pluginmanager.register(Progress(controller, config, boxes), "autograd-conformance-progress")
    except UsageProblem as problem:
        raise pytest.UsageError(shown(str(problem))) from None
    config.stash[_SELECTION] = selection
    config.stash[_DONE] = frozenset(worker["done"]) if worker else resumed.ids if resumed else frozenset()
    _verify_plugins(config)
    box = worker["box"] if worker else config.option.box
    config.stash[BOX] = BlackBox(Path(box) if box else None)
    drawing.load(selection.profile)
    selection.implementation.limit_threads()


def _resumed(report: str | None, selection: Selection) -> resuming.Resumed | None:
    """What the run keeps of an interrupted one. Raises UsageProblem for another run."""
    if report is None:
        return None
    found = resuming.read(Path(report))
    found.verify_same_run(header.header(selection, None))
    return found


def _verify_plugins(config: pytest.Config) -> None:
    """Raise pytest.UsageError for plugins from outside; those of a pytest that a user started are the user's."""
    if config.option.suite_of_run is None:
        return
    try:
        pytest_arguments.verify_plugins(config)
    except UsageProblem as problem:
        raise pytest.UsageError(str(problem)) from None


def _verify_adapter(given: str) -> None:
    warning = smoke.verify(given)
    if warning:
        warnings.warn(warning, stacklevel=1)


def _send_visible(config: pytest.Config) -> None:
    """Let this worker send only what can be encoded: half a surrogate pair in a text would end the run."""
    for plugin in config.pluginmanager.get_plugins():
        if type(plugin).__name__ == "WorkerInteractor":
            plugin.sendevent = partial(_send, plugin.sendevent)


def _send(send: Callable[..., None], name: str, **what: Any) -> None:
    try:
        send(name, **visible(what))
    except OSError:
        # The run has ended, and nobody hears what this worker does.
        os._exit(UNDECIDED)


def _verify_the_same(wanted: dict[str, str], found: dict[str, str]) -> None:
    """Raise UsageProblem for a worker with other versions than the controller."""
    for name, version in wanted.items():
        if found.get(name) != version and name == "counterexamples":
            raise UsageProblem(
                f"{sys.executable} reads other counterexamples than the run has: the corpus file differs there, or it "
                "changed during the run; give all workers the same file, and leave it as it is"
            )
        if found.get(name) != version:
            raise UsageProblem(
                f"{sys.executable} has {name} {found.get(name)}, but the run uses {name} {version}; it needs the same"
            )


@pytest.hookimpl(tryfirst=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    if config.option.verified:
        # pytest collects garbage when it ends. With everything frozen that takes no time.
        gc.freeze()
    if BOX in config.stash:
        config.stash[BOX].close()
    if _BOXES in config.stash:
        shutil.rmtree(config.stash[_BOXES], ignore_errors=True)


def pytest_sessionstart(session: pytest.Session) -> None:
    session.config.stash[BOX].watch_signals()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Send every xdist worker the choices of the controller, and the path of its black box."""
    # A worker may die before xdist has heard of it, and before it gets its next test: that one runs elsewhere.
    node.sendcommand = partial(_send_if_open, node.sendcommand)
    selection = node.config.stash[_SELECTION]
    node.workerinput["conformance"] = {
        "facts": {device: asdict(facts) for device, facts in selection.facts.items()},
        "seed": selection.seed,
        "seconds": dict(selection.shard.seconds) if selection.shard else {},
        "done": sorted(node.config.stash.get(_DONE, ())),
        "versions": header.versions(selection),
        "box": str(Path(node.config.stash[_BOXES], node.gateway.id)),
    }


def _send_if_open(send: Callable[..., None], name: str, **what: Any) -> None:
    with suppress(OSError):
        send(name, **what)


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Collector, name: str, obj: object) -> list[pytest.Item] | None:
    """Make no item, which takes time, of a test that the run does not include."""
    claim = claim_of(obj) if name.startswith("test") else None
    return [] if claim is not None and not collector.config.stash[_SELECTION].wants(claim) else None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    claim = claim_of(metafunc.function)
    if claim is not None and "subject" in metafunc.fixturenames:
        selection = metafunc.config.stash[_SELECTION]
        found = [_parameter(metafunc.config, claim, s) for s in selection.subjects(claim)]
        metafunc.parametrize("subject", found)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore the dialects of other implementations, whose frameworks may not be installed."""
    path, dialect = collection_path, config.stash[_SELECTION].implementation.dialect
    return (path.parent.name == "dialects" and path.is_dir() and path.name != dialect) or None


def _parameter(config: pytest.Config, claim: AnyClaim, subject: Tested) -> Any:
    selection = config.stash[_SELECTION]
    missing = selection.not_claimed(claim, subject)
    if missing and selection.catalog.documented:
        subject = unclaimed.claiming(subject, missing)
    not_run = _reason_against(config, claim, subject)
    marks = [pytest.mark.skip(reason=str(not_run))] if not_run else []
    return pytest.param(subject, id=unclaimed.name_of(subject), marks=marks)


def _reason_against(config: pytest.Config, claim: AnyClaim, subject: Tested) -> NotRun | None:
    found: NotRun | None = config.stash[_SELECTION].reason_against(claim, subject)
    if found is None and subject.unclaimed and not hasattr(config, "workerinput"):
        return NotRun("skip", "what is not claimed may end its process, and so needs a worker: -n 1")
    return found


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Let xdist give workers what is not claimed at the end."""
    # A run without workers needs no xdist.
    from autograd_conformance.harness.running.claimed_first import ClaimedFirst

    return ClaimedFirst(config, log) if config.getvalue("dist") == "worksteal" else None


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Let the controller say why a worker cannot collect the tests."""
    try:
        with importable(session.config.stash[_SELECTION].implementation):
            return (yield)
    except pytest.UsageError as raised:
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[LACKING] = shown(str(raised))
        raise


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # A folder may have brought a conftest.
    _verify_plugins(config)
    # For a test without subjects pytest collects a skipped placeholder; remove it.
    items[:] = [item for item in items if _claim(item) is None or _subject(item) is not None]
    seen: dict[str, str] = {}
    for item in items:
        subject = _subject(item)
        if subject is None:
            continue
        other = seen.setdefault(subject.key["id"], item.nodeid)
        if other != item.nodeid:
            raise pytest.UsageError(
                f"{item.nodeid} and {other} have the same id {subject.key['id']}; add @holds(..., variant=...)"
            )
    _keep_census(config, seen)
    shard, done = config.stash[_SELECTION].shard, config.stash[_DONE]
    mine = (shard.mine(seen) if shard is not None else set(seen)) - done
    items[:] = [item for item in items if (subject := _subject(item)) is None or subject.key["id"] in mine]
    # Whatever these do to the process, the results of the others are known by then.
    items.sort(key=lambda item: bool((subject := _subject(item)) and subject.unclaimed))


def _keep_census(config: pytest.Config, ids: Iterable[str]) -> None:
    """Keep the census of the test ids of all shards, for the footer."""
    config.stash[ALL_IDS] = ndjson.census(ids)
    if hasattr(config, "workeroutput"):
        config.workeroutput["conformance_all_ids"] = config.stash[ALL_IDS]


def _claim(item: pytest.Item) -> AnyClaim | None:
    return claim_of(getattr(item, "obj", None))


def _subject(item: pytest.Item) -> Tested | None:
    callspec = getattr(item, "callspec", None)
    subject = callspec.params.get("subject") if callspec else None
    return subject if isinstance(subject, Subject | ClauseSubject) else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    subject, box = _subject(item), item.config.stash[BOX]
    if subject is None:
        return (yield)
    subject.record = Record(note=box.note)
    listed = [deviation.may_hang for deviation in subject.deviations]
    limit = item.config.option.time_limit
    box.start(item.nodeid, subject.key, limit, lambda call: any(may_hang(call) for may_hang in listed))
    try:
        return (yield)
    finally:
        box.finish()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    # What was imported stays: to look through it again at each collection of garbage takes time. In a pytest that a
    # user started, somebody may look for it.
    if session.config.option.verified:
        gc.freeze()


def _all_passes(item: Any, subject: Tested) -> Callable[..., None]:
    """The test of an item as a function that runs all its passes."""
    test, selection, box = item.obj, item.config.stash[_SELECTION], item.config.stash[BOX]
    listed = subject.deviations

    def attempt(this: Try, arguments: dict[str, Any], shrink: bool) -> None:
        subject.record.failed = None
        drawing.prepare(
            test, subject.key["id"], this.drawn.seed, examples=this.drawn.examples, shrink=shrink and not listed,
            least=_LISTED if any(d.frequency is not Frequency.ALWAYS for d in listed) else 1, share=subject.share,
        )  # fmt: skip
        subject.replayed, subject.dtype = this.call, this.drawn.dtype
        # The seed does not reproduce a kept call.
        subject.record.drawn = this.drawn if this.call is None else None
        box.drawing(subject.record.drawn)
        try:
            test(**arguments)
        except (OutOfTime, PartMissing) as ended:
            if subject.record.failed is not None:
                # The smallest call so far.
                raise subject.record.failed from None
            if isinstance(ended, PartMissing):
                raise
            subject.record.slow = True

    def run(this: Try, arguments: dict[str, Any]) -> None:
        subject.replayed = this.call
        subject.examine(test, lambda shrink: attempt(this, arguments, shrink))

    @wraps(test)
    def tried(**arguments: Any) -> None:
        claimed = not subject.unclaimed
        for this in selection.tries(subject.key["id"], claimed=claimed):
            run(this, arguments)
        for this in selection.more_tries(claimed=claimed) if not listed else ():
            record = subject.record
            if record.slow or (record.exercised if selection.catalog.documented else not record.worth_more):
                break
            run(this, arguments)

    return tried


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    subject = _subject(item)
    if subject is None:
        return (yield)
    selection = item.config.stash[_SELECTION]
    item.obj = _all_passes(item, subject)  # type: ignore[attr-defined]
    started = time.process_time()
    try:
        start(selection.implementation, subject.device)
        yield
        subject.record.verify_exercised()
    except KeyboardInterrupt as raised:
        # A user's interrupt goes to the controller; in a process that another one follows, the tested code raised it.
        if hasattr(item.config, "workerinput") or item.config.option.box:
            raise RuntimeError("the test raised KeyboardInterrupt") from raised
        raise
    except BaseException as raised:
        if steers(raised):
            raise RuntimeError(f"the code under test raised {one_line(raised)}") from raised
        raise
    finally:
        subject.cpu_seconds = time.process_time() - started


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    outcome = yield
    subject, claim = _subject(item), _claim(item)
    if subject is not None and call.when == "setup":
        outcome.user_properties.append((KEY, subject.key))
    decisive = call.when == "call" or call.excinfo is not None
    if subject is not None and claim is not None and decisive:
        error = call.excinfo.value if call.excinfo else None
        not_run = _reason_against(item.config, claim, subject) if call.when == "setup" else None
        if call.when == "setup" and error is not None and not_run is None:
            # A mark of a conftest, or a fixture: only the suite says what is not run.
            error = RuntimeError(f"the test was stopped before it began: {one_line(error)}")
        line = results.result_line(subject, error, claim.needs, not_run)
        outcome.user_properties.append((RESULT, line))
        if isinstance(error, Broken | Vacuous):
            outcome.longrepr = str(error)
        results.agree(outcome, line)
    return outcome
