"""Tensors that are negated or conjugated lazily: what forward may refuse, and what is a fault."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from autograd_conformance import implementations
from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.check.discovery.discovery import discover
from autograd_conformance.harness.check.report.facts_in_words import in_words
from autograd_conformance.selftests import lazy_ops as ops
from autograd_conformance.selftests.checking import accuses, faults_of

TORCH = implementations.load("torch")
ASKED = ("FWD-VALUE", "FWD-LAYOUT", "VJP-REF", "VJP-COTANGENT-LAYOUT", "DBL-CORRECT")
CURES = {"negated": "call resolve_neg() first", "conjugated": "call resolve_conj() first"}


@pytest.mark.parametrize("function", [ops.ThroughNumPy, ops.RefusedInWords, ops.NewInForward])
@pytest.mark.parametrize(("argument", "layout"), [("float[n,m]", "negated"), ("complex[n,m]", "conjugated")])
def test_forward_may_refuse_them_in_any_words(function, argument, layout):
    declaration = Declaration(function, argument)
    (refused,) = [line for line in in_words(discover(declaration, TORCH)) if "in the layouts" in line]
    assert refused.startswith(f"does not take argument 0 in the layouts {layout}: RuntimeError: ")
    assert refused.endswith(f"; to take them, {CURES[layout]}")
    assert accuses(declaration, *ASKED) == []


RESOLVE = f"forward accepted this call, so backward must not raise; a tensor is negated lazily: {CURES['negated']}"


@pytest.mark.parametrize(
    ("function", "property_id", "words"),
    [
        (ops.ThroughNumPyInBackward, "VJP-COTANGENT-LAYOUT", RESOLVE),
        (ops.NewInBackward, "FWD-LAYOUT", RESOLVE),
        (ops.ThroughNumPyTwice, "DBL-CORRECT", f"a tensor is negated lazily: {CURES['negated']}"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_backward_that_raises_for_them_is_a_fault(function, property_id, words):
    ((line, found),) = faults_of(Declaration(function, "float[n,m]"), property_id)
    assert (found.word, line["failure"]["hint"]) == ("raises", words)


def test_what_forward_refuses_of_one_argument_hides_no_fault_of_another():
    ((line, found),) = faults_of(Declaration(ops.RefusesOneReadsTheOther, "float[n]", "float[n]"), "FWD-LAYOUT")
    assert found.word == "wrong"
    assert "layout='negated'" in line["failure"]["call"]


@pytest.mark.parametrize(
    ("function", "property_id", "argument", "layout"),
    [
        (ops.ReadAsStored, "FWD-LAYOUT", "float[n]", "negated"),
        (ops.ReadAsStored, "FWD-LAYOUT", "complex[n]", "conjugated"),
        (ops.CotangentReadAsStored, "VJP-COTANGENT-LAYOUT", "float[n]", "negated"),
    ],
)
def test_where_they_alone_are_wrong_the_cause_is_their_bit(function, property_id, argument, layout):
    ((line, found),) = faults_of(Declaration(function, argument), property_id)
    assert (found.word, line["failure"]["kind"]) == ("wrong", "wrong")
    assert f"a tensor that is {layout} lazily" in found.guess
    assert CURES[layout] in found.guess


def test_where_other_layouts_are_wrong_the_cause_is_the_order():
    ((_, found),) = faults_of(Declaration(ops.ReadInOneOrder, "float[n,m]"), "FWD-LAYOUT")
    assert "call contiguous() first" in found.guess
    assert "lazily" not in found.guess
