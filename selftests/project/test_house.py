"""The house keeps its own rules: sizes of files and classes, and one room that reaches into Hypothesis."""

from __future__ import annotations

import pytest

from autograd_conformance.benchmarks import house
from autograd_conformance.harness.catalogue import PACKAGE


def test_no_file_is_too_long_except_lists_of_data():
    long = {name: length for name, length in house.lengths().items() if length > house.LONGEST}
    assert long == {}
    assert house.lines_of("README.md") <= house.README


def test_no_class_of_the_harness_does_too_much():
    counts = house.methods()
    assert len(counts) > 50
    assert {name: count for name, count in counts.items() if count > house.MOST_METHODS} == {}


def test_arrows_are_counted_between_rooms():
    arrows = house.arrows()
    assert {("commands", "check"), ("check", "running"), ("views", "reports")} <= arrows
    assert all(mine != other for mine, other in arrows)


def test_every_package_of_the_rooms_is_installed():
    listed = (PACKAGE / "pyproject.toml").read_text("utf-8").partition("[tool.setuptools]")[2].partition("]")[0]
    rooms = ("harness", "suites", "strategies", "implementations", "reference")
    folders = [path.parent.relative_to(PACKAGE) for room in rooms for path in (PACKAGE / room).rglob("__init__.py")]
    names = {".".join(("autograd_conformance", *folder.parts)) for folder in folders}
    assert len(names) > 20
    assert {name for name in names if f'"{name}"' not in listed} == set()


@pytest.mark.parametrize("text", ["hypothesis.internal", "_hypothesis_internal", "import control"])
def test_one_module_reaches_into_hypothesis(text):
    rooms = ("harness/", "suites/", "strategies/", "implementations/", "reference/")
    found = [name for name in house.sources() if name.startswith(rooms) and text in (PACKAGE / name).read_text()]
    assert set(found) <= {"harness/testing/drawing.py"}
