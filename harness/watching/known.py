"""Faults that are known: a file, which is reviewed like code, names them, so that only new ones fail."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.reference.properties import PROPERTIES

# The first line of the file.
_HEAD = "# autograd-conformance known faults: 1"
_SHAPE = "must be a Function and a property, as in: mypackage.ops:Scale  VJP-FD"

# A Function and a property that it does not keep.
Fault = tuple[str, str]


def of_document(path: Path) -> str:
    """The text of the file with all faults of a report of watch. Raises UsageProblem if it is none."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        found = {fault for function in document["functions"] for fault in _faults(function)}
        strange = [name for name, _ in found if ":" not in name]
    except (OSError, ValueError, LookupError, TypeError) as problem:
        raise UsageProblem(f"{path} must be a report of watch (--report FILE.json): {problem}") from None
    if strange:
        raise UsageProblem(f"{path} must be a report of watch (--report FILE.json), got one of check")
    return "".join(f"{line}\n" for line in (_HEAD, *(f"{name}  {test}" for name, test in sorted(found))))


def _faults(function: Mapping[str, Any]) -> Collection[Fault]:
    errors = [finding for finding in function["findings"] if finding["level"] == "error"]
    tests = [test for each in errors for test in (each["test"], *each.get("same_fault", ()))]
    return {(function["name"], test.partition("/")[0]) for test in tests}


def read(path: Path) -> frozenset[Fault]:
    """The faults of a file. Raises UsageProblem for one that cannot be read, with the line and what it must be."""
    try:
        head, *lines = path.read_text(encoding="utf-8").splitlines() or [""]
    except OSError as problem:
        raise UsageProblem(f"{path} cannot be read: {problem.strerror}; write it with accept") from None
    except ValueError as problem:
        raise UsageProblem(f"{path} cannot be read: {problem}") from None
    if head != _HEAD:
        raise UsageProblem(f"{path} must begin with {_HEAD!r}, got {head[:60]!r}; write it with: accept FOUND.json")
    rows = {number: line.split() for number, line in enumerate(lines, 2) if line.strip() and line[0] != "#"}
    for number, row in rows.items():
        if len(row) != 2:
            raise UsageProblem(f"{path}:{number} {_SHAPE}; got {' '.join(row)}")
        if row[1] not in PROPERTIES:
            raise UsageProblem(f"{path}:{number}: unknown property {row[1]!r}; autograd-conformance list properties")
    return frozenset((name, test) for name, test in rows.values())
