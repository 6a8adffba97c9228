"""The house keeps its own rules: sizes of files and classes, and one room that reaches into Hypothesis."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

import pytest

from autograd_conformance.harness.catalogue import PACKAGE

# Lists of data, which are as long as what they list.
DATA = (
    "implementations/torch_deviations.py",
    "reference/clauses/",
    "reference/functions/exhibits_",
    "selftests/planted_dialects/",
)
LONGEST, MOST_METHODS = 450, 25


def sources() -> list[str]:
    """The Python files that git tracks, or all of the rooms outside a checkout."""
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=PACKAGE, capture_output=True, text=True, check=False)
    found = listed.stdout.split() or [str(path.relative_to(PACKAGE)) for path in PACKAGE.glob("*/**/*.py")]
    return sorted(name for name in found if (PACKAGE / name).is_file())


def lines_of(name: str) -> int:
    return len((PACKAGE / name).read_text(encoding="utf-8").splitlines())


def classes() -> list[tuple[str, ast.ClassDef]]:
    files = sorted(Path(PACKAGE, "harness").glob("**/*.py"))
    trees = [(path.name, ast.parse(path.read_text(encoding="utf-8"))) for path in files]
    return [(name, node) for name, tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]


def test_no_file_is_too_long_but_lists_of_data():
    long = {name: lines_of(name) for name in sources() if not name.startswith(DATA) and lines_of(name) > LONGEST}
    assert long == {}


def test_no_class_of_the_harness_does_too_much():
    counts = {f"{name}: {c.name}": sum(isinstance(x, ast.FunctionDef) for x in c.body) for name, c in classes()}
    assert len(counts) > 50
    assert {name: count for name, count in counts.items() if count > MOST_METHODS} == {}


@pytest.mark.parametrize("text", ["hypothesis.internal", "_hypothesis_internal", "import control"])
def test_one_module_reaches_into_hypothesis(text):
    rooms = ("harness/", "suites/", "strategies/", "implementations/", "reference/")
    found = [name for name in sources() if name.startswith(rooms) and text in (PACKAGE / name).read_text()]
    assert set(found) <= {"harness/checking/drawing.py"}
