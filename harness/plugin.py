"""The pytest plugin: options, the tests' subjects, and what is recorded of each test."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Generator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from autograd_conformance.harness import profiles, report, smoke
from autograd_conformance.harness.blackbox import BlackBox
from autograd_conformance.harness.clauses import ClauseSubject
from autograd_conformance.harness.marks import AnyClaim
from autograd_conformance.harness.outcomes import Broken, Record, UsageProblem, Vacuous
from autograd_conformance.harness.report import Examined
from autograd_conformance.harness.reporter import RESULT, Reporter
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
    group.addoption("--replay", metavar="FILE", help="report whose counterexamples the profile replay runs again")
    group.addoption("--verified", action="store_true", help="the adapter has passed the smoke stage")
    group.addoption("--time-limit", type=float, default=TIME_LIMIT, metavar="S", help="seconds a test may take")
    group.addoption("--memory-limit", type=float, metavar="GIB", help="memory that a worker may use")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "conformance(claim): the property that a test checks; set by @holds")
    worker: dict[str, Any] | None = getattr(config, "workerinput", None)
    try:
        selection = Selection.from_options(
            config.option,
            worker_seed=worker["conformance_seed"] if worker else None,
            before_loading=None if worker or config.option.verified else smoke.verify,
        )
        if worker is None:
            config.stash[_BOXES] = boxes = Path(tempfile.mkdtemp(prefix="autograd-conformance-"))
            config.pluginmanager.register(Reporter(selection, config, boxes), "autograd-conformance-reporter")
    except UsageProblem as problem:
        raise pytest.UsageError(str(problem)) from None
    config.stash[_SELECTION] = selection
    config.stash[_BOX] = BlackBox(Path(worker["conformance_boxes"], worker["workerid"]) if worker else None)
    profiles.load(selection.profile)
    selection.implementation.limit_threads()


def pytest_unconfigure(config: pytest.Config) -> None:
    if _BOX in config.stash:
        config.stash[_BOX].close()
    if _BOXES in config.stash:
        shutil.rmtree(config.stash[_BOXES], ignore_errors=True)


def pytest_sessionstart(session: pytest.Session) -> None:
    session.config.stash[_BOX].watch_signals()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Give every xdist worker the seed that the controller chose, and a place for its black box."""
    node.workerinput["conformance_seed"] = node.config.stash[_SELECTION].seed
    node.workerinput["conformance_boxes"] = str(node.config.stash[_BOXES])


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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
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


@cache
def _start(implementation: Implementation, device: str) -> None:
    implementation.start_device(device)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    subject = _subject(item)
    if subject is None:
        return (yield)
    selection = item.config.stash[_SELECTION]
    listed = subject.deviation is not None
    profiles.prepare(
        item.obj,  # type: ignore[attr-defined]
        subject.key["id"],
        selection.seed,
        shrink=not listed,
        least=_LISTED if listed else 1,
        share=selection.implementation.share_of_examples,
    )
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
