"""The clauses and their tests: which clauses are tested, and why the others are not."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tabulate import tabulate

from autograd_conformance.reference.clauses import CLAUSES, CONTRACT, DIALECTS
from autograd_conformance.reference.clauses.definitions import Clause

# The root folder: a checkout, or the installed package.
PACKAGE = Path(__file__).resolve().parents[1]
SUITES = PACKAGE / "suites"


@cache
def is_part_of(filename: str, *rooms: str) -> bool:
    """Whether a file, perhaps named by way of a link, is in one of these rooms of the package."""
    return any(Path(filename).resolve().is_relative_to(PACKAGE / room) for room in rooms)


@cache
def tests_by_clause() -> dict[str, tuple[str, ...]]:
    """The tests of each clause as ``file::name``, read from the source without importing a framework."""
    found: dict[str, list[str]] = {name: [] for name in CLAUSES}
    for path in sorted(SUITES.rglob("test_*.py")):
        for clause_id, test in _marked(path):
            found.setdefault(clause_id, []).append(f"{path.relative_to(SUITES.parent).as_posix()}::{test}")
    return {name: tuple(tests) for name, tests in found.items()}


def _marked(path: Path) -> Iterator[tuple[str, str]]:
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        for mark in getattr(node, "decorator_list", ()):
            if isinstance(mark, ast.Call) and isinstance(mark.func, ast.Name) and mark.func.id == "keeps":
                (first, *_) = mark.args
                if isinstance(first, ast.Constant) and isinstance(node, ast.FunctionDef):
                    yield str(first.value), node.name
        # A sentence that frameworks share is a row of each of them: test_it = row("ID", ...).
        match node:
            case ast.Assign([ast.Name(name)], ast.Call(ast.Name("row"), [ast.Constant(clause_id), *_])):
                yield str(clause_id), name


def where(clause: Clause) -> str:
    """The tests of a clause, or the reason why it has none."""
    tests = tests_by_clause()[clause.id]
    return ", ".join(tests) if tests else f"not tested: {clause.untested or 'no reason is given'}"


def coverage() -> str:
    """The number of clauses in each group that are tested and have a planted fault, as a Markdown table."""
    groups: dict[str, list[Clause]] = {}
    for clause in CONTRACT.values():
        groups.setdefault(clause.group, []).append(clause)
    rows = [_row(group, clauses) for group, clauses in groups.items()]
    rows.append(_row("of PyTorch's contract", list(CONTRACT.values())))
    rows.extend(_row(f"of {name}'s own", list(clauses.values())) for name, clauses in DIALECTS.items())
    heading = ("clauses", "documented", "tested", "fault planted", "observed", "tested", "fault planted")
    return str(tabulate(rows, heading, tablefmt="github"))


def _row(name: str, clauses: list[Clause]) -> tuple[str | int, ...]:
    tests = tests_by_clause()
    cells: list[int] = []
    for level in ("documented", "observed"):
        mine = [c for c in clauses if c.level == level]
        cells += [len(mine), sum(bool(tests[c.id]) for c in mine), sum(not c.unplanted for c in mine)]
    return (name, *cells)
