"""Users' Functions checked in this process, for what looks at the results."""

from __future__ import annotations

from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.check.verdicts import Verdict, verdict
from autograd_conformance.harness.reports.ndjson import Line
from autograd_conformance.suites.declared import Checked


def faults_of(declaration: Declaration, *properties: str, seed: int = 0) -> list[tuple[Line, Verdict]]:
    """What is wrong with a Function."""
    judged = ((line, verdict(line)) for line in Checked(declaration, seed=seed).lines(*properties))
    return [(line, v) for line, v in judged if v is not None and v.fault]
