"""Names: of a Function, its arguments and the place of its declaration, and how a script imports them."""

from __future__ import annotations

import inspect
import re
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from keyword import iskeyword
from pathlib import Path
from types import ModuleType
from typing import Any

from autograd_conformance.implementations import load
from autograd_conformance.implementations.protocol import Unavailable


def parameter_names(function: Any, count: int, implementation: str) -> Sequence[str]:
    """The names of the arguments: those of forward's parameters, or what the implementation knows of an operator's."""
    owner = getattr(function, "__self__", function)
    forward = getattr(owner, "forward", None) if isinstance(owner, type) else function
    try:
        found = [
            p for p in inspect.signature(forward).parameters.values()  # type: ignore[arg-type]
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]  # fmt: skip
    except (TypeError, ValueError):
        found = []
    required = [p for p in found if p.default is p.empty]
    found = found[1:] if [p.name for p in found[:1]] == ["ctx"] or len(required) == count + 1 else found
    fits = len(found) >= count >= sum(p.default is p.empty for p in found)
    if fits:
        return [p.name for p in found[:count]]
    names: Sequence[str] = ()
    if not isinstance(owner, type):
        # If it cannot be imported, the check says so.
        with suppress(Unavailable):
            names = load(implementation).parameters_of(function, count)
    return names or [f"argument{n}" for n in range(count)]


def arity(function: Any, before: int = 0) -> tuple[int, int] | None:
    """The least and the most arguments that a callable takes after ``before`` others; None if that is not known."""
    try:
        parameters = list(inspect.signature(function).parameters.values())[before:]
    except (TypeError, ValueError):
        return None
    placed = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    most = sys.maxsize if any(p.kind is p.VAR_POSITIONAL for p in parameters) else len(placed)
    return sum(p.default is p.empty for p in placed), most


def importing(module: ModuleType, name: str) -> str:
    """Python text that imports a name of a module, from the folder in which the module or its package is."""
    path, imported = str(getattr(module, "__file__", "")), module.__name__
    if not path or "site-packages" in path:
        return f"from {imported} import {name}"
    if "." not in imported and Path(path).stem != "__init__":
        imported = Path(path).stem
    if not all(part.isidentifier() and not iskeyword(part) for part in imported.split(".")):
        return f"import runpy\n{name} = runpy.run_path({path!r})[{name!r}]"
    folder = Path(path).parents[imported.count(".") + (Path(path).stem == "__init__")]
    return f"sys.path.insert(0, {str(folder)!r})\nfrom {imported} import {name}"


def words(given: str | Sequence[str]) -> tuple[str, ...]:
    """One word or several, as a tuple."""
    return tuple(word.strip() for word in ([given] if isinstance(given, str) else given))


def module_name(target: str) -> str:
    """The name of a target's module, with dots; that of a file has its folders, seen from the working folder."""
    place = target.partition("::")[0] if "::" in target else target.rpartition(":")[0] or target
    path = Path(place)
    if path.is_absolute() and path.is_relative_to(Path.cwd()):
        path = path.relative_to(Path.cwd())
    parts = path.with_suffix("").parts if path.suffix == ".py" else path.parts
    return re.sub(r"[^\w.-]+", "-", ".".join(parts[-1:] if path.is_absolute() or ".." in parts else parts))


def name_of(function: Any) -> str:
    """The name of a Function class, or of another callable."""
    owner = getattr(function, "__self__", None)
    named = owner if isinstance(owner, type) else function
    text = getattr(named, "__name__", type(named).__name__)
    return re.sub(r"\W+", "_", text).strip("_") or "Function"


class Notation:
    """How an author writes what a declaration says, for messages: as keywords."""

    def placed(self, where: str, name: str) -> str:
        """The place of a declaration, with its name."""
        return f"{where}: {name}"

    def word(self, word: str) -> str:
        """A word without a value."""
        return f"{word}="

    def said(self, word: str, value: Any = True) -> str:
        """A word with its value."""
        return f"{word}={value!r}"


class Options(Notation):
    """The notation of a command line, where the place has the name."""

    def placed(self, where: str, _: str) -> str:
        return where

    def word(self, word: str) -> str:
        return f"--{word.replace('_', '-')}"

    def said(self, word: str, value: Any = True) -> str:
        if value is True:
            return self.word(word)
        values = [value] if isinstance(value, str | int | float) else value
        return " ".join(f"{self.word(word)} {shlex.quote(str(each))}" for each in values)


KEYWORDS = Notation()


def caller() -> str:
    """The file and line, outside this package, that make the declaration."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("autograd_conformance."):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
