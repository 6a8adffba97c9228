"""What the selftests cost in CPU seconds, of the process and of the children that it waited for, and their budgets.

CPU and not wall time: machines are shared. A whole run fails if a group of files or a test needs more than its budget.
A budget is about three times what was measured, so that what grows is noticed, and a slow machine is not.
"""

from __future__ import annotations

import json
import resource
import time
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest

# Groups of files, by how their names begin, with their budgets; each other file is a group of its own.
BUDGETS = {"own": 2500.0, "specimens": 2500.0, "clause_faults": 600.0}
OF_A_FILE = 250.0
OF_A_TEST = 120.0

_SHOWN = 10
_KEY = "cpu_seconds"

# Processes that this one started and that serve many tests, by number.
SERVERS: list[int] = []


class Cost(NamedTuple):
    """CPU seconds of the process, and of its children; and seconds by the clock, which show what only waits."""

    process: float = 0.0
    children: float = 0.0
    clock: float = 0.0

    @property
    def whole(self) -> float:
        return self.process + self.children


def used() -> Cost:
    """What was used so far; servers and their children count as children."""
    process, children = (
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )
    served = [sum(psutil.Process(number).cpu_times()[:4]) for number in SERVERS if psutil.pid_exists(number)]
    return Cost(process, children + sum(served), time.monotonic())


def group(id: str) -> str:
    """The group of a test: the beginning of its file's name that has a budget, or the name."""
    name = Path(id.partition("::")[0]).stem.removeprefix("test_")
    return next((each for each in BUDGETS if name.startswith(each)), name)


def together(tests: dict[str, Cost]) -> Counter[str]:
    """The CPU seconds of each group."""
    found: Counter[str] = Counter()
    for id, cost in tests.items():
        found[group(id)] += cost.whole  # type: ignore[assignment]
    return found


def too_dear(tests: dict[str, Cost]) -> list[str]:
    """What needs more than its budget, in words."""
    groups = {f"the group {name}": (cost, BUDGETS.get(name, OF_A_FILE)) for name, cost in together(tests).items()}
    each = {id: (cost.whole, OF_A_TEST) for id, cost in tests.items()}
    return [
        f"{what} needs {cost:.0f} CPU seconds, and its budget is {budget:g}"
        for what, (cost, budget) in {**groups, **each}.items()
        if cost > budget
    ]


class Costs:
    """Measures each test where it runs, and adds up where reports arrive."""

    def __init__(self, config: pytest.Config) -> None:
        self._config, self._since, self.tests = config, Cost(), dict[str, Cost]()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Generator[None, Any, Any]:
        self._since = used()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
        report = yield
        if call.when == "teardown":
            now = used()
            report.user_properties.append((_KEY, [b - a for a, b in zip(self._since, now, strict=True)]))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        found = dict(report.user_properties).get(_KEY)
        if report.when == "teardown" and found is not None:
            self.tests[report.nodeid] = Cost(*found)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(self._config, "workerinput"):
            return
        if self._config.option.costs is not None:
            Path(self._config.option.costs).write_text(json.dumps(self.tests), encoding="utf-8")
        if too_dear(self.tests) and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        groups = together(self.tests)
        terminalreporter.section("CPU seconds")
        for name, cost in groups.most_common(_SHOWN):
            terminalreporter.write_line(f"{cost:7.1f}  {name}")
        terminalreporter.write_line(f"{sum(groups.values()):7.1f}  all {len(self.tests)} tests")
        for sentence in too_dear(self.tests):
            terminalreporter.write_line(f"FAILED: {sentence}; make it cheaper, or change selftests/costs.py", red=True)
