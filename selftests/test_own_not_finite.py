"""What is not finite at a number: which property names it, and what is said of the cause."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from torch.autograd import Function
from torch.nn import functional

from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.check.explain import hints
from autograd_conformance.harness.check.report import grouping
from autograd_conformance.harness.check.report.verdicts import TRIED, Verdict, verdict
from autograd_conformance.selftests.checking import DRAWS, accuses, faults_of, first_fault
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


class Softplus(Function):
    """Backward divides infinity by infinity for large numbers."""

    @staticmethod
    def forward(ctx, x, beta):
        ctx.save_for_backward(x)
        ctx.beta = beta
        return functional.softplus(beta * x) / beta

    @staticmethod
    def backward(ctx, g):
        e = torch.exp(ctx.beta * ctx.saved_tensors[0])
        return g * e / (1 + e), None


def unit(w, x):
    """Built-in operations alone, whose squares underflow."""
    return functional.normalize(w.t() @ x, dim=0)


class SmoothAbs(Function):
    """Forward computes in single precision. The constant of backward underflows in half precision."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        w = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
        return (w * w + 1e-8).sqrt().to(x.dtype)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x / (x * x + 1e-8).sqrt().clamp_min(1e-4)


class Dropped(Function):
    """The mask of backward is that of the last call, and the gradient too large."""

    @staticmethod
    def forward(ctx, x):
        Dropped.mask = (torch.rand_like(x, dtype=torch.float32) < 0.5).to(x.dtype)
        ctx.save_for_backward(x)
        return x * x * Dropped.mask

    @staticmethod
    def backward(ctx, g):
        return 2.2 * g * ctx.saved_tensors[0] * Dropped.mask


class Centred(Function):
    """Right, but its entries depend on each other."""

    @staticmethod
    def forward(_, x):
        return x - x.mean()

    @staticmethod
    def backward(_, g):
        return g - g.mean()


def test_what_backward_loses_alone_is_a_fault():
    # Squares of the numbers underflow, but not in the formula of forward.
    (line,) = [line for line, _ in faults_of(Declaration(SmoothAbs, "float[...]"), "VJP-REF")]
    assert line["variant"] == "sweep"


def test_random_numbers_of_a_formula_excuse_nothing():
    declaration = Declaration(Dropped, "float[n]", stochastic=True, dtypes="float32")
    assert "VJP-FD" in {v.follows or line["property"] for line, v in accuses(declaration, "VJP-FD", "VJP-REF")}


def test_what_is_declared_wrongly_is_no_wrong_output():
    asked = "DECL-INDEPENDENT", "FWD-VALUE", "FWD-LAYOUT", "VJP-FD", "VJP-REF", "VJP-CHAIN"
    faults = faults_of(Declaration(Centred, "float[b]", independent="b"), *asked, shrink=False)
    assert {v.follows or line["property"] for line, v in faults} == {"DECL-INDEPENDENT"}


def test_special_numbers_that_a_sweep_meets_are_no_wrong_derivative():
    (found,) = [v for _, v in faults_of(Declaration(Softplus, "float[...]", "float(0.5..2)"), "VJP-FD")]
    assert (found.word, found.follows) == ("not finite", "VJP-FINITE")
    assert "overflows" in found.guess


@pytest.mark.parametrize(("profile", "seed"), DRAWS)
def test_what_built_in_operations_lose_is_no_fault_of_them(profile, seed):
    declaration = Declaration(unit, "float[n,m]", "float[n]", sizes={"n": (1, 2, 3)})
    asked = ("FWD-VALUE", "VJP-REF", "VJP-FD", *LOOKING) if profile == "quick" else ()
    found = faults_of(declaration, *asked, profile=profile, seed=seed, shrink=False)
    assert [line["id"] for line, v in found if (v.follows or line["property"]) != "FWD-VALUE"] == []


@pytest.mark.parametrize("function", [DividingProduct, DividingNorm])
def test_what_is_nan_at_zero_is_said_of_zero(function):
    faults = faults_of(Declaration(function, "float[b,n]", dtypes="float64"), *LOOKING)
    (head,) = grouping.headlines(faults)
    assert head["property"] == "VJP-FINITE"
    assert "the entry is 0 in float64" in head["failure"]["hint"]
    # Another shape only lacks the number.
    assert [line["failure"]["right_with"] for line, _ in faults if "right_with" in line["failure"]] == []


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


def test_a_number_at_a_kink_is_no_fault():
    assert accuses(Declaration(ClampedNorm, "float[b,n]", dtypes="float64"), *LOOKING) == []


def test_an_infinite_number_is_said_to_overflow():
    call = Call("F", (Tensor((1,), "float16", requires_grad=True),), ())
    assert "overflows in float16" in hints.of_overflow(call, "VJP-REF", np.float16(-np.inf), -1.0)
    assert hints.of_overflow(call, "FWD-VALUE", np.inf, 2.0).startswith("forward")
    for got, expected in ((np.nan, 1.0), (np.inf, np.inf), (2.0, 1.0), ("False", "True")):
        assert hints.of_overflow(call, "VJP-REF", got, expected) == ""


class CubedNorm(Function):
    """Weighted rows of one size, computed in single precision at least. Backward multiplies three large numbers."""

    @staticmethod
    def forward(ctx, x, w):
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        r = torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6).to(x.dtype)
        ctx.save_for_backward(x, w, r)
        return x * r * w

    @staticmethod
    def backward(ctx, g):
        x, w, r = ctx.saved_tensors
        gw = r * g * w
        return gw - x * (gw * x / r).mean(-1, keepdim=True) * r**3, (g * x * r).sum(0)


class ScaledNorm(CubedNorm):
    """One whose backward multiplies numbers of ordinary size."""

    @staticmethod
    def backward(ctx, g):
        x, w, r = ctx.saved_tensors
        gw, y = r * g * w, x * r
        return gw - y * (gw * y).mean(-1, keepdim=True), (g * y).sum(0)


def test_what_overflows_where_all_arguments_are_large_is_found():
    line, verdict = first_fault(Declaration(CubedNorm, "float[n,m]", "float[m]"), "VJP-FINITE/far")
    assert verdict.word == "not finite"
    assert line["failure"]["call"].count("128.0") > 1
    assert first_fault(Declaration(ScaledNorm, "float[n,m]", "float[m]"), "VJP-FINITE/far") is None
