"""A run as a badge: the JSON that shields.io's endpoint badge reads."""

from __future__ import annotations

import json

from autograd_conformance.harness import runs
from autograd_conformance.harness.runs import Run

_COLORS = {"holds": "brightgreen", "falls short": "red", runs.UNFINISHED: "lightgrey", runs.SPOILT: "lightgrey"}


def text(run: Run) -> str:
    """The badge: the implementation, and how many test ids hold or fall short."""
    told = {"holds": runs.told(run.counts).partition(";")[0], "falls short": f"{len(run.shortfalls)} fall short"}
    badge = {
        "schemaVersion": 1,
        "label": f"autograd conformance of {run.name}",
        "message": f"{run.version}: {told.get(run.verdict, run.verdict)}",
        "color": _COLORS[run.verdict],
    }
    return json.dumps(badge, ensure_ascii=False) + "\n"
