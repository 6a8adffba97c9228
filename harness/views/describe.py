"""Result lines in words: what must hold, what happened, and the command that runs the test again."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Sequence

from autograd_conformance.harness.outcomes import BROKEN, DEATH, FAILING, HANG, UNCLAIMED, in_words
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.harness.reports.ndjson import Line
from autograd_conformance.harness.reports.reading import place
from autograd_conformance.implementations.deviations import Grade
from autograd_conformance.reference.clauses import CLAUSES
from autograd_conformance.reference.properties import PROPERTIES


def rerun(line: Line, header: Line, suite: str | None = None) -> str:
    """The command that runs a test id again with the same examples; ``header`` is that of its report."""
    # A test that ends its process needs a process of its own.
    workers = "1" if line.get("failure", {}).get("type") in (HANG, DEATH) else "0"
    words = ["autograd-conformance", "run", header["implementation"]["named"], "-n", workers]
    words += ["--suite", suite] if suite else []
    words += ["--properties", ndjson.claim_of(line)]
    words += ["--functions", line["function"]] if "function" in line else []
    words += packages(header)
    words += ["--device", line["device"], "--profile", header["profile"], "--seed", str(header["seed"])]
    words += ["--replay", header["replay"]] if header.get("replay") else []
    words += ["--corpus", header["corpus"]] if header.get("corpus") else []
    words += ["--dtype", header["dtype"]] if header["dtype"] else []
    return shlex.join(words)


def packages(header: Line) -> list[str]:
    """The options that name the packages which a run imported."""
    package = header["implementation"].get("package")
    words = ["--package", package] if package else []
    return [*words, *(word for name in header["implementation"].get("added", ()) for word in ("--import", name))]


def sentence(claim: str) -> str:
    """What a property or clause says; for a clause also where it is documented."""
    if claim in CLAUSES:
        clause = CLAUSES[claim]
        return f"{clause.sentence} ({clause.level}; {clause.document})"
    return PROPERTIES[claim].sentence if claim in PROPERTIES else ""


def must_hold(line: Line) -> str:
    """The sentence that a failing test id breaks, so that nobody takes it for what happened; "" if there is none."""
    broken = sentence(ndjson.claim_of(line))
    return f"must hold: {broken}" if broken else ""


def message(line: Line, results: Sequence[Line] = ()) -> str:
    """Why a test id has its outcome: the listed reason, or the actual and the expected result.

    ``results`` are those of the run, if it has ended.
    """
    failure = line.get("failure", {})
    if line["outcome"] == "fixed":
        return f"passes, but is listed as a deviation; {_if_gone(line, results)}: {line['reason']}"
    if "reason" in line:
        return str(line["reason"])
    if "what" in failure:
        return in_words(failure)
    return f"{failure['type']}: {failure['message']}" if failure else ""


# The most failing test ids that are named beside a listed deviation that is gone.
_BESIDE = 5


def _if_gone(line: Line, results: Sequence[Line]) -> str:
    """What to do about a listed deviation that passes: its fault may show elsewhere in its group now."""
    group = _group(line)
    broken = [other for other in results if other["outcome"] in BROKEN and _group(other) == group]
    if not broken:
        return "if nothing else fails, remove it from the list"
    nearest = sorted(broken, key=lambda other: (ndjson.claim_of(other) != ndjson.claim_of(line), place(other)))
    more = f" and {len(broken) - _BESIDE} more" if len(broken) > _BESIDE else ""
    named = ", ".join(other["id"] for other in nearest[:_BESIDE])
    return (
        f"others of {group} fail, and may be the same fault in another place, so look at them first: {named}{more}; "
        "if this still passes when they hold, remove it from the list"
    )


def _group(line: Line) -> str:
    claim = ndjson.claim_of(line)
    return CLAUSES[claim].group if claim in CLAUSES else claim.partition("-")[0]


def causes(known: Iterable[Line]) -> dict[str, dict[str, list[str]]]:
    """The causes of listed deviations by their grade, the worst first, each with the test ids that show it."""
    found: dict[str, dict[str, list[str]]] = {grade.words: {} for grade in Grade}
    for line in sorted(known, key=place):
        # A report of an earlier version has no grades.
        found.setdefault(line.get("grade", "not graded"), {}).setdefault(line["reason"], []).append(line["id"])
    return {grade: of_grade for grade, of_grade in found.items() if of_grade}


# The outcomes that are counted apart from the test ids that were checked.
_APART = ("unsupported", "skip", "known")
# Outcomes as they are counted.
WORDS = {"skip": "skipped", "fail": "failed", "error": "errors"}


def counts(found: Counter[str]) -> str:
    """How many of the checked test ids hold, and the outcomes of the others."""
    total = sum(found.values()) - sum(found[name] for name in (*_APART, *UNCLAIMED))
    held = found["pass"] + found["emulated"]
    others = [name for name in (*sorted(FAILING), "emulated", *_APART) if found[name]]
    listed = ", ".join(f"{found[name]} {WORDS.get(name, name)}" for name in others)
    return f"{held} of {total} test ids hold" + (f"; {listed}" if listed else "") + unclaimed(found)


# What test ids do that need what is not claimed, in words.
_DO = {"refuses": "refuse", "holds": "hold", "silent": "are silently wrong", "dies": "die"}


def unclaimed(found: Counter[str]) -> str:
    """What test ids do that need what is not claimed, as the end of a sentence; empty if there are none."""
    listed = ", ".join(f"{found[name]} {words}" for name, words in _DO.items() if found[name])
    return f"; not claimed: {listed}" if listed else ""
