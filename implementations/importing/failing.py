"""Why a package cannot be imported."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import metadata

from packaging.requirements import InvalidRequirement, Requirement


def reasons(problem: BaseException) -> Iterator[str]:
    """An exception and what it was raised for: a package may say of a library only that it is not there."""
    seen: BaseException | None = problem
    while seen is not None:
        yield " ".join(f"{type(seen).__name__}: {seen}".split())
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)


def unmet(package: str) -> Iterator[str]:
    """The releases that the distributions of a package require, and that are not installed."""
    top = re.split("[.:]", package)[0]
    for name in sorted(set(metadata.packages_distributions().get(top, ()) if top else ())):
        for requirement in map(_read, metadata.requires(name) or ()):
            there = _installed(requirement) if requirement is not None else ""
            if requirement is not None and there and not requirement.specifier.contains(there, prereleases=True):
                asked = f"{requirement.name}{requirement.specifier}"
                yield f"{name} {metadata.version(name)} requires {asked}, but {there} is installed"


def _read(text: str) -> Requirement | None:
    try:
        found = Requirement(text)
    except InvalidRequirement:
        return None
    return None if found.marker is not None and not found.marker.evaluate({"extra": ""}) else found


def _installed(requirement: Requirement) -> str:
    try:
        return metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        return ""
