"""What a verdict advises fits what was declared, and what was seen."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch
from torch.autograd import Function

from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.check.report import grouping
from autograd_conformance.harness.check.report.verdicts import verdict
from autograd_conformance.selftests.checking import faults_of
from autograd_conformance.suites.declared import Checked


class Halved(Function):
    """The hard sigmoid, whose backward writes into grad_output."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x / 6 + 0.5).clamp(0, 1)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g.mul_(((x > -3) & (x < 3)).to(g.dtype) / 6)


class Straight(Function):
    """The sign. Backward is not the derivative of tanh."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sign()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 1.5 * g * (1 - x.tanh() ** 2)


class Reduced(Function):
    """The maximum without ties, which an empty tensor has not. Right."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x.exp() * x.amax(-1, keepdim=True).detach() * 0 + x.exp()

    @staticmethod
    def setup_context(ctx, inputs, _):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0].exp()


def test_what_a_change_of_a_cotangent_explains_is_one_fault():
    faults = faults_of(Declaration(Halved, "float[n]", once=True), "VJP-FD", "VJP-REF", "VJP-PURE", shrink=False)
    (head,) = grouping.headlines(faults)
    assert head["property"] == "VJP-PURE"


def test_the_declared_derivative_is_named():
    faults = faults_of(Declaration(Straight, "float[n]", soft=torch.tanh), "VJP-FD", shrink=False)
    guesses = {v.guess for line, v in faults if not line.get("variant")}
    assert len(guesses) == 1
    assert "soft=" in guesses.pop()
    assert all("surrogate=True" not in v.guess for _, v in faults)


def test_what_the_plain_call_refuses_is_no_note_on_batches():
    lines = list(Checked(Declaration(Reduced, "float[...]"), seed=0).lines("BATCH-VMAP"))
    assert [line["outcome"] for line in lines] == ["pass"]
    assert [verdict(line) for line in lines] == [None]


_ONE, _OTHER = (f"Call('F', args=(Tensor((1,)), {n}), cotangents=(Cotangent(),))" for n in (1, 2))


def test_tests_that_meet_the_same_number_are_one_fault():
    def line(test, call):
        property_id, _, variant = test.partition("/")
        failure = {"kind": "wrong", "what": "slope", "got": "1.0", "call": call}
        found = {
            "id": f"{test}[F-cpu]",
            "property": property_id,
            "function": "F",
            "outcome": "fail",
            "failure": failure,
        }
        return {**found, "failure": failure, **({"variant": variant} if variant else {})}

    for other, blocks in ((_ONE, 1), (_OTHER, 2)):
        lines = [line("VJP-FD", _ONE), line("VJP-FD/long", other)]
        assert len(grouping.headlines([(each, verdict(each)) for each in lines])) == blocks
