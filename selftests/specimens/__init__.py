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

    ``tests`` are those that run, such as VJP-FD and VJP-FD/kinks; without any, all of them. ``heads`` are the tests
    whose findings are reported, in their order; each of the ``says`` stands in what is reported, and each test of
    ``met_by`` finds something. Without heads the Function is right, and the tests that apply to it pass; if not
    ``decided``, they need not compare anything.
    """

    name: str
    declaration: Declaration
    tests: tuple[str, ...]
    heads: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    met_by: tuple[str, ...] = ()
    profile: str = "gate"
    seed: int = 0
    shrink: bool = False
    decided: bool = True

    def __str__(self) -> str:
        return self.name


def whole(declaration: Declaration) -> Specimen:
    """A Function of which no test at all has anything to say."""
    return Specimen(f"{declaration.name}, all tests", declaration, (), decided=False)


def right(name: str, tests: str, function: Any, *arguments: str, decided: bool = True, **options: Any) -> Specimen:
    """A Function of which these tests, with spaces between them, have nothing to say."""
    return Specimen(name, Declaration(function, *arguments, **options), tuple(tests.split()), decided=decided)


def wrong(
    name: str, heads: str, function: Any, *arguments: str, tests: str = "", says: Sequence[str] = (), **options: Any
) -> Specimen:
    """A Function with faults: the first findings of these tests, by default of those that head them, are ``heads``."""
    how = {word: options.pop(word) for word in ("met_by", "profile", "seed", "shrink") if word in options}
    declaration = Declaration(function, *arguments, **options)
    said = (says,) if isinstance(says, str) else tuple(says)
    return Specimen(name, declaration, tuple((tests or heads).split()), tuple(heads.split()), said, **how)
