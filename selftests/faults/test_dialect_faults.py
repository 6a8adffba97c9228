"""Every clause of a dialect is seen to fail on a fault planted into its implementation, where that is installed."""

from __future__ import annotations

from importlib import import_module

import pytest
from hypothesis import settings

from autograd_conformance import implementations
from autograd_conformance.harness.outcomes import Broken
from autograd_conformance.harness.testing.profiles import PROFILES
from autograd_conformance.implementations.protocol import Unavailable
from autograd_conformance.reference.clauses import CLAUSES, DIALECTS
from autograd_conformance.selftests.faults.planting import checks_in, raised_by

pytestmark = pytest.mark.skipif(
    settings.default.max_examples < PROFILES["gate"].examples, reason="skip: needs the examples of the profile gate"
)


# Dialects that have not the name of their implementation.
NAMES = {"cpp": "torch-cpp"}


def loaded(name):
    """The implementation with that dialect, None where it is not installed."""
    try:
        found = implementations.load(NAMES.get(name, name))
        found.prepare()
    except Unavailable:
        return None
    return found


INSTALLED = {name: found for name in DIALECTS if (found := loaded(name)) is not None}
FAULTS = [
    (name, fault)
    for name in INSTALLED
    for fault in import_module(f"autograd_conformance.selftests.faults.dialects.{name}").FAULTS
]
TESTS = [
    (name, *pair)
    for name in INSTALLED
    for pair in checks_in(import_module(f"autograd_conformance.suites.dialects.{name}"))
]


@pytest.mark.parametrize(("name", "fault"), FAULTS, ids=str)
def test_the_fault_is_caught(name, fault):
    implementation = INSTALLED[name]
    mine = [(claim, test) for of, claim, test in TESTS if of == name and claim.clause.id == fault.id]
    with fault.install():
        raised = [raised_by(claim, test, implementation=implementation) for claim, test in mine]
    found = [each for each in raised if isinstance(each, Broken)]
    assert found, f"not caught: {fault.words or CLAUSES[fault.id].fault}; raised: {raised!r}"
    assert [words for words in fault.says if words not in str(found[0])] == [], str(found[0])


@pytest.mark.parametrize(("name", "claim", "test"), TESTS, ids=lambda value: getattr(value, "__name__", ""))
def test_the_implementation_passes_but_for_what_is_listed(name, claim, test):
    listed = [d for d in INSTALLED[name].deviations if d.names("/".join(filter(None, (claim.id, claim.variant))))]
    raised = raised_by(claim, test, implementation=INSTALLED[name])
    assert isinstance(raised, Broken) if listed else raised is None, raised


@pytest.mark.parametrize("name", INSTALLED)
def test_every_clause_has_a_planted_fault_or_says_why_not(name):
    planted = {fault.id for of, fault in FAULTS if of == name}
    assert [c.id for c in DIALECTS[name].values() if (c.id in planted) == bool(c.unplanted)] == []
