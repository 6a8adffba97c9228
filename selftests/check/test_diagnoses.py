"""The golden file has every known fault. `benchmarks/diagnoses.py` compares all that `check` says of them."""

import pytest

pytest.importorskip("torch")

from autograd_conformance.benchmarks.diagnoses import GOLDEN, cases, compared, said

KEPT = GOLDEN.read_text(encoding="utf-8").splitlines()
NAMES = [line for line in KEPT if line and not line.startswith((" ", "#"))]


def test_the_file_has_each_case_once():
    assert [name for name, _ in cases()] == NAMES


# What discovery finds, and no test.
DISCOVERED = {"planted VJP-REF-DoubleInSinglePrecision", "page declined", "page stale"}


def test_the_file_has_a_verdict_of_each_case_that_a_test_finds():
    blocks = [block.splitlines() for block in "\n".join(KEPT).strip().split("\n\n")]
    found = {name for name, *rows in blocks if any(row.startswith("  ") and ": fail, " in row for row in rows)}
    noted = {name for name, *rows in blocks if any(row.startswith("  ") and ": vacuous, " in row for row in rows)}
    assert set(NAMES) - found - noted == DISCOVERED


@pytest.mark.parametrize("name", ["specimen likely-a mean for a sum", "page vjp_fd", "page stale"])
def test_what_is_said_is_what_the_file_has(name):
    (case,) = (case for case in cases() if case[0] == name)
    start = KEPT.index(name)
    assert compared(said(case), KEPT[start : KEPT.index("", start) + 1]) == []


def test_seconds_are_not_compared():
    assert compared(["a", "# 1 s"], ["a", "# 2 s"]) == []
    assert "+  VJP-FD: fail" in compared(["a", "  VJP-FD: fail"], ["a"])
