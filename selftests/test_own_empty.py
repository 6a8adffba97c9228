"""Gradients of calls whose tensors lack elements: a sum of nothing is zero."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch

from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.check.refusals.empty_tensors import NOT_ZERO
from autograd_conformance.selftests.checking import accuses, first_fault, lines_of
from autograd_conformance.suites.declared import Checked

ARGUMENTS = ("float[n,m]", "float[m]")


class Right(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * w, (g * x).sum(0)


class Divides(Right):
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * w, (g * x).mean(0) * len(x)


class Unwritten(Right):
    """Has other numbers than zero where it is given no rows, as new memory may have."""

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * w, (g * x).sum(0) if len(x) else torch.full_like(w, 3.0)


class Mean(Right):
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * w, (g * x).mean(0)


@pytest.mark.parametrize(("function", "word"), [(Divides, "not finite"), (Unwritten, "wrong")])
@pytest.mark.parametrize("seed", [0, 1])
def test_gradients_of_nothing_that_are_not_zero_are_found_and_explained(function, word, seed):
    line, verdict = first_fault(Declaration(function, *ARGUMENTS), "FWD-EMPTY", seed=seed)
    assert (verdict.word, verdict.follows, verdict.guess) == (word, "VJP-FD", NOT_ZERO)
    assert "(0" in line["failure"]["call"]


def test_zeros_are_right():
    assert accuses(Declaration(Right, *ARGUMENTS), "FWD-EMPTY", "VJP-FD", "VJP-FINITE") == []


def test_what_is_declared_to_be_no_linear_backward_may_give_anything():
    assert first_fault(Declaration(Unwritten, *ARGUMENTS, nonlinear=True), "FWD-EMPTY") is None


@pytest.mark.parametrize(("test", "profile", "seed"), [("FWD-EMPTY", "gate", 0), ("VJP-FINITE", "quick", 3)])
def test_nan_of_a_mean_that_has_to_be_a_sum_follows_from_the_wrong_slope(test, profile, seed):
    (line,) = lines_of(Checked(Declaration(Mean, *ARGUMENTS), profile=profile, seed=seed), test)
    assert line["failure"]["kind"] == "nan"
    assert line["failure"]["follows"] == "VJP-FD"
