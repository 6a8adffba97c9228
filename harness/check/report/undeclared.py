"""The words for a Function that nobody has declared: what is wrong with it may be meant."""

from __future__ import annotations

from dataclasses import replace

from autograd_conformance.harness.check.declaration import intentions
from autograd_conformance.harness.check.report.conclusion import Conclusion
from autograd_conformance.harness.check.report.grouping import Group
from autograd_conformance.harness.check.report.verdicts import DIFFERS, WRONG
from autograd_conformance.harness.reports import ndjson

# The property that compares with finite differences, and those whose failure follows from its.
_DERIVATIVE = "VJP-FD"
_OF_SLOPES = (_DERIVATIVE, "DBL-CORRECT")


def worded(known: Conclusion, name: str, *, everywhere: bool = True) -> Conclusion:
    """The conclusion, with advice that names the table of pyproject.toml, where the Function has this name.

    ``everywhere`` says whether the derivative was wrong in each call with which it was compared.
    """
    faults = tuple(replace(fault, group=_worded(fault.group, name, everywhere)) for fault in known.faults)
    return replace(known, faults=faults)


def _worded(group: Group, name: str, everywhere: bool) -> Group:
    v = group.verdict
    guess, advice = (_undeclared(name, text) for text in (v.guess, v.advice))
    if not (everywhere and _differs(group)):
        return replace(group, verdict=replace(v, guess=guess, advice=advice))
    line = intentions.line_for(name, "surrogate")
    said = (
        "it is another gradient in every call that was checked: a fault, unless it is meant; if it is, write into "
        f"[{intentions.TABLE}] of {intentions.FILE}: {line}"
    )
    return replace(group, verdict=replace(v, word=DIFFERS, guess=guess.partition("; if that is")[0], advice=said))


def _differs(group: Group) -> bool:
    """Whether backward is another linear map than the derivative, for each argument."""
    compared = ndjson.test_of(group.line) == _DERIVATIVE and group.verdict.word == WRONG
    alone = all(line["property"] in _OF_SLOPES for line in group.others)
    return compared and alone and bool(group.line["failure"].get("everywhere"))


def _undeclared(name: str, text: str) -> str:
    """What to do where a declaration would say what is meant."""
    for word in intentions.WORDS:
        line = f"write into [{intentions.TABLE}] of {intentions.FILE}: {intentions.line_for(name, word)}"
        text = text.replace(f"declare {word}=True", line)
    # The table has no functions.
    return text.partition(", or soft=")[0]
