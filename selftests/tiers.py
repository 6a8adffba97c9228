"""Which selftests run: the first tier whole in every CI, everything with ``--nightly``.

The first tier has every property, clause, planted fault, kind of attack, report and command at least once. What only
repeats one of these at other values is listed here, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling


@dataclass(frozen=True)
class Later:
    """Tests that run at night only: those of a function whose parameters match ``cases``, by default all."""

    test: str
    reason: str
    cases: str = ".*"

    def takes(self, id: str) -> bool:
        """Whether the test with this id is one of them."""
        test, _, parameters = id.partition("[")
        return (
            test.rpartition("/")[2] == self.test and re.fullmatch(self.cases, parameters.removesuffix("]")) is not None
        )


_MORE = "more calls of what a few calls accept"
_SMALLEST = "the same of the smallest calls, which take long to find; the first tier looks at calls as they were drawn"
# The ids of `checking.DRAWS`, but for the few calls of the first tier; and those of all seeds but the first.
_THOROUGH = r"(.*-)?seed\d"
_OTHER_SEEDS = r"(.*-)?seed[1-9]"
_FEW_BUILTINS = ("pow", "fft", "topk", "index_put", "relu_inplace", "cholesky", "linear")
# Of `selftests.specimens.fields`, one Function each of activations, complexes, layout, losses, scans and sorting.
_FEW_RIGHT = ("HardSwish", "Squared", "View", "MeanSquared", "Discounted", "Winners")
_OF_SMALL_KINDS = "(state|dtypes|users)-.*"

# What checks properties, clauses and planted faults in the process of the selftest.
_IN_PROCESS = (
    Later(
        "test_clause_faults.py::test_the_fault_breaks_no_other_clause_of_the_group", "it is about neighbours of faults"
    ),
    Later(
        "test_own_half.py::test_second_derivatives_in_half_precision_alone_are_compared_with_a_reference",
        _MORE,
        _OTHER_SEEDS,
    ),
    Later(
        "test_own_excuses.py::test_no_other_function_of_torch_is_said_to_be_coarse",
        "the first tier has one of each kind",
    ),
    Later(
        "test_own_excuses.py::test_where_no_test_applies_the_reason_is_given",
        "test_own.py has it among the mistakes on the command line",
        "declared",
    ),
    Later(
        "test_own_freedom.py::test_second_derivatives_at_a_degenerate_spectrum_are_undecided",
        "the first tier has that nothing is accused, and that a gradient is undecided",
    ),
    Later("test_own_values.py::test_what_built_in_operations_lose_is_no_fault_of_them", _MORE, _THOROUGH),
    Later("test_own_planted.py::test_every_test_that_finds_the_fault_shows_it_in_the_smallest_call", _SMALLEST),
    Later(
        "test_own_planted.py::test_the_fault_is_found_and_shown",
        "the first tier has the same fault at another length",
        "(VJP-REF-TailPast(16|256)|FWD-VALUE-TailPast256)Lost",
    ),
    Later("test_own_planted.py::test_of_the_twin_nothing_is_wrong", "the first tier has the properties that decide"),
    Later("test_own_values.py::test_a_composition_that_overflows_by_itself_says_nothing", _MORE, _OTHER_SEEDS),
    Later("test_own_half.py::test_what_is_wrong_at_a_number_that_forward_takes_is_found", _MORE, _OTHER_SEEDS),
    Later(
        "test_faults_as_operators.py::test_every_other_fault_is_found",
        "the first tier has one fault of each test, and all of them as Functions",
    ),
    Later("test_operator_faults.py::test_no_test_accuses_a_twin", "the first tier has the test that finds the fault"),
    Later(
        "test_specimens.py::test_no_test_accuses_what_is_right",
        "the first tier has one of each kind, and one of each of a few fields",
        rf"(?!(builtins-({'|'.join(_FEW_BUILTINS)})|fields-({'|'.join(_FEW_RIGHT)})|{_OF_SMALL_KINDS}), all tests$).*",
    ),
    Later(
        "test_specimens.py::test_what_is_right_is_not_accused",
        "the first tier has each freedom once: sign, phase, order, rotation, two of them, and a part of a null space",
        "freedom-free_(EighOfSymmetric|linalg_eigh|svd|linalg_qr|factor)-few",
    ),
    Later(
        "test_specimens.py::test_what_is_wrong_is_found",
        "the first tier has two faults of the gradient of eigenvectors",
        "freedom-free_(NoGaps|Absolute|Transposed)",
    ),
    Later("test_specimens.py::test_what_is_right_is_not_accused", _MORE, _THOROUGH),
    Later(
        "test_specimens.py::test_what_is_right_is_not_accused",
        "kinks and ties of kinds that the first tier has",
        r"kinks-(relu 1|max, one index|clamp|leaky relu|softshrink|cummax|median)-few",
    ),
    Later(
        "test_specimens.py::test_what_is_right_is_not_accused",
        "the first tier has a kink, a tie, a jump, a norm, a root and a sparse tensor",
        r"kinks-(?!(relu 0|maximum, halves|hardshrink, which jumps|norm|square root of abs|sparse product),).*, in "
        "single precision-few",
    ),
    Later(
        "test_specimens.py::test_what_is_wrong_is_found",
        "the first tier has a kink, a tie, a norm and an entry at a special value",
        "kinks-(a fifth|one at|neither|a product|equal|five|both|.*sparse).*, in single precision",
    ),
    Later("test_specimens.py::test_what_is_wrong_is_found", _SMALLEST, ".*, smallest"),
    Later(
        "test_specimens.py::test_what_is_wrong_is_found",
        _MORE,
        "(right_with-the smallest shape|state-memory that was never written), seed [1-9]",
    ),
    Later("test_specimens.py::test_what_is_wrong_is_found", "other formulas", "averages-.* of (tanh|softmax)"),
    Later(
        "test_reference_derivatives.py::test_each_gradient_entry_is_the_slope_along_it",
        "a second look at what other slopes show",
    ),
    Later(
        "test_reference_form.py::test_rounding_bounds_of_references_can_tell_a_gradient_from_zero",
        "bfloat16 is the coarsest, and has the widest bounds",
        r".*-(float32|float16)",
    ),
    Later(
        "test_rounding_of_formulas.py::test_references_computed_in_low_precision_are_within_their_bounds",
        "another order of sums",
        r".*-in pairs",
    ),
)

# Published Functions; the first tier has a right one and one of each of the other verdicts.
_GALLERY = (
    Later(
        "test_gallery.py::test_what_check_reports",
        "their verdicts are also those of others, and of planted faults",
        "pose|entmax|budget|adjoint|simplex",
    ),
    Later("test_survey.py::test_the_script_shows_the_finding", "the packages are those of another environment"),
    Later("test_survey.py::test_check_finds_the_same_again", "the packages are those of another environment"),
)

# What starts commands and processes.
_IN_CHILDREN = (
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
        "test_ci.py::test_the_parts_of_a_cluster_are_a_whole_run",
        "the first tier has each scheduler once, and a run that fails and one that holds",
        "(False-pods|True-tasks)",
    ),
    Later(
        "test_ci.py::test_what_an_older_job_left_is_not_merged",
        "the same of another scheduler, whose gate the parts of a cluster have",
        "tasks-.*",
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

NIGHTLY: tuple[Later, ...] = (*_IN_PROCESS, *_IN_CHILDREN, *_GALLERY)

# At night, what a few calls as they are drawn show in the first tier is shown with as many as a gate has, and shrunk.
NIGHT = False

# The ids of all tests that were collected, before some were left out.
COLLECTED = pytest.StashKey[tuple[str, ...]]()


def is_later(id: str, listed: Iterable[Later] = NIGHTLY) -> bool:
    """Whether the first tier leaves this test out."""
    return any(later.takes(id) for later in listed)


def add_option(parser: pytest.Parser) -> None:
    """Declare ``--nightly``."""
    parser.addoption("--nightly", action="store_true", help="run all selftests, not the first tier alone")


def configure(config: pytest.Config) -> None:
    """Say which tier runs."""
    global NIGHT
    NIGHT = config.getoption("nightly", False)


_SHARED = re.compile(r'^@pytest\.fixture\(.*scope="(module|session)"', re.MULTILINE)


@cache
def shared() -> frozenset[str]:
    """The files whose tests share a fixture."""
    paths = Path(__file__).parent.glob("*/test_*.py")
    return frozenset(path.name for path in paths if _SHARED.search(path.read_text(encoding="utf-8")))


class Together(LoadScopeScheduling):
    """Gives the tests of a file that share a fixture to one worker, and all others as they come.

    Groups of pytest-xdist 3.8 have no effect with pytest 9.2, which has no names of tests that can be changed.
    """

    def _split_scope(self, nodeid: str) -> str:
        return piece(nodeid)


def piece(id: str) -> str:
    """What is given to one worker: the file of a test that shares a fixture, another test alone."""
    file = id.partition("::")[0]
    return file if file.rpartition("/")[2] in shared() else id


def make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    """How the selftests are shared among workers."""
    return Together(config, log) if config.getoption("dist", "no") == "load" else None


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what runs at night only, unless tests are asked for by ``::`` or ``-k``."""
    config.stash[COLLECTED] = tuple(item.nodeid for item in items)
    named = config.option.keyword or any("::" in word for word in config.args)
    if named or config.getoption("nightly", False):
        return
    config.hook.pytest_deselected(items=[item for item in items if is_later(item.nodeid)])
    items[:] = [item for item in items if not is_later(item.nodeid)]
