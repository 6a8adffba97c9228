"""Verdicts of single lines, and which lines are one fault."""

from __future__ import annotations

import numpy as np
import pytest

from autograd_conformance.harness.check.explain import hints
from autograd_conformance.harness.check.report import grouping
from autograd_conformance.harness.check.report.verdicts import TRIED, Verdict, judged, verdict
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.strategies.calls import Call, Tensor


def _line(test, outcome="fail", **more):
    """The line of a test; ``more`` is of its failure, if it has one."""
    property_id, _, variant = test.partition("/")
    line = {"id": f"{test}[F-cpu]", "property": property_id, "function": "F", "outcome": outcome}
    line |= {"failure": {"kind": "wrong", **more}} if outcome == "fail" else {"vacuous": ndjson.UNCHECKED, **more}
    return {**line, "variant": variant} if variant else line


def test_special_values_and_averages_verify_no_gradient():
    assert verdict(_line("VJP-FD", "vacuous", examples=9)).word == "not verified"
    assert verdict(_line("VJP-FD/kinks", "vacuous", examples=9)).word == "not known"
    for agreeing, words in (("VJP-REF/averages", ["not verified"]), ("VJP-REF", [])):
        lines = [_line("VJP-FD", "vacuous", examples=9), _line(agreeing, "pass", examples=9)]
        assert [v.word for _, v in judged(lines, compared=True) if v] == words
        assert [v.word for _, v in judged(lines, compared=False) if v] == ["not verified"]


@pytest.mark.parametrize("variant", ["long", "small"])
def test_what_other_calls_verify_may_be_undecided_at_some_lengths_and_values(variant):
    assert verdict(_line(f"VJP-FD/{variant}", "vacuous", reason="kinks")) is None


@pytest.mark.parametrize("error", ["FlakyFailure", "FlakyReplay", "FlakyStrategyDefinition"])
def test_a_test_whose_calls_do_not_repeat_is_no_error_of_the_suite(error):
    line = {**_line("DBL-ONCE", "error"), "failure": {"type": error, "message": "Inconsistent data"}}
    found = verdict(line)
    assert (found.word, found.follows) == ("wrong", "VJP-REPEAT")
    assert found.fault


@pytest.mark.parametrize("met", ["VJP-REF", "VJP-FD", "FWD-VALUE"])
def test_an_output_that_is_nan_is_said_of_forward(met):
    found = verdict(_line(met, kind="nan", what="output 0 (output) at (0,)", got="nan", expected="0.0"))
    assert found is not None
    assert (found.follows or met, found.guess.split()[0]) == ("FWD-VALUE", "forward")


def test_an_infinite_number_is_said_to_overflow():
    call = Call("F", (Tensor((1,), "float16", requires_grad=True),), ())
    assert "overflows in float16" in hints.of_overflow(call, "VJP-REF", np.float16(-np.inf), -1.0)
    assert hints.of_overflow(call, "FWD-VALUE", np.inf, 2.0).startswith("forward")
    for got, expected in ((np.nan, 1.0), (np.inf, np.inf), (2.0, 1.0), ("False", "True")):
        assert hints.of_overflow(call, "VJP-REF", got, expected) == ""


def test_the_property_about_it_heads_what_is_nan():
    nan = [_line(test, kind="nan") for test in ("VJP-UNUSED/severed", "VJP-LINEAR", "VJP-FINITE")]
    (head,) = grouping.headlines([(line, Verdict("not finite")) for line in nan])
    assert head["property"] == "VJP-FINITE"
    assert TRIED.index("VJP-FINITE") < min(map(TRIED.index, ("VJP-UNUSED", "VJP-LINEAR", "VJP-CHAIN")))


def test_only_some_variants_are_the_cause_of_a_failure_where_the_plain_test_holds():
    for variant, blocks in (("VJP-REF/averages", 2), ("VJP-PURE/owned", 1)):
        cause, follower = _line(variant), _line("FWD-LAYOUT")
        faults = [(cause, Verdict("wrong")), (follower, Verdict("wrong", follows=cause["property"]))]
        assert len(grouping.headlines(faults)) == blocks


def test_tests_that_meet_the_same_number_are_one_fault():
    one, another = (f"Call('F', args=(Tensor((1,)), {n}), cotangents=(Cotangent(),))" for n in (1, 2))
    for other, blocks in ((one, 1), (another, 2)):
        lines = [
            _line(test, what="slope", got="1.0", call=call) for test, call in (("VJP-FD", one), ("VJP-FD/long", other))
        ]
        assert len(grouping.headlines([(each, verdict(each)) for each in lines])) == blocks
