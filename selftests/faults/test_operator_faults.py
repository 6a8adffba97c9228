"""Each planted fault of an operator is found, and its right twin is accepted, as the table of the docs says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("torch")

from autograd_conformance import implementations
from autograd_conformance.selftests.faults.operators import (
    HEAD,
    REFUSED,
    check,
    gradcheck,
    opcheck,
    row,
)
from autograd_conformance.selftests.faults.operators.planted import PLANTED

PAGE = Path(__file__).resolve().parents[2] / "docs" / "checking-operators.md"
BY_NAME = {planted.name: planted for planted in PLANTED}
TORCH = implementations.load("torch")


def rows() -> dict[str, str]:
    """The rows of the page's table, by the fault."""
    text = PAGE.read_text(encoding="utf-8").partition(HEAD)[2]
    return {re.split(r" *\| *", line)[1]: line for line in text.strip().splitlines()}


def test_there_are_as_many_faults_as_rows() -> None:
    assert list(rows()) == [planted.says for planted in PLANTED]
    assert len(BY_NAME) == len(PLANTED) >= 20


@pytest.mark.parametrize("name", BY_NAME)
def test_the_page_says_who_finds_the_fault(name: str) -> None:
    planted = BY_NAME[name]
    found = row(planted)
    assert rows()[planted.says] == found
    assert found.endswith(f"{planted.test} |")


@pytest.mark.parametrize("name", BY_NAME)
def test_of_the_twin_nothing_is_wrong(name: str) -> None:
    planted = BY_NAME[name]
    op, samples = planted.right.register(f"{name}_right"), planted.samples()
    assert opcheck(op, samples) == []
    assert gradcheck(op, samples) == []
    assert check(planted, op, "VJP-FD" if planted.test == REFUSED else planted.test) == []


# The first of those with one twin.
@pytest.mark.parametrize("name", {id(BY_NAME[name].right): name for name in reversed(BY_NAME)}.values())
def test_no_test_accuses_a_twin(name: str) -> None:
    planted = BY_NAME[name]
    assert check(planted, planted.right.register(f"{name}_twin")) == []
