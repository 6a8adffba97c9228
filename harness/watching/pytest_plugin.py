"""The option ``--watch-functions`` of pytest: the custom Functions that a test suite calls are checked where it does.

Every pytest in an environment with this package loads this module: what it needs is imported when the option is given.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

_OPTION, _BASELINE = "--watch-functions", "--watch-baseline"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("autograd-conformance", "custom autograd Functions")
    group.addoption(_OPTION, action="store_true", help="Check the custom Functions that the tests call, as they do.")
    group.addoption(_BASELINE, metavar="FILE", help=f"With {_OPTION}: faults that are known; only others fail.")


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Iterator[Any]:
    """Watch before anything of the tests is imported."""
    # A worker of pytest-xdist is watched as every other process that is started.
    if early_config.known_args_namespace.watch_functions and "PYTEST_XDIST_WORKER" not in os.environ:
        early_config.pluginmanager.register(_Watching(early_config.known_args_namespace.watch_baseline))
    return (yield)


class _Watching:
    """Watches this process and those that it starts, and says in the end what was found."""

    def __init__(self, baseline: str | None) -> None:
        self._inside = import_module("autograd_conformance.harness.inside.watching")
        self._instrumented = import_module("autograd_conformance.harness.processes.instrumented")
        intentions = import_module("autograd_conformance.harness.check.declaration.intentions")
        known = import_module("autograd_conformance.harness.watching.known")
        try:
            options = {**self._inside.USUAL, "means": intentions.read(Path.cwd())}
            self._accepted = known.read(Path(baseline)) if baseline is not None else frozenset()
        except intentions.UsageProblem as problem:
            raise pytest.UsageError(f"{_OPTION}: {problem}") from None
        self._open = contextlib.ExitStack()
        instrumented = self._instrumented.instrumented("watching", **options)
        environment, self._folder = self._open.enter_context(instrumented)
        self._before = {name: os.environ.get(name) for name in environment if os.environ.get(name) != environment[name]}
        os.environ.update(environment)
        self._inside.start(str(self._folder), **options)
        self._rows: list[str] = []

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        for name, value in self._before.items():
            os.environ.pop(name)
            os.environ.update({name: value} if value is not None else {})
        self._inside.stop()
        collecting = import_module("autograd_conformance.harness.watching.collecting")
        summing_up = import_module("autograd_conformance.harness.watching.summing_up")
        summary = summing_up.Summary(collecting.collected(self._folder), Path(summing_up.SCRIPTS), self._accepted)
        self._rows = list(summary.rows())
        if summary.status == pytest.ExitCode.TESTS_FAILED and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        self._open.close()

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        terminalreporter.section("watched Functions")
        for row in self._rows:
            terminalreporter.write_line(row)
