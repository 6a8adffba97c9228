"""Test ids that need a capability which the implementation does not claim: they run, too, after all others.

An implementation may refuse what it does not claim. A wrong result without an error is worth knowing all the same, and
so is a process that dies. Neither fails a run.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from autograd_conformance.harness.reports.ndjson import Line
from autograd_conformance.harness.testing.clauses import ClauseSubject
from autograd_conformance.harness.testing.subject import Subject
from autograd_conformance.implementations.protocol import Implementation, absent_methods

Tested = Subject | ClauseSubject

# The end of the node ids of such tests, by which the scheduler knows them.
END = "-unclaimed"


def claiming(subject: Tested, missing: Collection[str]) -> Tested:
    """The subject on an implementation that claims these capabilities, too: a test leaves out what is not claimed."""
    given = subject.implementation
    kind = type(given)
    body = {"__module__": kind.__module__, "capabilities": given.capabilities | set(missing)}
    # Of a class of its own: an adapter may compute its claims.
    implementation: Implementation = object.__new__(type(kind.__name__, (kind,), body))
    vars(implementation).update({name: value for name, value in vars(given).items() if name != "capabilities"})
    return replace(subject, implementation=implementation, unclaimed=tuple(sorted(missing)))


def absent(subject: Tested) -> str:
    """What the adapter would need to be asked for what it does not claim, and does not have; empty if it has all."""
    methods = [name for each in subject.unclaimed for name in absent_methods(subject.implementation, each)]
    return f"not claimed, and the adapter has no method {', '.join(methods)}" if methods else ""


def name_of(subject: Tested) -> str:
    """The name of a subject in a node id."""
    return repr(subject) + END * bool(subject.unclaimed)


def outcome(found: Line, subject: Tested) -> Line:
    """The outcome of a test id that was not claimed, from what it would be if it were."""
    record = subject.record
    if found["outcome"] == "fail":
        return {**found, "outcome": "silent"}
    if record.excused and found["outcome"] != "error":
        return {"outcome": "refuses", "reason": f"in {record.excused} of {record.examples} examples: {record.excuse}"}
    if found["outcome"] in ("pass", "emulated"):
        return {"outcome": "holds"}
    failure = found.get("failure", {})
    why = found.get("reason") or f"{failure.get('type')}: {failure.get('message')}"
    return {"outcome": "unsupported", "reason": f"not claimed, and not decided: {why}"}
