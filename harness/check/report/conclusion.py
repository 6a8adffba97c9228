"""What is found about one Function: it is concluded once, and then written as text or as data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from autograd_conformance.harness.check.declaration.facts import Facts
from autograd_conformance.harness.check.report import script_runner
from autograd_conformance.harness.check.report.grouping import Group, Judged, adds_nothing, grouped, with_further
from autograd_conformance.harness.check.report.verdicts import (
    DECLINED,
    ERROR,
    LOST,
    ORDER,
    RAISED,
    UNKNOWN,
    UNVERIFIED,
    Verdict,
    judged,
)
from autograd_conformance.harness.outcomes import FAILS, HOLDS, UNDECIDED, Kind
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.reference.properties import PROPERTIES

# A fault that a process of its own does not show.
_ALONE = "a script that makes this call in a process of its own shows no fault"
_DOUBTFUL = "the number that was expected may come from earlier calls, too"
_EARLIER = (
    "the Function keeps something of earlier calls, for example a cache whose key lacks an argument, a class attribute "
    "or a global"
)
# The fields of a failure that are shown.
DETAILS = ("bound", "chosen", "hint", "right_with", "call", "values")


@dataclass(frozen=True)
class Fault:
    """A group of failures with one cause, and the file of its script; ``no_script`` says why there is none."""

    group: Group
    script: Path | None = None
    no_script: str = ""

    @property
    def details(self) -> dict[str, str]:
        """What is shown of the first failure, by the names of its fields."""
        failure, v = self.group.line["failure"], self.group.verdict
        found = {key: str(failure.get(key) or "") for key in DETAILS}
        # No bound is about NaN.
        found["bound"] *= failure.get("kind") != Kind.NAN
        # A hint is about what the failure was found to follow from.
        found["hint"] = found["hint"] or (PROPERTIES[v.follows].explains if v.follows else "")
        found["hint"] *= not v.follows or v.follows == failure.get("follows", v.follows)
        return {key: text for key, text in found.items() if text}


@dataclass(frozen=True)
class Conclusion:
    """What the results of a Function mean: its faults, and the ``notes`` on what could not be checked."""

    facts: Facts
    lines: Sequence[ndjson.Line]
    found: Sequence[tuple[ndjson.Line, Verdict | None]]
    faults: tuple[Fault, ...]
    notes: tuple[Judged, ...]

    @cached_property
    def held(self) -> int:
        """How many checks hold."""
        return sum(line["outcome"] in ("pass", "emulated") and v is None for line, v in self.found)

    @cached_property
    def edges(self) -> int:
        """How many checks fail for tensors without elements alone."""
        return sum(v is not None and v.edge for _, v in self.found)

    @cached_property
    def wrong(self) -> int:
        """How many other checks do not hold."""
        return sum(v is not None and v.fault and not v.edge for _, v in self.found)

    @cached_property
    def unverified(self) -> tuple[str, ...]:
        """The properties of which nothing shows that they hold."""
        return tuple(line["property"] for line, v in self.notes if v.word == UNVERIFIED)

    @property
    def is_wrong(self) -> bool:
        """Whether something is wrong with the Function that is no edge, and not only with a test of it."""
        words = {v.word for _, v in self.found if v is not None and v.fault and not v.edge}
        return bool(words - {*LOST, ERROR})

    def status(self, *, edges_fail: bool) -> int:
        """The exit status."""
        if self.facts.stale or self.is_wrong or (self.edges and edges_fail):
            return FAILS
        words = [v.word for _, v in self.found if v is not None]
        nothing = words == [UNKNOWN] * len(self.lines)
        undecided = nothing or not {*LOST, ERROR, UNVERIFIED, DECLINED}.isdisjoint(words) or self.facts.declined
        # A fault that only some properties show, and because of which others are judged more leniently or ask less.
        unshown = self.facts.coarse or (self.facts.emptied and not self.edges)
        return UNDECIDED if undecided or unshown else HOLDS


def concluded(facts: Facts, lines: Sequence[ndjson.Line], scripts: Path, implementation: str = "torch") -> Conclusion:
    """What the results of a Function mean.

    Standalone scripts are written to the folder ``scripts``, except those that show no fault when they are run.
    """
    found = judged(lines, compared=facts.compared, asked=facts.asked)
    faults = [(line, v) for line, v in found if v is not None and v.fault]
    notes = _worth_a_note([(line, v) for line, v in found if v is not None and not v.fault], faults)
    groups = grouped(list(with_further(faults)))
    return Conclusion(facts, lines, found, tuple(_with_scripts(groups, scripts, implementation)), tuple(notes))


def _worth_a_note(notes: Sequence[Judged], faults: Sequence[Judged]) -> list[Judged]:
    """What is said once of every test of a property, and what small values do not only add to a fault."""
    plain = {(line["property"], v.word) for line, v in notes if "variant" not in line}
    wrong = {ndjson.test_of(line) for line, _ in faults}

    def is_known(line: ndjson.Line, v: Verdict) -> bool:
        return "variant" in line and ((line["property"], v.word) in plain or adds_nothing(line, wrong))

    kept = [(line, v) for line, v in notes if not is_known(line, v)]
    return sorted(kept, key=lambda note: (note[1].word != UNVERIFIED, ORDER.index(note[0]["property"])))


def _with_scripts(groups: Sequence[Group], scripts: Path, implementation: str) -> Iterator[Fault]:
    """The faults, each with its script. What a process of its own does not show comes from earlier calls."""
    texts = {path_of(group.line, scripts): group.line["failure"].get("script", "") for group in groups}
    missing = script_runner.written({path: text for path, text in texts.items() if text})
    right = script_runner.right([path for path, why in missing.items() if not why], implementation)
    # Where one fault comes from earlier calls, so may what was expected of another call.
    history = any(path_of(group.line, scripts) in right and group.is_whole for group in groups)
    for group in groups:
        path, why = path_of(group.line, scripts), group.line["failure"].get("no_script", "")
        doubtful = history and group.verdict.word not in RAISED
        if not doubtful and path not in right:
            why = missing.get(path, "") or why
            yield Fault(group, path if texts[path] and not why else None, why)
            continue
        path.unlink(missing_ok=True)
        alone = {**group.line, "failure": {**group.line["failure"], "right_with": ""}}
        v = replace(group.verdict, guess=_EARLIER) if doubtful else group.verdict
        yield Fault(replace(group, line=alone, verdict=v), None, _ALONE if path in right else _DOUBTFUL)


def path_of(line: ndjson.Line, scripts: Path) -> Path:
    """The file of the standalone script of a failure."""
    which = [str(line["number"])] if "number" in line else []
    name = "-".join((line["function"], ndjson.test_of(line), *which))
    return scripts / (re.sub(r"[^\w.-]+", "-", name) + ".py")
