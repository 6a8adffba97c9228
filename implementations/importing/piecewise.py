"""Modules that cannot be imported as a whole: each statement is executed by itself."""

from __future__ import annotations
import __future__

import ast
from collections.abc import Iterator
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from autograd_conformance.implementations.importing.missing import Placeholder, StandIns

_FLAGS = __future__.annotations.compiler_flag


def executed(name: str, path: Path, stand_ins: StandIns) -> ModuleType:
    """The module in a file. What a statement that raises would have defined is missing, and says why."""
    spec = spec_from_file_location(name, path)
    assert spec is not None
    module = module_from_spec(spec)
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        code = compile(ast.Module([statement], []), str(path), "exec", _FLAGS, dont_inherit=True)
        try:
            stand_ins.importing(partial(exec, code, vars(module)))
        # A package may answer to what it lacks with anything.
        except Exception as problem:  # noqa: BLE001
            why = f"{path.name}:{statement.lineno}, which raises {type(problem).__name__}: {problem}"
            vars(module).update({each: Placeholder(why) for each in _defined(statement)})
    return module


def _defined(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement defines."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        yield statement.name
    elif isinstance(statement, ast.Import | ast.ImportFrom):
        yield from ((each.asname or each.name).partition(".")[0] for each in statement.names)
    else:
        named = (each for each in ast.walk(statement) if isinstance(each, ast.Name))
        yield from (each.id for each in named if isinstance(each.ctx, ast.Store))
