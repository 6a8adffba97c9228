"""The pytest plugin that makes a run check the Functions of a plan instead of the documented ones."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from autograd_conformance.harness.check.declaration.loading import Plan
from autograd_conformance.harness.check.report.verdicts import TRIED
from autograd_conformance.harness.check.session.declared import Declared
from autograd_conformance.harness.check.subject import OwnSubject
from autograd_conformance.harness.outcomes import OutOfTime
from autograd_conformance.harness.running.plugin import BOX, CATALOG
from autograd_conformance.harness.running.selection import Catalog
from autograd_conformance.harness.testing.drawing import explaining, number
from autograd_conformance.harness.testing.profiles import PROFILES


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("autograd-conformance")
    group.addoption("--declared", required=True, metavar="FILE", help="plan of the Functions to check")
    group.addoption("--kept", action="store_true", help="say in the header which build it is: the report is kept")
    group.addoption("--done", metavar="FILE", help="the test ids, a line each, that have a result and are left out")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    plan = Plan.read(Path(config.option.declared))
    catalog: Catalog = Declared(tuple(plan.facts), plan, kept=config.option.kept)
    config.stash[CATALOG] = catalog


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None, None, None]:
    """Sort the tests: all of one Function together, and what says most first."""
    yield
    done = set(Path(config.option.done).read_text(encoding="utf-8").splitlines()) if config.option.done else set()
    functions = list(config.stash[CATALOG].names)

    def place(item: pytest.Item) -> tuple[int, int, str]:
        key = _key(item)
        return functions.index(key["function"]), TRIED.index(key["property"]), key.get("variant", "")

    items[:] = sorted((item for item in items if _key(item)["id"] not in done), key=place)


def _key(item: pytest.Item) -> dict[str, Any]:
    subject: OwnSubject = item.callspec.params["subject"]  # type: ignore[attr-defined]
    return subject.key


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Limit the time of the test, and that of each call of the Function: a slow one does not hang."""
    subject: OwnSubject = item.callspec.params["subject"]  # type: ignore[attr-defined]
    share = subject.share * item.obj.conformance_share  # type: ignore[attr-defined]
    subject.record.limit(item.config.option.time_limit, number(share, PROFILES["quick"].examples))
    box = item.config.stash[BOX]

    def on_call() -> None:
        box.goes_on()
        # An example that has begun gets as much time again.
        late = time.monotonic() > subject.record.until + subject.record.allowed
        if late and not explaining() and threading.current_thread() is threading.main_thread():
            raise OutOfTime

    subject.implementation.on_call = on_call  # type: ignore[attr-defined]
    return (yield)
