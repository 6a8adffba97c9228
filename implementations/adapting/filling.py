"""What stands in a new adapter where its author has to write something, and where that still is."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from autograd_conformance.implementations.protocol import Implementation

NAME = "FILL_IN"


class Unfilled(NotImplementedError):
    """Raised by any use of what is still to be filled in."""

    def __call__(self, *_: Any, **__: Any) -> NoReturn:
        raise Unfilled(*self.args)

    def __getattr__(self, name: str) -> NoReturn:
        # Python looks for special names itself, and takes this for their absence.
        if name.startswith("__"):
            raise AttributeError(name)
        raise Unfilled(*self.args)


FILL_IN: Any = Unfilled("an adapter is used before it is filled in")


def unfilled(implementation: Implementation) -> list[str]:
    """Each place in the adapter's file that is still to be filled in, with what belongs there."""
    try:
        path = Path(inspect.getfile(type(implementation)))
        text = path.read_text(encoding="utf-8")
    except (OSError, TypeError):
        # It was made where there is no file.
        return []
    if NAME not in text:
        return []
    return [f"{path.name}, {place}" for statement in ast.parse(text).body for place in _places(statement)]


def _places(node: ast.stmt) -> Iterator[str]:
    """The places in a statement: one for a method, and one for an assignment, with all names that it lacks."""
    if isinstance(node, ast.ClassDef):
        for each in node.body:
            yield from _places(each)
        return
    lines = [each.lineno for each in ast.walk(node) if isinstance(each, ast.Name) and each.id == NAME]
    if not lines:
        return
    where = f"line {lines[0]}" if len(lines) == 1 else f"lines {min(lines)} to {max(lines)}"
    if isinstance(node, ast.FunctionDef):
        said = (ast.get_docstring(node) or "").partition("\n")[0]
        yield f"{where}: write the function {node.name}{f': {said}' if said else ''}"
        return
    names = [
        each.arg
        for each in ast.walk(node)
        if isinstance(each, ast.keyword) and isinstance(each.value, ast.Name) and each.value.id == NAME
    ]
    target = ast.unparse(node.targets[0]) if isinstance(node, ast.Assign) else ""
    yield f"{where}: fill in {f'{target}: ' if target and names else target}{', '.join(map(str, names))}"
