"""A run as a badge: the JSON that shields.io's endpoint badge reads."""

from __future__ import annotations

import json

from autograd_conformance.harness.reports import reading
from autograd_conformance.harness.reports.reading import Report
from autograd_conformance.harness.views import describe

_COLORS = {"holds": "brightgreen", "fails": "red", reading.UNFINISHED: "lightgrey", reading.DAMAGED: "lightgrey"}


def text(report: Report) -> str:
    """The badge: the implementation, and how many test ids hold or fail."""
    messages = {"holds": describe.counts(report.counts).partition(";")[0], "fails": f"{len(report.failures)} fail"}
    badge = {
        "schemaVersion": 1,
        "label": f"autograd conformance of {report.name}",
        "message": f"{report.version}: {messages.get(report.verdict, report.verdict)}",
        "color": _COLORS[report.verdict],
    }
    return json.dumps(badge, ensure_ascii=False) + "\n"
