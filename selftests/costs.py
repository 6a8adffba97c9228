"""What the selftests cost: CPU seconds of each test, of its process and of the children that it waited for."""

from __future__ import annotations

import json
import os
import resource
from collections import Counter
from pathlib import Path

import psutil
import pytest

COST = "cpu_seconds"

# Processes that this one started and that serve many tests, by number.
SERVERS: list[int] = []


def used() -> float:
    """CPU seconds of this process so far, of the children that it waited for, and of its servers with theirs."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    served = [sum(psutil.Process(number).cpu_times()[:4]) for number in SERVERS if psutil.pid_exists(number)]
    return sum(usage.ru_utime + usage.ru_stime for usage in both) + sum(served)


class Costs:
    """Measures each test where it runs, and adds up where reports arrive."""

    def __init__(self) -> None:
        self.since = 0.0
        self.tests: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):  # noqa: ARG002
        self.since = used()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item, call):  # noqa: ARG002
        report = yield
        if report.when == "teardown":
            report.user_properties.append((COST, used() - self.since))
        return report

    def pytest_runtest_logreport(self, report):
        cost = dict(report.user_properties).get(COST)
        if cost is not None and report.when == "teardown":
            self.tests[report.nodeid] = cost

    def pytest_terminal_summary(self, terminalreporter):
        path = os.environ.get("COSTS")
        if path:
            Path(path).write_text(json.dumps(self.tests))
        groups = Counter()
        for id, cost in self.tests.items():
            groups[id.split("::")[0]] += cost
        terminalreporter.section("CPU seconds")
        for name, cost in groups.most_common(15):
            terminalreporter.write_line(f"{cost:7.1f} {name}")
        terminalreporter.write_line(f"{groups.total():7.1f} all")
