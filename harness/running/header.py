"""The first line of a report: the implementation, the options and the machine."""

from __future__ import annotations

import platform
from dataclasses import asdict

from autograd_conformance.harness.reports.ndjson import SCHEMA, Line, now, version_of
from autograd_conformance.harness.running.selection import Selection

_PACKAGES = ("hypothesis", "numpy", "pytest")


def header(selection: Selection, expected: int | None) -> Line:
    """The header; ``expected`` is the number of test ids, None if they were not collected."""
    found = selection.implementation.environment()
    return {
        "kind": "header",
        "schema": SCHEMA,
        "suite": {"name": "autograd-conformance", "version": version_of("autograd-conformance")},
        "implementation": {
            "name": selection.implementation.name,
            "named": selection.named,
            "version": found.version,
            "location": found.location,
            **({"fork": asdict(selection.fork)} if selection.fork else {}),
        },
        "devices": list(selection.all_devices),
        "profile": selection.profile.name,
        "examples": selection.examples,
        "seed": selection.seed,
        "replay": selection.replay,
        "corpus": selection.corpus,
        "functions": [function.name for function in selection.functions],
        "properties": list(selection.properties),
        "clauses": list(selection.clauses),
        "dtype": selection.dtype,
        "options": selection.options,
        "shard": str(selection.shard) if selection.shard else None,
        "balance": selection.shard.balance if selection.shard else None,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: version_of(name) for name in _PACKAGES},
        "started": now(),
        "expected": expected,
    }


def versions(selection: Selection) -> dict[str, str]:
    """The versions that must be equal in all processes of a run."""
    own = {selection.implementation.name: str(selection.implementation.environment().version)}
    return {**{name: version_of(name) for name in ("autograd-conformance", *_PACKAGES)}, **own}
