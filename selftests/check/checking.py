"""Users' Functions checked in this process, for what looks at the results."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.check.report.verdicts import Verdict, verdict
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.harness.reports.ndjson import Line
from autograd_conformance.selftests import tiers
from autograd_conformance.suites.declared import Checked, claims

SCHEMA = json.loads(Path(ndjson.__file__).with_name("report.schema.json").read_text(encoding="utf-8"))
# Raises for what is no line of results.
RESULT = Draft202012Validator({**SCHEMA, "$ref": "#/$defs/result"})

# How right Functions are called: a few times in the first tier, and at night as often as a gate does, with more seeds.
DRAWS = [pytest.param("quick", 0, id="few"), *(pytest.param("gate", seed, id=f"seed{seed}") for seed in range(5))]


def faults_of(
    declaration: Declaration, *properties: str, seed: int = 0, profile: str = "gate", shrink: bool = True
) -> list[tuple[Line, Verdict]]:
    """What is wrong with a Function."""
    return list(faults_in(Checked(declaration, profile=profile, seed=seed, shrink=shrink).lines(*properties)))


def accuses(declaration: Declaration, *properties: str, seed: int = 0) -> list[tuple[Line, Verdict]]:
    """What a few examples, at night those of a gate, accuse a Function of, which should be nothing."""
    return faults_of(declaration, *properties, seed=seed, profile="gate" if tiers.NIGHT else "quick", shrink=False)


def first_fault(declaration: Declaration, *tests: str, seed: int = 0) -> tuple[Line, Verdict] | None:
    """The first fault that these tests find, in their order: in a call as it was drawn, at night in the smallest."""
    return next(faults_in(lines_of(Checked(declaration, seed=seed, shrink=tiers.NIGHT), *tests)), None)


def faults_in(lines: Iterable[Line]) -> Iterator[tuple[Line, Verdict]]:
    """The lines that accuse a Function, with their verdicts."""
    return ((line, v) for line in lines if (v := verdict(line)) is not None and v.fault)


def lines_of(checked: Checked, *tests: str) -> Iterator[Line]:
    """The result lines of these tests alone, such as VJP-FD or VJP-FD/kinks, in their order."""
    for name in tests:
        for claim, test in claims().values():
            if claim.test == name:
                lines = (checked.line(claim, test, subject) for subject in checked.subjects(claim))
                yield from (line for line in lines if line is not None)


def each_test_of(property_id: str) -> list[str]:
    """The tests of a property, the plain one and its variants."""
    return list(dict.fromkeys(claim.test for claim, _ in claims().values() if claim.property_id == property_id))
