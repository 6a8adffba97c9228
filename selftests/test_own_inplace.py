"""Functions that are declared to change an argument in place."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch

from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.selftests import scripts
from autograd_conformance.selftests.checking import faults_of


class Negative(torch.autograd.Function):
    """-x in place, without mark_dirty."""

    @staticmethod
    def forward(_, x):
        return x.neg_()

    @staticmethod
    def backward(_, g):
        return -g


def test_an_input_that_does_not_come_back_is_named():
    ((line, found),) = faults_of(Declaration(Negative, "float[n]", inplace=(0,)), "FWD-PURE")
    failure = line["failure"]
    assert found.word == "mutates"
    assert failure["got"] == "x was changed in place, but what forward returns is not x"
    assert failure["hint"] == "call ctx.mark_dirty(x) in forward, and return x"
    assert scripts.status(failure["script"]) == 1


class Unnoticed(torch.autograd.Function):
    """-x in place, behind autograd's back."""

    @staticmethod
    def forward(_, x):
        x.data.neg_()
        return x

    @staticmethod
    def backward(_, g):
        return -g


class Copied(torch.autograd.Function):
    @staticmethod
    def forward(_, x):
        return -x

    @staticmethod
    def backward(_, g):
        return -g


def test_a_change_that_autograd_does_not_notice_is_named():
    ((line, found),) = faults_of(Declaration(Unnoticed, "float[n]", inplace=(0,)), "FWD-PURE")
    assert (found.word, found.guess) == ("mutates", "")
    assert line["failure"]["hint"].startswith("a change of x through .data, detach() or NumPy goes unnoticed")


def test_what_is_declared_to_change_and_never_does_is_refused():
    with pytest.raises(
        UsageProblem, match=r"inplace=\(0,\): in all of \d calls forward neither changes argument 0 \(x\)"
    ):
        faults_of(Declaration(Copied, "float[n]", inplace=(0,)), "FWD-PURE")
