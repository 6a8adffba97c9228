"""What `check` found, as data for other programs; check.schema.json describes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from autograd_conformance.harness.check.report import places
from autograd_conformance.harness.check.report.conclusion import Conclusion, Fault
from autograd_conformance.harness.check.report.verdicts import DECLINED, REFUSED, STALE, Verdict
from autograd_conformance.harness.outcomes import in_words
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.reference.properties import PROPERTIES

ERROR, WARNING, NOTE = "error", "warning", "note"


def function(name: str, target: str, status: int, known: Conclusion, code: places.Lines) -> dict[str, Any]:
    """What was found about one Function."""
    findings = [
        *(_fault(fault, code) for fault in known.faults),
        *(_stale(sentence, code) for sentence in known.facts.stale),
        *_notes(known, code),
    ]
    checks = {"hold": known.held, "fail": known.wrong, "edges": known.edges, "undecided": len(known.notes)}
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


def _fault(fault: Fault, code: places.Lines) -> dict[str, Any]:
    group = fault.group
    line, failure = group.line, group.line["failure"]
    message = in_words(failure) if "what" in failure else f"{failure.get('type', '')}: {failure.get('message', '')}"
    return _finding(
        WARNING if group.verdict.edge else ERROR, group.verdict, ndjson.test_of(line), message, code,
        about=failure,
        **fault.details,
        script=fault.script.as_posix() if fault.script else "",
        same_fault=[test for tests in group.other_tests().values() for test in tests],
    )  # fmt: skip


def _stale(sentence: str, code: places.Lines) -> dict[str, Any]:
    return _finding(ERROR, Verdict(STALE), "", sentence, {name: code[name] for name in code if name == "declaration"})


def _notes(known: Conclusion, code: places.Lines) -> Iterator[dict[str, Any]]:
    for line, v in known.notes:
        reason = line.get("reason") or line.get("excuse", "")
        level = NOTE if v.word == REFUSED else WARNING
        yield _finding(level, v, ndjson.test_of(line), reason, code)
    for each in known.facts.declined:
        message = f"forward refuses {', '.join(each.shown)}: {each.why}"
        yield _finding(WARNING, Verdict(DECLINED), "", message, code, about={"what": "output 0"})


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
