"""The likely cause of a wrong gradient: equal indices, or a missing conjugate, and only where these explain it."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch

from autograd_conformance.harness.check import Declaration, printing
from autograd_conformance.selftests.checking import faults_of

INDEXED = ("float[n]", "int[b](0..n-1)")
COMPLEX = ("number[n]", "number[n]")


class Rows(torch.autograd.Function):
    """A right gather, whose backward the faults override."""

    @staticmethod
    def forward(ctx, x, index):
        ctx.save_for_backward(index)
        ctx.n = x.shape[0]
        return x[index]


class Assigned(Rows):
    @staticmethod
    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        found = g.new_zeros(ctx.n)
        found[index] = g
        return found, None


class AddedAndDoubled(Rows):
    @staticmethod
    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        return g.new_zeros(ctx.n).index_add(0, index, 2 * g), None


class Product(torch.autograd.Function):
    """A right product, whose backward the faults override."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y


class OneUnconjugated(Product):
    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y, g * x.conj()


class Halved(Product):
    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y.conj(), g * x.conj() / 2


@pytest.mark.parametrize(
    ("function", "arguments", "words"),
    [
        (Assigned, INDEXED, "where entries of argument 1 (index) are equal"),
        (AddedAndDoubled, INDEXED, ""),
        (OneUnconjugated, COMPLEX, "a factor of backward is not conjugated"),
        (Halved, COMPLEX, ""),
    ],
)
def test_what_the_probes_show_is_said(function, arguments, words):
    faults = faults_of(Declaration(function, *arguments), "VJP-FD")
    (head,) = printing.headlines(faults)
    likely = head["failure"].get("likely", "")
    assert words in likely
    assert bool(likely) == bool(words)


class LossOfShapes(torch.autograd.Function):
    """Right for square matrices only: the other shapes fail in one way."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x * (1.0 + 0.5 * (x.shape[0] - x.shape[1]))


def test_one_fault_in_several_shapes_is_one_block():
    faults = faults_of(Declaration(LossOfShapes, "float[n,m]"), "VJP-FD")
    assert [line["property"] for line in printing.headlines(faults)] == ["VJP-FD"]
