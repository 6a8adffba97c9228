"""What a run imports that belongs neither to the suite, to Python nor to an installed package: modules and libraries.

Two runs of one adapter are of other code if a module beside it has changed.
"""

from __future__ import annotations

import ast
import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path

from autograd_conformance.harness.catalogue import PACKAGE
from autograd_conformance.harness.provenance.fork import loaded
from autograd_conformance.harness.provenance.identity import is_native, places
from autograd_conformance.harness.provenance.sources import digest, files_of
from autograd_conformance.implementations.protocol import Implementation

# Libraries of the system: machines of one run may differ in them.
_SYSTEM = ("/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64")

# What starts the names of the program itself, and of the interpreter as a library.
_PYTHON = ("__main__", "__mp_main__", "libpython")

# Folders of installed packages, also those of another environment.
_INSTALLED = {"site-packages", "dist-packages"}


@cache
def _elsewhere() -> tuple[Path, ...]:
    """The folders of what is identified otherwise: by the suite's sources, or by a version."""
    python = [sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")]
    return (PACKAGE, *(Path(place).resolve() for place in (*python, *_SYSTEM)))


@cache
def _counts_in(folder: str, build: tuple[Path, ...]) -> bool:
    """Whether nothing else identifies the files of a folder, given those whose packages have a digest of their own."""
    others = (*_elsewhere(), *(place.resolve().parent for place in build if place.name == "__init__.py"))
    return not _INSTALLED & {*Path(folder).parts} and not any(map(Path(folder).is_relative_to, others))


@dataclass(frozen=True)
class Imports:
    """The modules of an adapter and of tests from elsewhere, given their files.

    The packages whose files are in ``build`` have a digest of their own.
    """

    files: tuple[Path, ...]
    build: tuple[Path, ...] = ()

    def written(self) -> dict[str, str]:
        """The digests of the modules that these files import, and those in turn, by name: in functions, too.

        They are found from what is written. Nothing is imported for it.
        """
        return self._digests(self._written())

    def all(self) -> dict[str, str]:
        """The digests of these, of all other modules of this process, and of native libraries that it has loaded."""
        loaded_files = {file.name: file for file in loaded()}
        modules = {name: getattr(module, "__file__", None) for name, module in list(sys.modules.items())}
        imported = {name: Path(file) for name, file in modules.items() if isinstance(file, str)}
        return self._digests({**self._written(), **loaded_files, **imported})

    def _written(self) -> dict[str, Path]:
        left = [file.resolve() for file in self.files if self._counts(file.resolve())]
        folders = [str(folder) for folder in dict.fromkeys(file.parent for file in left)]
        found: dict[str, Path] = {}
        seen = set(left)
        while left:
            for name, path in _imports(left.pop(), folders):
                if path not in seen and self._counts(path):
                    found[name] = path
                    seen.add(path)
                    left.append(path)
        return found

    def _counts(self, file: Path) -> bool:
        return _counts_in(str(file.parent), self.build) and file.is_file()

    def _digests(self, named: Mapping[str, Path]) -> dict[str, str]:
        """Of each file once. What was given has digests of its own."""
        own = {file.resolve() for file in self.files}
        found: dict[Path, str] = {}
        real = cache(os.path.realpath)
        for name, path in sorted(named.items()):
            # To look at each file takes long, and most are in a few folders of installed packages.
            if name.startswith(_PYTHON) or not (path.is_symlink() or _counts_in(real(path.parent), self.build)):
                continue
            file = path.resolve()
            if file not in own and self._counts(file):
                found.setdefault(file, file.name if is_native(file.name) else name)
        return {name: digest(file.parent, [file]) for file, name in found.items()}


def _imports(file: Path, folders: Sequence[str]) -> Iterator[tuple[str, Path]]:
    """The name and file of each module that one of Python imports, and of the packages that it is in."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, ValueError, SyntaxError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _resolved(alias.name, folders)
        elif isinstance(node, ast.ImportFrom):
            package = [str(file.parents[node.level - 1])] if 0 < node.level <= len(file.parents) else None
            for alias in node.names:
                # What is imported from a package may be a module.
                yield from _resolved(f"{node.module or ''}.{alias.name}".lstrip("."), folders, package)


def _resolved(name: str, folders: Sequence[str], package: list[str] | None = None) -> Iterator[tuple[str, Path]]:
    """The files of a dotted name, from the left, as far as there are any; a relative one begins in ``package``."""
    where, known = package, ""
    for part in name.split("."):
        known = f"{known}.{part}".lstrip(".")
        spec = None
        # A finder may raise anything, and a module that code made has no spec.
        with suppress(Exception):
            spec = PathFinder.find_spec(known, where) if where else find_spec(known)
        if spec is None and where is None:
            spec = PathFinder.find_spec(known, folders)
        if spec is None:
            return
        if spec.origin is not None:
            yield known, Path(spec.origin).resolve()
        if spec.submodule_search_locations is None:
            return
        where = list(spec.submodule_search_locations)


def of(implementation: Implementation, tests: Iterable[Path]) -> Mapping[str, str]:
    """The imports of a run of this implementation, with tests in these places."""
    files = (file for place in tests for file in files_of(place))
    return of_run((*implementation.files(), *files), places(implementation))


@cache
def of_run(files: tuple[Path, ...], build: tuple[Path, ...]) -> Mapping[str, str]:
    """All imports of a run with these files of the adapter and the tests, by name.

    Asked once, when the implementation has been loaded: what pytest imports later says nothing about it.
    """
    return Imports(files, build).all()
