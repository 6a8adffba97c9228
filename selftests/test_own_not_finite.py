"""What is not finite at a number: which property names it, and what is said of the cause."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

from torch.nn import functional

from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.check.explain import hints
from autograd_conformance.harness.check.report import grouping
from autograd_conformance.harness.check.report.verdicts import TRIED, Verdict, verdict
from autograd_conformance.selftests.checking import DRAWS, faults_of
from autograd_conformance.strategies.calls import Call, Tensor

LOOKING = ("VJP-UNUSED", "VJP-LINEAR", "VJP-FINITE")


def unit(w, x):
    """Built-in operations alone, whose squares underflow."""
    return functional.normalize(w.t() @ x, dim=0)


@pytest.mark.parametrize(("profile", "seed"), DRAWS)
def test_what_built_in_operations_lose_is_no_fault_of_them(profile, seed):
    declaration = Declaration(unit, "float[n,m]", "float[n]", sizes={"n": (1, 2, 3)})
    asked = ("FWD-VALUE", "VJP-REF", "VJP-FD", *LOOKING) if profile == "quick" else ()
    found = faults_of(declaration, *asked, profile=profile, seed=seed, shrink=False)
    assert [line["id"] for line, v in found if (v.follows or line["property"]) != "FWD-VALUE"] == []


def _nan(test):
    property_id, _, variant = test.partition("/")
    line = {"id": f"{test}[F-cpu]", "property": property_id, "function": "F", "failure": {"kind": "nan"}}
    return {**line, **({"variant": variant} if variant else {})}, Verdict("not finite")


@pytest.mark.parametrize("met", ["VJP-REF", "VJP-FD", "FWD-VALUE"])
def test_an_output_that_is_nan_is_said_of_forward(met):
    failure = {"kind": "nan", "what": "output 0 (output) at (0,)", "got": "nan", "expected": "0.0"}
    found = verdict({"id": f"{met}[F-cpu]", "property": met, "function": "F", "outcome": "fail", "failure": failure})
    assert found is not None
    assert (found.follows or met, found.guess.split()[0]) == ("FWD-VALUE", "forward")


def test_the_property_about_it_heads_what_is_nan():
    (head,) = grouping.headlines([_nan("VJP-UNUSED/severed"), _nan("VJP-LINEAR"), _nan("VJP-FINITE")])
    assert head["property"] == "VJP-FINITE"
    assert TRIED.index("VJP-FINITE") < min(map(TRIED.index, ("VJP-UNUSED", "VJP-LINEAR", "VJP-CHAIN")))


def test_an_infinite_number_is_said_to_overflow():
    call = Call("F", (Tensor((1,), "float16", requires_grad=True),), ())
    assert "overflows in float16" in hints.of_overflow(call, "VJP-REF", np.float16(-np.inf), -1.0)
    assert hints.of_overflow(call, "FWD-VALUE", np.inf, 2.0).startswith("forward")
    for got, expected in ((np.nan, 1.0), (np.inf, np.inf), (2.0, 1.0), ("False", "True")):
        assert hints.of_overflow(call, "VJP-REF", got, expected) == ""
