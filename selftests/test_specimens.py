"""`check` finds in each specimen what is wrong with it, and nothing else. ``--seed N`` draws other examples."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

import pytest

pytest.importorskip("torch")

from autograd_conformance.harness.check.printing import headlines
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.selftests import specimens
from autograd_conformance.selftests.checking import DRAWS, faults_in, lines_of
from autograd_conformance.suites.declared import Checked

_MODULES = {
    module.name: import_module(f"{specimens.__name__}.{module.name}") for module in iter_modules(specimens.__path__)
}
ALL = {
    f"{name}-{specimen.name}": specimen
    for name, module in _MODULES.items()
    for specimen in getattr(module, "SPECIMENS", ())
}
RIGHT = {name: specimen for name, specimen in ALL.items() if not specimen.heads}
WRONG = {name: specimen for name, specimen in ALL.items() if specimen.heads}


def _lines(specimen, profile, seed):
    checked = Checked(specimen.declaration, profile=profile, seed=seed, shrink=specimen.shrink)
    return list(lines_of(checked, *specimen.tests))


def _said(line, verdict):
    """What is said of a finding."""
    words = (line["failure"].get(key, "") for key in ("what", "got", "hint", "likely", "call"))
    return "\n".join((*words, verdict.word, verdict.guess))


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_found(name):
    specimen = WRONG[name]
    faults = list(faults_in(_lines(specimen, specimen.profile, specimen.seed)))
    heads = headlines(faults)
    assert tuple(ndjson.test_of(line) for line in heads) == specimen.heads
    said = "\n".join(_said(line, verdict) for line, verdict in faults if line in heads)
    for words in specimen.says:
        assert words in said


@pytest.mark.parametrize(("profile", "seed"), DRAWS)
@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_is_not_accused(name, profile, seed):
    specimen = RIGHT[name]
    lines = _lines(specimen, profile, seed)
    assert list(faults_in(lines)) == []
    if specimen.decided:
        assert {line["outcome"] for line in lines} == {"pass"}
