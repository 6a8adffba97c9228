"""Which examples Hypothesis drew in the selftests: two runs of one commit print the same digest.

An example counts once, however many processes draw it: what several tests share is made in each worker that runs one.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest
from hypothesis.internal.conjecture.data import ConjectureData

_KEY = "examples"


def digest(texts: Iterable[str]) -> str:
    """A short digest of texts."""
    return blake2b("\n".join(texts).encode(), digest_size=8).hexdigest()


class Examples:
    """Notes the choices of each example in the process that draws it, and puts them together where reports arrive."""

    def __init__(self, config: pytest.Config) -> None:
        self._config, self._of_test, self._tests = config, set[str](), dict[str, list[str]]()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Generator[None, Any, Any]:
        freeze, note = ConjectureData.freeze, self._note

        def noted(data: ConjectureData) -> None:
            if not data.frozen:
                note(data)
            freeze(data)

        ConjectureData.freeze = noted  # type: ignore[method-assign]
        try:
            return (yield)
        finally:
            ConjectureData.freeze = freeze  # type: ignore[method-assign]

    def _note(self, data: ConjectureData) -> None:
        self._of_test.add(digest(repr(node.value) for node in data.nodes))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
        report = yield
        if call.when == "teardown":
            report.user_properties.append((_KEY, "".join(sorted(self._of_test))))
            self._of_test.clear()
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        found = dict(report.user_properties).get(_KEY)
        if report.when == "teardown" and found is not None:
            self._tests[report.nodeid] = [found[n : n + 16] for n in range(0, len(found), 16)]

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        examples = sorted({each for of_test in self._tests.values() for each in of_test})
        found = digest([*sorted(self._tests), *examples])
        terminalreporter.write_line(f"digest of {len(self._tests)} tests and {len(examples)} examples: {found}")
        if self._config.option.examples is not None:
            Path(self._config.option.examples).write_text(json.dumps(self._tests), encoding="utf-8")
