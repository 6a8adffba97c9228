"""One fault of a user's Function is one block: what follows from it has none of its own."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("torch")

from autograd_conformance import implementations
from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.check.discovery.discovery import discover
from autograd_conformance.harness.check.report.grouping import Finds
from autograd_conformance.harness.check.report.printing import rows
from autograd_conformance.selftests.checking import lines_of
from autograd_conformance.selftests.specimens.one_fault import GivenAway, writing
from autograd_conformance.suites.declared import Checked


def test_no_shape_is_blamed_for_a_cotangent():
    lines = Checked(Declaration(GivenAway, "float[n]", "float[n]"), seed=0).lines("VJP-PURE", "DBL-CORRECT")
    failures = [line["failure"] for line in lines if line["outcome"] == "fail"]
    assert failures
    assert [failure["right_with"] for failure in failures if "shapes" in failure.get("right_with", "")] == []


def test_the_verdict_says_what_was_said_when_faults_were_found(tmp_path):
    declaration, finds = writing(3), Finds()
    lines = list(lines_of(Checked(declaration, profile="quick", seed=1), "VJP-FD", "VJP-REF", "VJP-PURE"))
    found = [row for line in lines for row in finds.rows(line)]
    assert found == [
        "found: Writing: WRONG: VJP-FD",
        "found: Writing: RAISES: VJP-REF",
        "found: Writing: MUTATES: VJP-PURE",
    ]
    facts = discover(declaration, implementations.load("torch"), errors=False)
    text = "\n".join(rows("Writing", facts, lines, tmp_path))
    assert text.count("WRONG: VJP-FD") == text.count("MUTATES: VJP-PURE") == 1
    assert re.search(r"same fault \(raises\): .*\bVJP-REF\b", text)
