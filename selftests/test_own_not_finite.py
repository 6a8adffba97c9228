"""What is not finite at a number: which property names it, and what is said of the cause."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from torch.autograd import Function

from autograd_conformance.harness.check import Declaration, likely, printing
from autograd_conformance.harness.check.verdicts import TRIED, Verdict
from autograd_conformance.selftests.checking import faults_of
from autograd_conformance.strategies.calls import Call, Tensor

LOOKING = ("VJP-UNUSED", "VJP-LINEAR", "VJP-FINITE")


class DividingProduct(Function):
    """The cumulative product. Backward divides by the inputs."""

    @staticmethod
    def forward(ctx, x):
        y = x.cumprod(-1)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return (g * y).flip(-1).cumsum(-1).flip(-1) / x


class DividingNorm(Function):
    """The norm of rows, which has a kink at 0. Backward divides by it."""

    @staticmethod
    def forward(ctx, x):
        n = torch.linalg.vector_norm(x, dim=-1)
        ctx.save_for_backward(x, n)
        return n

    @staticmethod
    def backward(ctx, g):
        x, n = ctx.saved_tensors
        return (g / n)[..., None] * x


class ClampedNorm(DividingNorm):
    """The gradient at 0 is 0, as that of built-in operations. Right."""

    @staticmethod
    def backward(ctx, g):
        x, n = ctx.saved_tensors
        return (g / n.clamp_min(torch.finfo(n.dtype).tiny))[..., None] * x


@pytest.mark.parametrize("function", [DividingProduct, DividingNorm])
def test_what_is_nan_at_zero_is_said_of_zero(function):
    faults = faults_of(Declaration(function, "float[b,n]", dtypes="float64"), *LOOKING)
    (head,) = printing.headlines(faults)
    assert head["property"] == "VJP-FINITE"
    assert "the entry is 0 in float64" in head["failure"]["hint"]
    # Another shape only lacks the number.
    assert [line["failure"]["right_with"] for line, _ in faults if "right_with" in line["failure"]] == []


def _nan(test):
    property_id, _, variant = test.partition("/")
    line = {"id": f"{test}[F-cpu]", "property": property_id, "function": "F", "failure": {"kind": "nan"}}
    return {**line, **({"variant": variant} if variant else {})}, Verdict("not finite")


def test_the_property_about_it_heads_what_is_nan():
    (head,) = printing.headlines([_nan("VJP-UNUSED/severed"), _nan("VJP-LINEAR"), _nan("VJP-FINITE")])
    assert head["property"] == "VJP-FINITE"
    assert TRIED.index("VJP-FINITE") < min(map(TRIED.index, ("VJP-UNUSED", "VJP-LINEAR", "VJP-CHAIN")))


def test_a_number_at_a_kink_is_no_fault():
    assert faults_of(Declaration(ClampedNorm, "float[b,n]", dtypes="float64"), *LOOKING) == []


def test_an_infinite_number_is_said_to_overflow():
    call = Call("F", (Tensor((1,), "float16", requires_grad=True),), ())
    assert "overflows in float16" in likely.of_overflow(call, "VJP-REF", np.float16(-np.inf), -1.0)
    assert likely.of_overflow(call, "FWD-VALUE", np.inf, 2.0).startswith("forward")
    for got, expected in ((np.nan, 1.0), (np.inf, np.inf), (2.0, 1.0), ("False", "True")):
        assert likely.of_overflow(call, "VJP-REF", got, expected) == ""
