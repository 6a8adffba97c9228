"""The option ``--record-functions FILE`` of pytest: declarations from the calls that a test suite makes.

Every pytest in an environment with this package loads this module: what it needs is imported when the option is given.
"""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

_OPTION = "--record-functions"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("autograd-conformance", "custom autograd Functions")
    group.addoption(
        _OPTION, metavar="FILE", help="Write declarations of the custom Functions that the tests call, for check."
    )


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Iterator[Any]:
    """Record before anything of the tests is imported."""
    given = early_config.known_args_namespace.record_functions
    # A worker of pytest-xdist records as every other process that is started.
    if given is not None and "PYTEST_XDIST_WORKER" not in os.environ:
        early_config.pluginmanager.register(_Recording(Path(given), early_config))
    return (yield)


class _Recording:
    """Records in this process and in those that it starts, and writes the file in the end."""

    def __init__(self, output: Path, config: pytest.Config) -> None:
        self._output = output
        self._written: tuple[str, ...] = ()
        self._recording = import_module("autograd_conformance.harness.drafting.recording")
        self._files = import_module("autograd_conformance.harness.drafting.recorded_file")
        self._instrumented = import_module("autograd_conformance.harness.processes.instrumented")
        self._inside = import_module("autograd_conformance.harness.inside.recording")
        try:
            self._files.verify(output)
        except self._instrumented.UsageProblem as problem:
            raise pytest.UsageError(f"{_OPTION}: {problem}") from None
        self._open = contextlib.ExitStack()
        environment, self._folder = self._open.enter_context(self._instrumented.instrumented(self._recording.MODULE))
        self._before = {name: os.environ.get(name) for name in environment if os.environ.get(name) != environment[name]}
        os.environ.update(environment)
        self._inside.start(str(self._folder))
        self._command = shlex.join(["pytest", *map(str, config.invocation_params.args)])

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        for name, value in self._before.items():
            os.environ.pop(name)
            os.environ.update({name: value} if value is not None else {})
        self._inside.stop()
        found = self._recording.Recorded(self._recording.observed(self._folder), "")
        try:
            self._written = self._files.write(found, self._output, self._command, seconds=60.0).sentences
        except self._instrumented.UsageProblem as problem:
            self._written = (str(problem),)
        self._open.close()

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        terminalreporter.section("recorded Functions")
        for sentence in self._written:
            terminalreporter.write_line(sentence)
