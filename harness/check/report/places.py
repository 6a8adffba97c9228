"""Where a finding about a user's Function is: the file and line of the method that it is about."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from autograd_conformance.harness.outcomes import is_of_output

METHODS = ("forward", "backward", "jvp", "vmap", "setup_context")

# The method that a property is about, by the beginning of its id; any other is about backward.
_ABOUT = {"FWD": "forward", "DECL": "forward", "JVP": "jvp", "BATCH": "vmap"}

# The lines of methods: a file and a line for each.
Lines = Mapping[str, tuple[str, int]]


def lines_of(function: Any, where: str) -> dict[str, tuple[str, int]]:
    """The lines of a Function's methods, that of a callable as its forward, and that of its declaration."""
    given = getattr(function, "__self__", None)
    owner = given if isinstance(given, type) else function
    methods = {name: getattr(owner, name, None) for name in METHODS} if isinstance(owner, type) else {}
    if not isinstance(owner, type):
        called = owner if inspect.isroutine(owner) else getattr(owner, "forward", None)
        methods = {"forward": called}
    found = {name: place for name, method in methods.items() if (place := _line(method)) is not None}
    path, _, number = where.rpartition(":")
    declared = {"declaration": (path, int(number))} if path and number.isdigit() else {}
    # What a Function inherits says nothing about it.
    return {**{name: place for name, place in found.items() if "site-packages" not in place[0]}, **declared}


def shown(function: Any, where: str) -> str:
    """The place of a Function class in a file of its own; otherwise that of its declaration."""
    owner = getattr(function, "__self__", function)
    found = _line(owner) if isinstance(owner, type) else None
    declared = where.rpartition(":")[0]
    own = found is not None and declared.endswith(".py") and not _is_same(found[0], declared)
    return f"{found[0]}:{found[1]}" if found is not None and own else where


def _is_same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _line(method: Any) -> tuple[str, int] | None:
    """The file of a method or class, and the line of its name, below its decorators."""
    try:
        method = inspect.unwrap(method)
        lines, start = inspect.getsourcelines(method)
        path = inspect.getsourcefile(method)
    except (TypeError, OSError, ValueError):
        return None
    below = next((n for n, text in enumerate(lines) if text.lstrip().startswith(("def ", "async def ", "class "))), 0)
    return (path, start + below) if path else None


def place_of(property_id: str, failure: Mapping[str, Any], lines: Lines) -> tuple[str, str, int] | None:
    """The method that a finding is about, its file and its line; None if no file of this folder has it."""
    about = _ABOUT.get(property_id.partition("-")[0], "backward")
    about = "forward" if is_of_output(failure) else about
    for name in dict.fromkeys((about, "backward", "forward", "declaration")):
        path = relative(lines[name][0]) if name in lines else ""
        if path:
            return name, path, lines[name][1]
    return None


def relative(path: str) -> str:
    """The path, seen from the checkout or the working folder; empty if the file is outside."""
    workspace = os.environ.get("GITHUB_WORKSPACE", "")
    for folder in filter(None, (workspace, str(Path.cwd()))):
        root, full = Path(folder).resolve(), Path(path).resolve()
        if full.is_relative_to(root):
            return full.relative_to(root).as_posix()
    return ""
