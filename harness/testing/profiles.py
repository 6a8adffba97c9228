"""Profiles: the number of examples of a run, and whether they are the same every time."""

from __future__ import annotations

import secrets
from dataclasses import dataclass


@dataclass(frozen=True)
class Profile:
    """A profile of a run.

    ``examples`` is the number of examples of a test of ordinary cost. ``derandomized`` profiles run the same examples
    every time; the others draw new ones, which ``--seed`` repeats. ``thorough`` profiles also run slow checks.
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
    """A description of the profiles for a help text."""
    return "; ".join(f"{profile.name}: {profile.about}" for profile in PROFILES.values())


def choose_seed(profile: Profile, given: int | None) -> int:
    """The seed of a run: the given one, or 0 for derandomized profiles, or a random one."""
    if given is not None:
        return given
    return 0 if profile.derandomized else secrets.randbelow(2**32)
