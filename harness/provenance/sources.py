"""Digests of the sources that a verdict rests on: those of the suite, of tests from elsewhere, and of the adapter."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from autograd_conformance.harness.catalogue import PACKAGE, SUITES
from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.implementations.protocol import Implementation

# The rooms of the suite that decide about an outcome. What an adapter lists as known deviations is apart from it.
_ROOMS = ("suites", "strategies", "reference", "harness", "implementations")
_DEVIATIONS = PACKAGE / "implementations" / "deviations"

# Hexadecimal digits of a digest: enough to tell sources apart that nobody made alike on purpose.
_DIGITS = 16


@cache
def of_suite() -> Mapping[str, str]:
    """The digest of each room of the suite, and of the lists of deviations."""
    files = {room: sorted((PACKAGE / room).rglob("*.py")) for room in _ROOMS}
    listed = [file for file in files["implementations"] if file.is_relative_to(_DEVIATIONS)]
    files["implementations"] = [file for file in files["implementations"] if not file.is_relative_to(_DEVIATIONS)]
    return {room: digest(PACKAGE, found) for room, found in {**files, "deviations": listed}.items()}


def of_tests(places: Iterable[Path]) -> dict[str, str]:
    """The digest of tests that are not the suite's own; empty if there are none. Raises UsageProblem."""
    outside = [place for place in places if not place.is_relative_to(SUITES)]
    absent = next((place for place in outside if not place.exists()), None)
    if absent is not None:
        raise UsageProblem(f"there are no tests in {absent}, which is not a file or folder; name one with --suite PATH")
    found = [(place if place.is_dir() else place.parent, files_of(place)) for place in outside]
    return {"tests": _together(digest(folder, files) for folder, files in found)} if found else {}


def of_adapter(implementation: Implementation) -> dict[str, str]:
    """The digest of the files of an adapter that does not come with the suite; empty for one that does."""
    files = [file.resolve() for file in implementation.files()]
    outside = [file for file in dict.fromkeys(files) if not file.is_relative_to(PACKAGE)]
    return {"adapter": _together(digest(file.parent, [file]) for file in outside)} if outside else {}


def files_of(place: Path) -> list[Path]:
    """The Python files of tests: a file, or those in a folder."""
    return sorted(place.rglob("*.py")) if place.is_dir() else [place]


def digest(folder: Path, files: Iterable[Path]) -> str:
    """The digest of files by their place in a folder, whatever the ends of their lines."""
    found = hashlib.sha256()
    for file in files:
        text = file.read_bytes().replace(b"\r\n", b"\n")
        found.update(f"{file.relative_to(folder).as_posix()} {len(text)}\n".encode())
        found.update(text)
    return found.hexdigest()[:_DIGITS]


def _together(digests: Iterable[str]) -> str:
    return hashlib.sha256(" ".join(digests).encode()).hexdigest()[:_DIGITS]
