"""Running a program so that the calls of its custom Functions are recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from autograd_conformance.harness.drafting.observed import Observed, observed
from autograd_conformance.harness.processes import instrumented
from autograd_conformance.harness.processes.child import exit_status

# The module of `harness.inside` that records.
MODULE = "recording"


@dataclass(frozen=True)
class Recorded:
    """The Functions that a program called, and how it ended: empty if it ended well."""

    functions: list[Observed]
    ended: str


def record(command: Sequence[str]) -> Recorded:
    """Run a command, and record its calls. Raises UsageProblem if it cannot be started."""
    with instrumented.instrumented(MODULE) as (environment, folder):
        status = instrumented.run(command, environment)
        return Recorded(observed(folder), f"ended with {exit_status(status)}" if status else "")
