"""How Hypothesis draws the examples of a test: the only module that reaches into Hypothesis."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from zlib import crc32

from hypothesis import HealthCheck, Phase, Verbosity, control, seed, settings
from hypothesis.internal.conjecture import providers

from autograd_conformance.harness.testing.profiles import Profile

# The settings of every test, independent of the loaded Hypothesis profile.
_ALWAYS: dict[str, Any] = {
    "deadline": None,
    "print_blob": False,
    "report_multiple_bugs": False,
    "suppress_health_check": (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.differing_executors),
    "verbosity": Verbosity.quiet,
}


def load(profile: Profile) -> None:
    """Make this profile the default of Hypothesis. Call it before test modules are imported."""
    settings.register_profile(
        "autograd-conformance",
        settings.get_profile("default"),
        max_examples=profile.examples,
        database=None,
        derandomize=False,  # seeds come from `prepare`
        phases=(Phase.explicit, Phase.generate, Phase.shrink),
        **_ALWAYS,
    )
    settings.load_profile("autograd-conformance")
    _forget_local_constants()


def forget_outer_test() -> None:
    """Let this process, which was forked within a test of Hypothesis, run tests of its own."""
    if hasattr(control, "_current_build_context"):
        control._current_build_context = type(control._current_build_context)(None)


_OF_CONSTANTS = ("_get_local_constants", "CONSTANTS_CACHE")


def _forget_local_constants() -> None:
    # Hypothesis mixes numbers found in local source files into its draws, so that a checkout and an installed wheel
    # would try different examples.
    if hasattr(providers, "_get_local_constants"):
        nothing: Any = providers.Constants()  # type: ignore[attr-defined]
        providers._get_local_constants = lambda: nothing


@contextmanager
def without_local_constants() -> Iterator[None]:
    """A context in which examples do not depend on local source files, whose numbers Hypothesis mixes into draws."""
    kept = {name: getattr(providers, name) for name in _OF_CONSTANTS if hasattr(providers, name)}
    _forget_local_constants()
    if "CONSTANTS_CACHE" in kept:
        # The cache of other draws contains local numbers.
        providers.CONSTANTS_CACHE = _constants_cache()
    try:
        yield
    finally:
        for name, value in kept.items():
            setattr(providers, name, value)


@cache
def _constants_cache() -> Any:
    return type(providers.CONSTANTS_CACHE)(1024)


def explaining() -> bool:
    """Whether to explain a failure: True only in the final run of the smallest example, not while shrinking."""
    context = getattr(control, "_current_build_context", None)
    return getattr(getattr(context, "value", None), "is_final", True)


def number(share: float, examples: int) -> int:
    """The number of examples of a test with this share of the profile's number."""
    return max(1, round(share * examples))


def prepare(
    test: Any, test_id: str, run_seed: int, *, examples: int | None = None, shrink: bool = True, least: int = 1,
    share: float = 1.0,
) -> None:  # fmt: skip
    """Make the examples of a test depend on its id and the run's seed only, not on worker or order.

    ``examples`` replaces the profile's number of examples. The test gets a ``share`` of them, and at ``least`` so many.
    Without ``shrink`` the first failing example is reported.
    """
    seed(crc32(f"{test_id}:{run_seed}".encode()))(test)
    # The database is not used. If this attribute is missing, Hypothesis hashes the test's source for a key, which takes
    # longer than many tests.
    test._hypothesis_internal_database_key = None
    usual = vars(test).setdefault("_conformance_settings", test._hypothesis_internal_use_settings)
    count = usual.max_examples if examples is None else number(test.conformance_share, examples)
    test._hypothesis_internal_use_settings = settings(
        usual,
        phases=(Phase.explicit, Phase.generate, *([Phase.shrink] if shrink else [])),
        max_examples=max(round(share * count), least),
        derandomize=False,
        database=None,
        **_ALWAYS,
    )
