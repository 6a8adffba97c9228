"""Tensors that are declared constant, and a gradient that backward returns for them all the same."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch
from torch.autograd import Function

from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.check.discovery.discovery import discover
from autograd_conformance.selftests.checking import accuses, faults_of
from autograd_conformance.selftests.planted.definitions import TORCH


class Product(Function):
    """x * w. Right."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * w, g * x


class OfFirst(Product):
    """The second factor gets no gradient."""

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[1], None


class Scaled(Function):
    """x * k, which returns a gradient for the number."""

    @staticmethod
    def forward(ctx, x, k):
        ctx.k = k
        return x * k

    @staticmethod
    def backward(ctx, g):
        return g * ctx.k, g.new_ones(())


@pytest.mark.parametrize("function", [Product, OfFirst])
def test_a_gradient_of_a_constant_is_no_wrong_number(function):
    declaration = Declaration(function, "float[n]", "float[n] constant")
    assert accuses(declaration, "VJP-NONE", "VJP-FD", "VJP-NEEDS") == []


def test_a_constant_that_gets_a_gradient_is_stale():
    (sentence,) = discover(Declaration(Product, "float[n]", "float[n] constant"), TORCH).stale
    assert "argument 1 (w) is declared constant, but backward returns a gradient" in sentence
    assert discover(Declaration(OfFirst, "float[n]", "float[n] constant"), TORCH).stale == ()
    # Nothing could be dropped.
    assert discover(Declaration(Product, "float[n]", "float[n] binary"), TORCH).stale == ()
    assert discover(Declaration(lambda x, w: x * w, "float[n]", "float[n] constant"), TORCH).stale == ()


def test_a_gradient_of_a_number_is_a_fault():
    ((line, found),) = faults_of(Declaration(Scaled, "float[n]", "2.0"), "VJP-NONE")
    assert found.word in ("wrong", "raises")
    assert line["property"] == "VJP-NONE"


def test_numbers_that_overflow_inside_are_no_fault():
    def norm(x):
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5)

    declaration = Declaration(norm, "float[n]", dtypes=["float64", "float32"])
    assert accuses(declaration, "FWD-VALUE", "VJP-REF") == []
