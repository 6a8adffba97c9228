"""What `check` found, as data for other programs; check.schema.json describes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from autograd_conformance.harness.check.declaration.facts import Facts
from autograd_conformance.harness.check.report import places, printing
from autograd_conformance.harness.check.report.grouping import Group, Judged, grouped, with_further
from autograd_conformance.harness.check.report.verdicts import DECLINED, REFUSED, STALE, Verdict, judged
from autograd_conformance.harness.outcomes import in_words
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.reference.properties import PROPERTIES

ERROR, WARNING, NOTE = "error", "warning", "note"

# The fields of a failure that a finding has, by their names there.
_DETAILS = {"bound": "bound", "hint": "hint", "right_with": "right_with", "call": "call", "values": "values"}


def function(
    name: str, target: str, status: int, facts: Facts, lines: Sequence[ndjson.Line], code: places.Lines, scripts: Path
) -> dict[str, Any]:  # fmt: skip
    """What was found about one Function. Its scripts are already in the folder ``scripts``."""
    found = judged(lines, compared=facts.compared, asked=facts.asked)
    faults = [(line, v) for line, v in found if v is not None and v.fault]
    notes = printing.worth_a_note([(line, v) for line, v in found if v is not None and not v.fault], faults)
    findings = [
        *(_fault(group, code, scripts) for group in grouped(list(with_further(faults)))),
        *(_stale(sentence, code) for sentence in facts.stale),
        *_notes(notes, facts, code),
    ]
    held = sum(line["outcome"] in ("pass", "emulated") and v is None for line, v in found)
    edges = sum(v.edge for _, v in faults)
    checks = {"hold": held, "fail": len(faults) - edges, "edges": edges, "undecided": len(notes)}
    return {"name": name, "target": target, "status": status, "checks": checks, "findings": findings}


def _finding(level: str, v: Verdict, test: str, message: str, code: places.Lines, **more: Any) -> dict[str, Any]:
    name = (v.follows or test).partition("/")[0]
    about = more.pop("about", {})
    place = places.place_of(name, about, code)
    found = {
        "level": level,
        "verdict": v.word,
        "property": name,
        "test": test,
        "sentence": PROPERTIES[name].sentence if name in PROPERTIES else "",
        "message": message,
        "location": None if place is None else dict(zip(("of", "file", "line"), place, strict=True)),
        "advice": v.advice,
        "guess": v.guess,
        **more,
    }
    return {key: value for key, value in found.items() if key == "location" or value not in ("", [])}


def _fault(group: Group, code: places.Lines, scripts: Path) -> dict[str, Any]:
    line, failure = group.line, group.line["failure"]
    message = in_words(failure) if "what" in failure else f"{failure.get('type', '')}: {failure.get('message', '')}"
    path = printing.script_path(line, scripts)
    return _finding(
        WARNING if group.verdict.edge else ERROR, group.verdict, ndjson.test_of(line), message, code,
        about=failure,
        **{name: str(failure.get(key) or "") for key, name in _DETAILS.items()},
        script=path.as_posix() if path.exists() else "",
        same_fault=[test for tests in group.other_tests().values() for test in tests],
    )  # fmt: skip


def _stale(sentence: str, code: places.Lines) -> dict[str, Any]:
    return _finding(ERROR, Verdict(STALE), "", sentence, {name: code[name] for name in code if name == "declaration"})


def _notes(notes: Sequence[Judged], facts: Facts, code: places.Lines) -> Iterator[dict[str, Any]]:
    for line, v in notes:
        reason = line.get("reason") or line.get("excuse", "")
        level = NOTE if v.word == REFUSED else WARNING
        yield _finding(level, v, ndjson.test_of(line), reason, code)
    for each in facts.declined:
        message = f"forward refuses {', '.join(each.shown)}: {each.why}"
        yield _finding(WARNING, Verdict(DECLINED), "", message, code, about={"what": "output"})


def document(
    status: int, implementation: str, functions: Sequence[Mapping[str, Any]], problems: Sequence[Mapping[str, str]]
) -> dict[str, Any]:  # fmt: skip
    """All that a command found. ``problems`` are the targets or Functions that could not be checked."""
    return {
        "format": 1,
        "version": ndjson.version_of("autograd-conformance"),
        "implementation": implementation,
        "status": status,
        "functions": list(functions),
        "problems": list(problems),
    }
