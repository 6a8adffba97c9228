"""Functions as users declare them, and what `check` says of each. test_specimens.py checks them all.

Each module holds those of one kind, as a tuple ``SPECIMENS``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from autograd_conformance.harness.check import Declaration


@dataclass(frozen=True)
class Specimen:
    """A declared Function, the tests that look at it, and what they find.

    Args:
        name: What is special about it.
        declaration: As a user would write it.
        tests: Those that run, such as VJP-FD and VJP-FD/kinks; without any, all.
        heads: The tests whose findings are reported, in their order; without any, the Function is right.
        word: The verdict of each finding, such as "wrong" or "raises when empty".
        says: Each stands in what is reported.
        met_by: Tests that find something as well, which is not reported.
        alone: Whether no finding follows from what another property says.
        profile: How the calls to a wrong Function are drawn, with ``seed`` and ``shrink``. `checking.DRAWS` has
            how those to a right one are.
        seed: See ``profile``.
        shrink: See ``profile``.
        decided: Whether each test that applies to a right Function has something to compare.
        passing: How many tests pass at least, where all of them run.
    """

    name: str
    declaration: Declaration
    tests: tuple[str, ...]
    heads: tuple[str, ...] = ()
    word: str = ""
    says: tuple[str, ...] = ()
    met_by: tuple[str, ...] = ()
    profile: str = "gate"
    seed: int = 0
    shrink: bool = False
    alone: bool = False
    decided: bool = True
    passing: int = 1


def whole(declaration: Declaration, profile: str = "gate", passing: int = 1) -> Specimen:
    """A right Function, which no test at all accuses; ``profile`` is that of the night."""
    return Specimen(f"{declaration.name}, all tests", declaration, (), profile=profile, decided=False, passing=passing)


def right(name: str, tests: str, function: Any, *arguments: str, decided: bool = True, **options: Any) -> Specimen:
    """A Function of which these tests, with spaces between them, have nothing to say."""
    return Specimen(name, Declaration(function, *arguments, **options), tuple(tests.split()), decided=decided)


def wrong(
    name: str, heads: str, function: Any, *arguments: str, tests: str = "", says: Sequence[str] = (), **options: Any
) -> Specimen:
    """A Function with faults: the first findings of these tests, by default of those that head them, are ``heads``."""
    how = {
        word: options.pop(word) for word in ("word", "met_by", "alone", "profile", "seed", "shrink") if word in options
    }
    declaration = Declaration(function, *arguments, **options)
    said = (says,) if isinstance(says, str) else tuple(says)
    return Specimen(name, declaration, tuple((tests or heads).split()), tuple(heads.split()), says=said, **how)
