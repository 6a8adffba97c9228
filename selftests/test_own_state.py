"""State around users' Functions: tensors on ctx, memory never written, random numbers, settings of the process."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch

from autograd_conformance.harness.check import Declaration
from autograd_conformance.selftests.checking import faults_of
from autograd_conformance.suites.declared import Checked


class Saved(torch.autograd.Function):
    """The square, which saves its input."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g * ctx.saved_tensors[0]


class Intermediate(torch.autograd.Function):
    """The square, which keeps on ctx what nobody else holds."""

    @staticmethod
    def forward(ctx, x):
        ctx.kept = {"twice": (2 * x,)}
        return x * x

    @staticmethod
    def backward(ctx, g):
        return g * ctx.kept["twice"][0]


class Rare(Intermediate):
    """Keeps its input itself, if it has six elements."""

    @staticmethod
    def forward(ctx, x):
        ctx.kept = {"twice": (x if x.numel() == 6 else x.clone(),)}
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * Intermediate.backward(ctx, g)


def test_tensors_on_ctx_get_more_examples():
    saved, kept = (
        next(Checked(Declaration(cls, "float[...]"), seed=0, profile="quick").lines("VJP-INPLACE-SAFE"))
        for cls in (Saved, Intermediate)
    )
    assert saved["outcome"] == kept["outcome"] == "pass"
    assert kept["examples"] > 4 * saved["examples"]
    checked = Checked(Declaration(Rare, "float[...]"), seed=0, profile="quick")
    assert next(checked.lines("VJP-INPLACE-SAFE"))["outcome"] == "fail"


def test_what_is_kept_right_is_not_accused():
    class Indices(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            order = x.argsort(dim=-1, stable=True)
            ctx.order = order.clone()
            ctx.mark_non_differentiable(order)
            return x.gather(-1, order), order

        @staticmethod
        def backward(ctx, g, _):
            return torch.zeros_like(g).scatter(-1, ctx.order, g)

    for declaration in (Declaration(Intermediate, "number[...]"), Declaration(Indices, "float[b,n] separated")):
        assert faults_of(declaration, "VJP-INPLACE-SAFE") == []
