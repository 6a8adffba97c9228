"""An edit of a line of torch's Python files, without a second torch: functions of this process get the edited code."""

from __future__ import annotations

import ast
import gc
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache, partial
from importlib import import_module
from inspect import CO_NEWLOCALS
from pathlib import Path
from types import CodeType, FunctionType

import pytest

# The functions that are edited: the file, the name and the line of each.
_EDITED: set[tuple[str, str, int]] = set()


def edit(place: str, old: str, new: str) -> Callable[[], AbstractContextManager[None]]:
    """The plant of an edit, see `edited`."""
    return partial(edited, place, old, new)


@contextmanager
def edited(place: str, old: str, new: str) -> Iterator[None]:
    """``old`` is ``new`` in the function at this place, as in ``torch.autograd.graph:_MultiHandle.remove``."""
    module, _, name = place.partition(":")
    file = str(import_module(module).__file__)
    source, tree, code = _read(file)
    first, last = _lines(tree, name.split("."))
    lines = source.splitlines(keepends=True)
    text = "".join(lines[first:last])
    if text.count(old) != 1:
        pytest.skip(f"skip: {place} does not have this once in this release of torch: {old}")
    changed = "".join((*lines[:first], text.replace(old, new), *lines[last:]))
    codes = dict(_changed(code, compile(changed, file, "exec")))
    # A second edit would undo the first.
    assert not _EDITED & {(file, *which) for which in codes}, f"{place} is edited already"
    with ExitStack() as stack:
        stack.callback(_EDITED.difference_update, {(file, *which) for which in codes})
        _EDITED.update((file, *which) for which in codes)
        for f in [each for each in gc.get_objects() if type(each) is FunctionType]:
            replacement = codes.get((f.__code__.co_name, f.__code__.co_firstlineno))
            if replacement and f.__code__.co_filename == file:
                stack.callback(setattr, f, "__code__", f.__code__)
                f.__code__ = replacement
        yield


@cache
def _read(file: str) -> tuple[str, ast.Module, CodeType]:
    """The text of a module, its tree, and its code."""
    source = Path(file).read_text(encoding="utf-8")
    return source, ast.parse(source), compile(source, file, "exec")


def _lines(tree: ast.AST, names: list[str]) -> tuple[int, int]:
    """The lines of a function; none where it is not in this release."""
    for name in names:
        kinds = (ast.FunctionDef, ast.ClassDef)
        found = [n for n in getattr(tree, "body", ()) if isinstance(n, kinds) and n.name == name]
        if not found:
            return 0, 0
        tree = found[-1]
    return tree.lineno - 1, tree.end_lineno  # type: ignore[attr-defined]


def _changed(before: CodeType, after: CodeType) -> Iterator[tuple[tuple[str, int], CodeType]]:
    """The outermost functions that differ, which make their inner ones: name and line of each, and its new code."""
    for old, new in zip(_inner(before), _inner(after), strict=True):
        if not old.co_flags & CO_NEWLOCALS:
            yield from _changed(old, new)  # the body of a class
        elif old != new:
            yield (old.co_name, old.co_firstlineno), new


def _inner(code: CodeType) -> list[CodeType]:
    return [each for each in code.co_consts if isinstance(each, CodeType)]
