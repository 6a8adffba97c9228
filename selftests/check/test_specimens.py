"""`check` finds in each specimen what is wrong with it, and nothing else. ``--seed N`` draws other examples."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

import pytest

pytest.importorskip("torch")

from autograd_conformance.harness.check.report.grouping import headlines
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.reference.properties import PROPERTIES
from autograd_conformance.selftests import tiers
from autograd_conformance.selftests.check import specimens
from autograd_conformance.selftests.check.checking import DRAWS, RESULT, SCHEMA, faults_in, lines_of
from autograd_conformance.suites.declared import Checked

_MODULES = [
    import_module(f"{specimens.__name__}.{module.name}")
    for module in iter_modules(specimens.__path__)
    if module.name != "functions"
]
EACH = [
    (f"{module.__name__.rpartition('.')[2]}-{specimen.name}", specimen)
    for module in _MODULES
    for specimen in module.SPECIMENS
]
ALL = dict(EACH)
RIGHT = {name: specimen for name, specimen in ALL.items() if not specimen.heads}
WRONG = {name: specimen for name, specimen in ALL.items() if specimen.heads}


def _lines(specimen, profile, seed):
    checked = Checked(specimen.declaration, profile=profile, seed=seed, shrink=specimen.shrink)
    lines = list(lines_of(checked, *specimen.tests) if specimen.tests else checked.lines())
    for line in lines:
        RESULT.validate(line)
    return lines


def _said(line, verdict):
    """What is said of a finding."""
    words = (line["failure"].get(key, "") for key in ("what", "got", "hint", "likely", "right_with", "call"))
    explains = PROPERTIES[verdict.follows].explains if verdict.follows else ""
    return "\n".join((*words, explains, verdict.word, verdict.guess))


def test_each_has_a_name_of_its_own():
    assert len(ALL) == len(EACH)


def test_what_is_exact_is_something_that_findings_have():
    known = {*SCHEMA["$defs"]["finding"]["properties"], "guess", "follows"}
    assert {name for specimen in WRONG.values() for name in specimen.exactly} <= known


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_found(name):
    specimen = WRONG[name]
    faults = list(faults_in(_lines(specimen, specimen.profile, specimen.seed)))
    heads = headlines(faults)
    assert tuple(ndjson.test_of(line) for line in heads) == specimen.heads
    assert not specimen.alone or [(line, "") for line in heads] == [(line, v.follows) for line, v in faults]
    found = {ndjson.test_of(line): verdict.word for line, verdict in faults}
    words = specimen.word.split(", ")
    if len(words) > 1:
        assert [found[test] for test in specimen.heads] == words
    assert not specimen.word or set(found.values()) == set(words)
    assert set(specimen.met_by) <= {ndjson.test_of(line) for line, _ in faults}
    said = "\n".join(_said(line, verdict) for line, verdict in faults if line in heads)
    assert [words for words in specimen.says if words not in said] == []
    assert [words for words in specimen.unsaid if any(words in _said(*fault) for fault in faults)] == []
    for line, verdict in faults:
        has = {**line["failure"], "guess": verdict.guess, "follows": verdict.follows}
        assert {name: has.get(name) or None for name in specimen.exactly} == dict(specimen.exactly)


@pytest.mark.parametrize(("profile", "seed"), DRAWS)
@pytest.mark.parametrize("name", [name for name, specimen in RIGHT.items() if specimen.tests])
def test_what_is_right_is_not_accused(name, profile, seed):
    specimen = RIGHT[name]
    lines = _lines(specimen, profile, seed)
    assert list(faults_in(lines)) == []
    assert {line["outcome"] for line in lines} <= ({"pass"} if specimen.decided else {"pass", "vacuous"})
    assert lines
    if specimen.taken:
        assert {line["property"] for line in lines} == {test.partition("/")[0] for test in specimen.tests}
        assert not any(line.get("excused") for line in lines)


@pytest.mark.parametrize("name", [name for name, specimen in RIGHT.items() if not specimen.tests])
def test_no_test_accuses_what_is_right(name, request):
    """`benchmarks/accused.py` checks with more examples."""
    profile = RIGHT[name].profile if tiers.NIGHT else "quick"
    lines = _lines(RIGHT[name], profile, request.config.option.seed or 0)
    assert list(faults_in(lines)) == []
    assert sum(line["outcome"] == "pass" for line in lines) >= RIGHT[name].passing
