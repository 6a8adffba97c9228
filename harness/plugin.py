"""The pytest plugin: options, the tests' subjects, and what is recorded of each test."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from autograd_conformance.harness import profiles, report, smoke
from autograd_conformance.harness.blackbox import BlackBox
from autograd_conformance.harness.clauses import ClauseSubject
from autograd_conformance.harness.marks import AnyClaim
from autograd_conformance.harness.outcomes import Broken, Record, UsageProblem, Vacuous
from autograd_conformance.harness.progress import Progress
from autograd_conformance.harness.report import Examined
from autograd_conformance.harness.reporter import ALL, RESULT, Reporter
from autograd_conformance.harness.selection import Selection
from autograd_conformance.harness.subject import Subject
from autograd_conformance.implementations.protocol import Implementation

TIME_LIMIT = 300.0

# Examples of a listed deviation, few of which may show it, before it is said to be fixed.
_LISTED = 300

_SELECTION = pytest.StashKey[Selection]()
_BOX = pytest.StashKey[BlackBox]()
_BOXES = pytest.StashKey[Path]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("autograd-conformance", "what to check, and how thoroughly")
    group.addoption("--implementation", default="torch", metavar="NAME", help="implementation to check")
    group.addoption("--functions", metavar="PATTERN", help="Functions to check: names or globs, comma-separated")
    group.addoption("--properties", metavar="PATTERN", help="properties to check: ids or globs, comma-separated")
    group.addoption("--profile", default="gate", metavar="NAME", help=profiles.described())
    group.addoption("--seed", type=int, metavar="N", help="seed of the examples")
    group.addoption("--device", metavar="D", help="the only device to run on")
    group.addoption("--dtype", metavar="T", help="the only dtype of floating tensors")
    group.addoption("--report", metavar="FILE", help="write the results to this NDJSON file as they come")
    group.addoption("--replay", metavar="FILE", help="report or corpus that the profile replay runs again")
    group.addoption("--corpus", metavar="FILE", help="counterexamples to run before those that are drawn")
    group.addoption("--declared", metavar="FILE", help="plan of the user's Functions to check instead; see check")
    group.addoption("--cost", action="store_true", help="measure what custom Functions cost")
    group.addoption("--expect", metavar="FORK", help="distribution from which the implementation has to come")
    group.addoption("--database", metavar="PLACE", help="folder or redis:// address of the example database")
    group.addoption("--shard", metavar="I/N", help="the only part of the test ids to run, of N parts")
    group.addoption("--balance", metavar="FILE", help="report whose durations balance the shards")
    group.addoption("--progress", action="store_true", help="tell how far the run is instead of pytest's dots")
    group.addoption("--verified", action="store_true", help="the adapter has passed the smoke stage")
    group.addoption("--time-limit", type=float, default=TIME_LIMIT, metavar="S", help="seconds a test may take")
    group.addoption("--memory-limit", type=float, metavar="GIB", help="memory that a worker may use")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "conformance(claim): the property that a test checks; set by @holds")
    worker: dict[str, Any] | None = getattr(config, "workerinput", {}).get("conformance")
    try:
        selection = Selection.from_options(
            config.option,
            controller=worker,
            before_loading=None if worker or config.option.verified else smoke.verify,
        )
        if worker is not None:
            _verify_the_same(worker["versions"], report.versions(selection))
        else:
            config.stash[_BOXES] = boxes = Path(tempfile.mkdtemp(prefix="autograd-conformance-"))
            reporter = Reporter(selection, config, boxes)
            config.pluginmanager.register(reporter, "autograd-conformance-reporter")
            if config.option.progress and config.get_verbosity() < 0:
                config.pluginmanager.register(Progress(reporter, config, boxes), "autograd-conformance-progress")
    except UsageProblem as problem:
        raise pytest.UsageError(str(problem)) from None
    config.stash[_SELECTION] = selection
    config.stash[_BOX] = BlackBox(Path(worker["box"]) if worker and worker["box"] else None)
    profiles.load(selection.profile)
    selection.implementation.limit_threads()


def _verify_the_same(wanted: dict[str, str], found: dict[str, str]) -> None:
    """Raise UsageProblem for a worker whose results would be those of something else."""
    for name, version in wanted.items():
        if found.get(name) != version:
            raise UsageProblem(f"{sys.executable} has {name} {found.get(name)}, and the run is of {name} {version}")


def pytest_unconfigure(config: pytest.Config) -> None:
    if _BOX in config.stash:
        config.stash[_BOX].close()
    if _BOXES in config.stash:
        shutil.rmtree(config.stash[_BOXES], ignore_errors=True)


def pytest_sessionstart(session: pytest.Session) -> None:
    session.config.stash[_BOX].watch_signals()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell every xdist worker what the controller chose, and one on this machine the place of its black box."""
    selection, spec = node.config.stash[_SELECTION], node.gateway.spec
    box = Path(node.config.stash[_BOXES], node.gateway.id)
    node.workerinput["conformance"] = {
        "seed": selection.seed,
        "seconds": dict(selection.shard.seconds) if selection.shard else {},
        "versions": report.versions(selection),
        "box": str(box) if spec.popen and not spec.via else None,
    }
    if spec.popen and spec.python:
        # xdist gives what it takes for this interpreter the path of this one, from which another cannot import.
        spec.popen, spec.own_path = None, True


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Let xdist replace the worker by another like it."""
    spec = node.gateway.spec
    spec.popen = spec.popen or spec.own_path


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    mark = metafunc.definition.get_closest_marker("conformance")
    if mark is not None and "subject" in metafunc.fixturenames:
        claim, selection = mark.args[0], metafunc.config.stash[_SELECTION]
        metafunc.parametrize("subject", [_parameter(claim, selection, s) for s in selection.subjects(claim)])


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the dialects of other implementations: their frameworks need not be installed."""
    dialect = config.stash[_SELECTION].implementation.dialect
    return True if collection_path.parent.name == "dialects" and _other(collection_path, dialect) else None


def _other(path: Path, dialect: str) -> bool:
    return path.is_dir() and path.name != dialect


def _parameter(claim: AnyClaim, selection: Selection, subject: Examined) -> Any:
    reason = selection.reason_against(claim, subject)
    return pytest.param(subject, id=repr(subject), marks=[pytest.mark.skip(reason=reason)] if reason else [])


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # A test that applies to no selected Function is collected by pytest as a skipped placeholder: it claims nothing.
    items[:] = [item for item in items if _claim(item) is None or _subject(item) is not None]
    seen: dict[str, str] = {}
    for item in items:
        subject = _subject(item)
        if subject is None:
            continue
        other = seen.setdefault(subject.key["id"], item.nodeid)
        if other != item.nodeid:
            raise pytest.UsageError(
                f"{item.nodeid} and {other} are both {subject.key['id']}; tell them apart with @holds(..., variant=...)"
            )
    _note_all(config, seen)
    shard = config.stash[_SELECTION].shard
    if shard is not None:
        mine = shard.mine(seen)
        items[:] = [item for item in items if (subject := _subject(item)) is None or subject.key["id"] in mine]


def _note_all(config: pytest.Config, ids: Iterable[str]) -> None:
    """Keep for the footer which test ids there are in all shards."""
    config.stash[ALL] = report.census(ids)
    if hasattr(config, "workeroutput"):
        config.workeroutput["conformance_all"] = config.stash[ALL]


def _claim(item: pytest.Item) -> AnyClaim | None:
    mark = item.get_closest_marker("conformance")
    return mark.args[0] if mark else None


def _subject(item: pytest.Item) -> Examined | None:
    callspec = getattr(item, "callspec", None)
    subject = callspec.params.get("subject") if callspec else None
    return subject if isinstance(subject, Subject | ClauseSubject) else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    subject, box = _subject(item), item.config.stash[_BOX]
    if subject is None:
        return (yield)
    subject.record = Record(note=box.note)
    box.start(item.nodeid, subject.key, item.config.option.time_limit)
    try:
        return (yield)
    finally:
        box.finish()


def _in_turn(item: Any, subject: Examined) -> Callable[..., None]:
    """The test of an item, run on all that it is to be tried on."""
    test, selection, box = item.obj, item.config.stash[_SELECTION], item.config.stash[_BOX]
    listed = subject.deviation

    def tried(**arguments: Any) -> None:
        for this in selection.tries(subject.key["id"]):
            profiles.prepare(
                test, subject.key["id"], this.drawn.seed, examples=this.drawn.examples, shrink=not listed,
                least=_LISTED if listed and not listed.always else 1, share=subject.share,
                database=this.database,
            )  # fmt: skip
            subject.replayed, subject.dtype = this.call, this.drawn.dtype
            # A seed tells neither a kept call nor what a database holds.
            subject.record.drawn = this.drawn if this.call is None else None
            box.drawing(subject.record.drawn if this.database is None else None)
            try:
                test(**arguments)
            finally:
                if this.database is not None and this.database.gave_of(subject.key["id"]):
                    subject.record.drawn = None

    return tried


@cache
def _start(implementation: Implementation, device: str) -> None:
    implementation.start_device(device)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    subject = _subject(item)
    if subject is None:
        return (yield)
    selection = item.config.stash[_SELECTION]
    item.obj = _in_turn(item, subject)  # type: ignore[attr-defined]
    started = time.process_time()
    try:
        _start(selection.implementation, subject.device)
        yield
        subject.record.verify_exercised()
    except KeyboardInterrupt as raised:
        # A user's interrupt ends the run in the process that was started; here it is the implementation's.
        if hasattr(item.config, "workerinput"):
            raise RuntimeError("a KeyboardInterrupt came out of the test") from raised
        raise
    finally:
        subject.cpu_seconds = time.process_time() - started


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    outcome = yield
    subject, claim = _subject(item), _claim(item)
    decisive = call.when == "call" or call.excinfo is not None
    if subject is not None and claim is not None and decisive:
        error = call.excinfo.value if call.excinfo else None
        line = report.result_line(subject, error, claim.needs)
        outcome.user_properties.append((RESULT, line))
        if line["outcome"] == "known":
            outcome.outcome, outcome.wasxfail = "skipped", line["reason"]
        if isinstance(error, Broken | Vacuous):
            outcome.longrepr = str(error)
    return outcome
