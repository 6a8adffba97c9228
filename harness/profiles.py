"""Profiles: how many examples a run tries, and whether it is the same every time."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any
from zlib import crc32

from hypothesis import HealthCheck, Phase, Verbosity, control, seed, settings
from hypothesis.database import ExampleDatabase
from hypothesis.internal.conjecture import providers


@dataclass(frozen=True)
class Profile:
    """A way to run the suite.

    ``examples`` is the number of examples of a property of ordinary cost; ``derandomized`` profiles run the same
    examples on every machine, the others a new set every time, which ``--seed`` repeats. ``thorough`` profiles also
    run the checks that cost seconds each.
    """

    name: str
    examples: int
    derandomized: bool
    thorough: bool
    about: str


PROFILES = {
    profile.name: profile
    for profile in (
        Profile("quick", 5, False, False, "a few random examples each, for the inner loop"),
        Profile("gate", 25, True, True, "the same examples on every machine, for a regression gate"),
        Profile("nightly", 200, False, True, "many random examples; prints its seed"),
        Profile("replay", 100, True, True, "only the counterexamples of an earlier report, see --replay"),
    )
}


def described() -> str:
    """The profiles, for a help text."""
    return "; ".join(f"{profile.name}: {profile.about}" for profile in PROFILES.values())


# What holds for every test, whatever profile of Hypothesis' own is loaded.
_ALWAYS: dict[str, Any] = {
    "deadline": None,
    "print_blob": False,
    "report_multiple_bugs": False,
    "suppress_health_check": (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.differing_executors),
    "verbosity": Verbosity.quiet,
}


def load(profile: Profile) -> None:
    """Make the profile Hypothesis' default. Call before test modules are imported."""
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


_OF_CONSTANTS = ("_get_local_constants", "CONSTANTS_CACHE")


def _forget_local_constants() -> None:
    # Hypothesis mixes numbers found in local source files into its draws, so that a checkout and an installed wheel
    # would try different examples.
    if hasattr(providers, "_get_local_constants"):
        nothing: Any = providers.Constants()  # type: ignore[attr-defined]
        providers._get_local_constants = lambda: nothing


@contextmanager
def without_local_constants() -> Iterator[None]:
    """Within it examples do not depend on the source files around, whose numbers Hypothesis mixes into its draws."""
    kept = {name: getattr(providers, name) for name in _OF_CONSTANTS if hasattr(providers, name)}
    _forget_local_constants()
    if "CONSTANTS_CACHE" in kept:
        # What was found for draws of others has their numbers in it.
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
    """Whether a failure is worth explaining: not in the runs that look for a smaller example, one of which is told
    where the failure does not repeat."""
    context = getattr(control, "_current_build_context", None)
    return getattr(getattr(context, "value", None), "is_final", True)


def choose_seed(profile: Profile, given: int | None) -> int:
    """The seed of a run: the one given, else 0 for derandomized profiles and a random one for the others."""
    if given is not None:
        return given
    return 0 if profile.derandomized else secrets.randbelow(2**32)


def number(share: float, examples: int) -> int:
    """How many examples a test gets, which asks for that share of a profile's number."""
    return max(1, round(share * examples))


def prepare(
    test: Any, test_id: str, run_seed: int, *, examples: int | None = None, shrink: bool = True, least: int = 1,
    share: float = 1.0, database: ExampleDatabase | None = None,
) -> None:  # fmt: skip
    """Tie the examples of a test to its id and the run's seed alone, whatever worker runs it and in which order.

    It gets the ``share`` of its examples, of which ``examples`` is the profile's number if not the usual one; what is
    known to fail is not shrunk, and gets at ``least`` so many in which to be seen to fail. What a ``database`` holds of
    it comes first.
    """
    seed(crc32(f"{test_id}:{run_seed}".encode()))(test)
    usual = vars(test).setdefault("_conformance_settings", test._hypothesis_internal_use_settings)
    count = usual.max_examples if examples is None else number(test.conformance_share, examples)
    test._hypothesis_internal_database_key = test_id.encode()
    test._hypothesis_internal_use_settings = settings(
        usual,
        phases=(
            Phase.explicit,
            *([Phase.reuse] if database is not None else []),
            Phase.generate,
            *([Phase.shrink] if shrink else []),
        ),
        max_examples=max(round(share * count), least),
        derandomize=False,
        database=database,
        **_ALWAYS,
    )
