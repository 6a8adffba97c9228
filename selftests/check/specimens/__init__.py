"""Functions as users declare them, and what `check` says of each. test_specimens.py checks them all.

Each module holds those of one kind, as a tuple ``SPECIMENS``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from autograd_conformance.harness.check import Declaration
from autograd_conformance.selftests.check.checking import each_test_of


@dataclass(frozen=True)
class Specimen:
    """A declared Function, the tests that look at it, and what they find.

    Args:
        name: What is special about it.
        declaration: As a user would write it.
        tests: Those that run, such as VJP-FD and VJP-FD/kinks; without any, all.
        heads: The tests whose findings are reported, in their order; without any, the Function is right.
        word: The verdict of each finding, such as "wrong" or "edge"; or those of the heads, with commas.
        says: Each stands in what is reported.
        unsaid: None stands in what is reported of any finding.
        exactly: What each finding has under these names, which are those of a failure and of a verdict, such as
            "right_with" and "guess". None stands for nothing.
        met_by: Tests that find something as well, which is not reported.
        alone: Whether no other test finds anything, and no finding follows from what another property says.
        profile: How the calls to a wrong Function are drawn, with ``seed`` and ``shrink``. `checking.DRAWS` has
            how those to a right one are.
        seed: See ``profile``.
        shrink: See ``profile``.
        decided: Whether each test that applies to a right Function has something to compare.
        taken: Whether each property applies to a right Function, which refuses none of the calls.
        passing: How many tests pass at least, where all of them run.
    """

    name: str
    declaration: Declaration
    tests: tuple[str, ...]
    heads: tuple[str, ...] = ()
    word: str = ""
    says: tuple[str, ...] = ()
    unsaid: tuple[str, ...] = ()
    exactly: Mapping[str, Any] = field(default_factory=dict)
    met_by: tuple[str, ...] = ()
    profile: str = "gate"
    seed: int = 0
    shrink: bool = False
    alone: bool = False
    decided: bool = True
    taken: bool = False
    passing: int = 1


def whole(declaration: Declaration, profile: str = "gate", passing: int = 1) -> Specimen:
    """A right Function, which no test at all accuses; ``profile`` is that of the night."""
    return Specimen(f"{declaration.name}, all tests", declaration, (), profile=profile, decided=False, passing=passing)


def right(name: str, tests: str, function: Any, *arguments: str, **options: Any) -> Specimen:
    """A Function of which these tests, with spaces between them, have nothing to say; VJP-FD* are all of VJP-FD."""
    how = _taken_from(options)
    return Specimen(name, _declared(function, arguments, options), _named(tests), **how)


def wrong(name: str, heads: str, function: Any, *arguments: str, tests: str = "", **options: Any) -> Specimen:
    """A Function with faults: the first findings of these tests, by default of those that head them, are ``heads``."""
    how = _taken_from(options)
    for words in {"says", "unsaid"} & set(how):
        how[words] = (how[words],) if isinstance(how[words], str) else tuple(how[words])
    return Specimen(name, _declared(function, arguments, options), _named(tests or heads), _named(heads), **how)


def _taken_from(options: dict[str, Any]) -> dict[str, Any]:
    """The options of a specimen, of which those of a declaration are left."""
    return {word: options.pop(word) for word in Specimen.__dataclass_fields__ if word in options}


def _declared(function: Any, arguments: tuple[str, ...], options: dict[str, Any]) -> Declaration:
    """The declaration of a Function, or one that is given as it is."""
    return function if isinstance(function, Declaration) else Declaration(function, *arguments, **options)


def _named(tests: str) -> tuple[str, ...]:
    """The tests of these names; a name with a star after it stands for all tests of the property."""
    each = ([*each_test_of(name[:-1])] if name.endswith("*") else [name] for name in tests.split())
    return tuple(chain.from_iterable(each))


def seeded(specimens: Iterable[Specimen], seeds: int) -> Iterator[Specimen]:
    """Each of them with each of so many seeds."""
    return (replace(each, name=f"{each.name}, seed {n}", seed=n) for each in specimens for n in range(seeds))
