"""Every exhibit is caught by each of the properties that it names, and the right version of it is not."""

from __future__ import annotations

from functools import cache
from importlib import import_module

import pytest
from hypothesis import settings

pytest.importorskip("torch")

from autograd_conformance.harness.outcomes import Broken, Kind, named
from autograd_conformance.harness.running.results import json_of
from autograd_conformance.harness.scripts.definitions import Sources
from autograd_conformance.harness.scripts.script import script_for
from autograd_conformance.harness.testing.profiles import PROFILES
from autograd_conformance.implementations.torch import TorchImplementation
from autograd_conformance.reference.functions import EXHIBITS, FUNCTIONS
from autograd_conformance.reference.functions.exhibit import Exhibit
from autograd_conformance.reference.properties import PROPERTIES
from autograd_conformance.selftests.faults.planting import Case
from autograd_conformance.selftests.faults.properties import checks
from autograd_conformance.selftests.support import scripts
from autograd_conformance.strategies.calls import parse

pytestmark = pytest.mark.skipif(
    settings.default.max_examples < PROFILES["gate"].examples, reason="skip: needs the examples of the profile gate"
)

TORCH = TorchImplementation()
PACKAGE = "autograd_conformance.reference.functions"

# What a message names that is about no single argument or output.
SUMMARIES = (
    "second derivative", "slope of the drawn direction", "which tensors get a gradient",
    "gradient as backward returned it", "<cotangent, JVP(tangent)>", "dirty inputs",
)  # fmt: skip
CLAIMED = [pytest.param(e, p, id=f"{name}-{p}") for name, e in EXHIBITS.items() for p in e.caught_by]


def raised_by_any(function, property_id):
    """What the tests of a property raise on a Function, None if all of them pass."""
    found = [
        checks.raised_by(property_id, claim.variant, Case(function, TORCH))
        for claim, _ in checks.tests_of(property_id, function, TORCH, "cpu")
    ]
    assert found, f"no test of {property_id} applies to {function.name}"
    return next((raised for raised in found if raised is not None), None)


@cache
def caught(exhibit, property_id):
    """The test that catches an exhibit, and what it raises; of the plain tests first."""
    found = checks.tests_of(property_id, exhibit.function, TORCH, "cpu")
    for claim, _ in sorted(found, key=lambda pair: pair[0].variant != ""):
        raised = checks.caught(property_id, claim.variant, Case(exhibit.function, TORCH))
        if raised is not None:
            return named(property_id, claim.variant), raised
    return "", None


@pytest.mark.parametrize(("exhibit", "property_id"), CLAIMED)
def test_the_exhibit_is_caught(exhibit, property_id):
    _, raised = caught(exhibit, property_id)
    assert isinstance(raised, Broken), f"not caught: {exhibit.fault}; raised: {raised!r}"
    message = str(raised)
    assert message.startswith(f"{property_id} must hold: ")
    assert f"{exhibit.function.name} on torch" in message
    assert parse(raised.finding.call).function == exhibit.function.name
    named = [f"({part.name})" for part in (*exhibit.function.arguments, *exhibit.function.outputs)]
    known = any(words in raised.finding.what for words in (*named, *SUMMARIES))
    assert known or raised.finding.kind is Kind.RAISED, message


# The right version takes other arguments than the exhibit, or refuses second derivatives, which no exhibit does.
UNLIKE = (
    "MulConstantUnconjugated", "MulConstantTensor", "LLTMUndeclared", "SaveForBackwardUndeclared",
    "FusedConvBNUndeclared", "ScipyConv2dUndeclared",
)  # fmt: skip

# Lines of a script without those of the Function: for a plain value or gradient, and for any other finding.
PLAIN, ANY = 25, 50


@pytest.mark.parametrize(("exhibit", "property_id"), CLAIMED)
def test_the_script_shows_the_exhibit_and_accepts_the_documented_function(exhibit, property_id):
    function = exhibit.function
    test, raised = caught(exhibit, property_id)
    failure = json_of(raised.finding.as_json())
    text, reason = script_for(TORCH, function, test, failure)
    assert text is not None, reason
    assert "autograd_conformance" not in text
    assert scripts.status(text) == scripts.shown_by(failure), text
    written = Sources(function.body, TORCH.script).definitions
    own = len("\n".join(written).splitlines())
    limit = PLAIN if property_id in ("VJP-REF", "FWD-VALUE", "VJP-FD") else ANY
    assert len(text.splitlines()) - own <= limit
    right = VARIED[function.name]
    if right is not None and function.name not in UNLIKE:
        text, reason = script_for(TORCH, right, test, failure)
        assert text is not None, reason
        assert scripts.status(text) == 0, text


# What an exhibit varies is the documented Function of the same arguments and document, where there is one.
VARIED = {
    name: next((f for f in FUNCTIONS.values() if f.forward is e.function.forward), None) for name, e in EXHIBITS.items()
}


@pytest.mark.parametrize(
    ("documented", "property_id"),
    [
        pytest.param(VARIED[name], p, id=f"{VARIED[name].name}-{p}-{name}")
        for name, e in EXHIBITS.items()
        if VARIED[name]
        for p in e.caught_by
        if any(claim.property_id == p and claim.where(VARIED[name]) for claim, _ in checks.tests())
    ],
)
def test_the_documented_function_passes(documented, property_id):
    assert raised_by_any(documented, property_id) is None


def test_exhibits_name_known_properties():
    assert all(set(e.caught_by) <= set(PROPERTIES) and e.caught_by and e.fault for e in EXHIBITS.values())


def test_no_exhibit_hides_another():
    modules = [import_module(f"{PACKAGE}.{name}") for name in ("exhibits_formulas", "exhibits_indexing")]
    # One module may import an exhibit of the other.
    found = {id(e): e for m in modules for e in vars(m).values() if isinstance(e, Exhibit)}
    assert sorted(e.function.name for e in found.values()) == sorted(EXHIBITS)
