"""What a group or a test costs is added up, and more than its budget fails the run."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from autograd_conformance.selftests import costs
from autograd_conformance.selftests.costs import Cost, Costs

TESTS = {
    "selftests/test_own_kinks.py::test_a": Cost(3, 1),
    "selftests/check/test_own_state.py::test_b[1]": Cost(2, 0),
    "selftests/reading/test_page.py::test_c": Cost(1, 5),
}


@pytest.fixture(autouse=True)
def budgets(monkeypatch):
    monkeypatch.setattr(costs, "BUDGETS", {"own": 10.0})
    monkeypatch.setattr(costs, "OF_A_FILE", 7.0)


def test_files_of_one_beginning_are_a_group():
    assert costs.together(TESTS) == {"own": 6, "page": 6}


@pytest.mark.parametrize(
    ("changed", "sentences"),
    [
        ({}, []),
        (
            {"selftests/check/test_own_state.py::test_b[1]": Cost(2, 5)},
            ["the group own needs 11 CPU seconds, and its budget is 10"],
        ),
        (
            {"selftests/reading/test_page.py::test_c": Cost(0, 8)},
            ["the group page needs 8 CPU seconds, and its budget is 7"],
        ),
    ],
)
def test_more_than_the_budget_is_said_and_fails_the_run(changed, sentences):
    plugin = Costs(SimpleNamespace(option=SimpleNamespace(costs=None)))
    plugin.tests = {**TESTS, **changed}
    session = SimpleNamespace(exitstatus=pytest.ExitCode.OK)
    plugin.pytest_sessionfinish(session)
    assert costs.too_dear(plugin.tests) == sentences
    assert session.exitstatus == (pytest.ExitCode.TESTS_FAILED if sentences else pytest.ExitCode.OK)


def test_a_test_has_a_budget_of_its_own(monkeypatch):
    monkeypatch.setattr(costs, "OF_A_TEST", 3.5)
    assert costs.too_dear(TESTS) == [
        "selftests/test_own_kinks.py::test_a needs 4 CPU seconds, and its budget is 3.5",
        "selftests/reading/test_page.py::test_c needs 6 CPU seconds, and its budget is 3.5",
    ]


def test_time_of_this_process_is_measured():
    before = costs.used()
    sum(range(10**6))
    assert costs.used().process > before.process
