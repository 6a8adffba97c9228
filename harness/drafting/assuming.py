"""Checking a package of which nobody declared anything: what its code suggests is written to a file, and said."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from autograd_conformance.harness.drafting import scanning, writing
from autograd_conformance.harness.outcomes import UsageProblem

_NEXT = (
    "complete its block in a copy of {path}, or let a program that calls it write one: "
    "autograd-conformance record -- COMMAND"
)


@dataclass(frozen=True)
class Assumed:
    """The file of declarations, sentences about these, and by name why Functions are left out.

    ``names`` has the names of Functions as pyproject.toml has them, by those of their declarations.
    """

    path: Path
    sentences: tuple[str, ...]
    left_out: dict[str, str]
    names: dict[str, str]


def assumed(place: str, implementation: str, folder: Path, *, seconds: float, called: Callable[[str], None]) -> Assumed:
    """Write declarations of a module's Functions into this folder. Raises UsageProblem if it has none to check."""
    scanned = scanning.scanned(place, implementation, seconds=seconds, called=called)
    found = replace(scanned, found=writing.meant(scanned.found, Path.cwd()))
    if not found.found:
        unread = "".join(f"; {name} cannot be imported: {why}" for name, why in list(found.unread.items())[:3])
        unread += "".join(f"; {sentence}" for sentence in _missing(found))
        raise UsageProblem(
            f"{place} has no declarations and no custom Functions{unread}; add NAME = Declaration(FUNCTION, "
            f"'float[n]', ...) to it, or name a callable: {place}:NAME --arg 'float[n]'"
        )
    name = re.sub(r"\W", "_", Path(place).stem if place.endswith(".py") else place)
    path = (folder / f"assumed_{name}.py").resolve()
    then = _NEXT.format(path=folder / path.name)
    left_out = {each.function.name: f"{why}; {then}" for each in found.found if (why := writing.why(each, path))}
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(writing.text(found.found, path, place, writing.ASSUMED), encoding="utf-8")
    left_out.update({name: f"it cannot be imported: {why}" for name, why in found.unread.items()})
    return Assumed(path, tuple(_sentences(found, path, folder)), left_out, writing.full_names(found.found))


def _sentences(found: scanning.Scanned, path: Path, folder: Path) -> Iterator[str]:
    whole = [each for each in found.found if not writing.why(each, path)]
    if whole:
        yield f"Nothing is declared. Assumed, and written to {folder / path.name}:"
        yield from (f"  {line}" for line in writing.lines_of(whole, path))
        yield "Where that is wrong, correct a copy of the file, and check the copy."
        yield from _missing(found)


def _missing(found: scanning.Scanned) -> Iterator[str]:
    if found.missing:
        packages = ", ".join(f"{name} ({len(modules)})" for name, modules in sorted(found.missing.items()))
        yield f"Not looked at are modules that need what is not installed: {packages}"
