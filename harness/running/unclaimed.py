"""Test ids that need a capability which the implementation does not claim: they run, too, after all others.

An implementation may refuse what it does not claim. A wrong result without an error is worth knowing all the same, and
so is a process that dies. Neither fails a run.
"""

from __future__ import annotations

import copy
from collections.abc import Collection
from dataclasses import replace

from autograd_conformance.harness.checking.clauses import ClauseSubject
from autograd_conformance.harness.checking.subject import Subject
from autograd_conformance.harness.outcomes import LOUD, Kind
from autograd_conformance.harness.reports.ndjson import Line
from autograd_conformance.implementations.protocol import absent_methods

Examined = Subject | ClauseSubject

# The end of the node ids of such tests, by which the scheduler knows them.
END = "-unclaimed"


def claiming(subject: Examined, missing: Collection[str]) -> Examined:
    """The subject on an implementation that claims these capabilities, too: a test leaves out what is not claimed."""
    implementation = copy.copy(subject.implementation)
    implementation.capabilities = subject.implementation.capabilities | set(missing)
    return replace(subject, implementation=implementation, unclaimed=tuple(sorted(missing)))


def absent(subject: Examined) -> str:
    """What the adapter would need to be asked for what it does not claim, and does not have; empty if it has all."""
    methods = [name for each in subject.unclaimed for name in absent_methods(subject.implementation, each)]
    return f"the adapter has no method {', '.join(methods)}" if methods else ""


def name_of(subject: Examined) -> str:
    """The name of a subject in a node id."""
    return repr(subject) + END * bool(subject.unclaimed)


def outcome(found: Line, subject: Examined) -> Line:
    """The outcome of a test id that was not claimed, from what it would be if it were."""
    failure: Line = found.get("failure", {})
    if found["outcome"] in ("pass", "emulated"):
        return {"outcome": "holds"}
    loud = failure.get("kind") == Kind.RAISED or failure.get("component", {}).get("aspect") == LOUD
    if found["outcome"] == "fail" and not loud:
        return {**found, "outcome": "silent"}
    if found["outcome"] in ("fail", "error"):
        said = failure.get("got") if "what" in failure else f"{failure['type']}: {failure['message']}"
        return {"outcome": "refuses", "reason": str(said)}
    if subject.record.excused or subject.record.refused:
        return {"outcome": "refuses", "reason": subject.record.excuse or "an exception of the implementation"}
    return {"outcome": "unsupported", "reason": f"not claimed, and not decided: {found.get('reason', '')}"}


def in_words(subject: Examined) -> str:
    """What is not claimed, for a sentence."""
    return f"{subject.implementation.name} does not claim {', '.join(subject.unclaimed)}"
