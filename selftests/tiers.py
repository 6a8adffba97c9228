"""Which selftests run: the first tier whole in every CI, everything with ``--nightly``.

The first tier has every property, clause, planted fault, kind of attack, report and command at least once. What only
repeats one of these at other values is listed here, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import pytest


@dataclass(frozen=True)
class Later:
    """Tests that run at night only: those of a function whose parameters match ``cases``, by default all."""

    test: str
    reason: str
    cases: str = ".*"

    def takes(self, id: str) -> bool:
        """Whether the test with this id is one of them."""
        test, _, parameters = id.removeprefix("selftests/").partition("[")
        return test == self.test and re.fullmatch(self.cases, parameters.removesuffix("]")) is not None


NIGHTLY: tuple[Later, ...] = (
    Later(
        "test_attacks_on_outcomes.py::test_what_a_function_raises_is_an_exception_like_any_other",
        "each kind of exception is among the others, and each exception is tried in an adapter",
        "others",
    ),
    Later(
        "test_attacks_on_outcomes.py::test_nothing_from_outside_decides",
        "a worker hears of them in the same way as of those that stay, and the last is refused before there is one",
        "(PYTEST_PLUGINS|pyproject.toml|tox.ini|-.*|a folder's conftest)-1",
    ),
    Later(
        "test_cost.py::test_the_same_is_not_worse",
        "it measures by the clock, while others use the machine; test_the_same_costs_as_many_calls counts instead",
    ),
    Later(
        "test_cost.py::test_what_is_slower_is_found_and_named",
        "it measures by the clock, while others use the machine; test_what_takes_more_calls_is_found_and_named counts",
    ),
    Later(
        "test_killed.py::test_no_disturbance_leaves_a_report_that_passes_for_whole",
        "other moments of the same disturbances",
        "(?!(command-0.62|controller-0.74|worker-0.54|disk-0.47|disk-0.999)$).*",
    ),
    Later(
        "test_joining.py::test_the_toy_joins_and_keeps_all_but_what_it_lists",
        "the complete suite, of which a part with properties and one with clauses stay",
        "",
    ),
    Later("test_killed.py::test_the_same_commit_gives_the_same_verdict", "the same again", "[1-9]"),
    Later("test_shards.py::test_workers_change_nothing", "other numbers of workers", "[14]"),
    Later("test_shards.py::test_shards_change_nothing", "another number of shards", "(1-more0|7-more2)"),
    Later(
        "test_unclaimed.py::test_faults_of_what_is_not_claimed_are_silent",
        "more faults of each capability",
        ".*-3",
    ),
    Later(
        "test_unclaimed.py::test_what_is_not_claimed_is_said_and_fails_no_run",
        "with one worker the order is proven too; how several share the tests is simulated",
        "2",
    ),
    Later(
        "test_infrastructure.py::test_too_few_files_are_no_failure",
        "other stages of the start at which files run out",
        "((8|12)-.*|(6|14)-1)",
    ),
)

# The ids of all tests that were collected, before some were left out.
COLLECTED = pytest.StashKey[tuple[str, ...]]()


def is_later(id: str, listed: Iterable[Later] = NIGHTLY) -> bool:
    """Whether the first tier leaves this test out."""
    return any(later.takes(id) for later in listed)


def add_option(parser: pytest.Parser) -> None:
    """Declare ``--nightly``."""
    parser.addoption("--nightly", action="store_true", help="run all selftests, not the first tier alone")


def configure(config: pytest.Config) -> None:
    """Keep the tests of one ``xdist_group`` in one worker: they share a fixture that takes long."""
    if config.getoption("dist", "no") == "load":
        config.option.dist = "loadgroup"


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what runs at night only, unless tests are asked for by ``::`` or ``-k``."""
    config.stash[COLLECTED] = tuple(item.nodeid for item in items)
    named = config.option.keyword or any("::" in word for word in config.args)
    if named or config.getoption("nightly", False):
        return
    later = [item for item in items if is_later(item.nodeid)]
    config.hook.pytest_deselected(items=later)
    items[:] = [item for item in items if item not in later]
