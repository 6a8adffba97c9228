"""Reports that no run wrote, for what reads them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from autograd_conformance.harness.outcomes import NOT_RUN
from autograd_conformance.harness.reports import ndjson

IDS = ("VJP-REF[Exp-cpu]", "VJP-REF[Sort-cpu]", "NIG-01[cpu]", "FN-12/keyword-only[cpu]")
ALL_PASS = dict.fromkeys(IDS, "pass")

ROOMS = ("suites", "strategies", "reference", "harness", "implementations", "deviations")

HEADER = {
    "kind": "header",
    "schema": ndjson.SCHEMA,
    "suite": {"name": "autograd-conformance", "version": "0.1.0", "sources": dict.fromkeys(ROOMS, "0" * 16)},
    "implementation": {"name": "mine", "named": "mine.py", "version": "1.2", "location": "/x", "build": ""},
    "run": {"id": None, "host": "here"},
    "claims": ["double_backward", "float32", "float64"],
    "devices": ["cpu"],
    "profile": "gate",
    "examples": 25,
    "seed": 0,
    "replay": None,
    "corpus": None,
    "counterexamples": None,
    "functions": ["Exp", "Sort"],
    "properties": ["VJP-REF"],
    "clauses": ["NIG-01"],
    "dtype": None,
    "options": {"functions": None, "properties": None, "device": None, "tests": None, "pytest": None},
    "shard": None,
    "balance": None,
    "python": "3.11.7",
    "platform": "p",
    "packages": {"hypothesis": "6", "numpy": "2", "pytest": "9"},
    "started": "2026-01-01T00:00:00+00:00",
}
FINDING = {"what": "gradient of argument 0 (x)", "got": "1", "expected": "2", "call": "Call('Exp')", "kind": "wrong"}


def result(id: str, outcome: str = "pass", **more: Any) -> dict[str, Any]:
    """A result line; the id says what it is about."""
    claim, variant, place = re.fullmatch(r"([A-Z0-9-]+)(?:/([^\[]+))?\[(.*)\]", id, re.DOTALL).groups()
    function, _, device = place.rpartition("-")
    about = {"property": claim, "function": function} if function else {"clause": claim, "level": "documented"}
    shown = {"failure": FINDING} if outcome == "fail" else {"reason": "so"} if outcome != "pass" else {}
    figures = {"examples": 25, "checks": 25, "inconclusive": 0, "refused": 0, "worst": 0.1, "seconds": 0.5}
    line = {"kind": "result", "id": id, **about, **({"variant": variant} if variant else {}), "device": device}
    figures = {"dtypes": ["float64", "float32"], **figures} if outcome not in NOT_RUN else figures
    return {**line, "outcome": outcome, **shown, **figures, **more}


def lines(results: Sequence[dict[str, Any]], *, all_ids: Sequence[str] | None = None, **header: Any) -> list[Any]:
    """A whole report of these results; ``all_ids`` are those of all shards."""
    found = [{**HEADER, "expected": len(results), **header}, *results]
    whole = ndjson.census(all_ids if all_ids is not None else [line["id"] for line in results])
    return [*found, ndjson.footer(found, whole, 1.0)]


def write(path: Path, given: Sequence[dict[str, Any]]) -> Path:
    """The lines, in a file."""
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in given), encoding="utf-8")
    return path
