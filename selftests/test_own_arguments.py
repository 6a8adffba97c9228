"""Words and dimensions of declared arguments: what is drawn is what they say."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch

from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.selftests.checking import faults_of


def _drawn(*arguments):
    """What a Function gets for these arguments, call by call."""
    seen = []

    def looking(x, *others):
        seen.append((x.detach(), *others))
        return x * 1.0

    assert faults_of(Declaration(looking, *arguments, name="looking"), "VJP-REF") == []
    assert len(seen) > 10
    return seen


def test_symmetric_and_full_rank_matrices():
    for _, symmetric, full in _drawn("float[n]", "number[b,n,n] symmetric", "number[b,n,m] full_rank"):
        assert torch.equal(symmetric, symmetric.mT.conj())
        if full.numel():
            assert torch.linalg.svdvals(full.detach().to(torch.complex128)).min() > 0.25


@pytest.mark.parametrize("text", ["float[n]", "float[n,m]", "float[...]"])
def test_few_calls_have_no_elements(text):
    sizes = [x.numel() for (x,) in _drawn(text)]
    assert sum(size == 0 for size in sizes) <= len(sizes) / 4


class OfEmpty(torch.autograd.Function):
    """x - mean(x). For a tensor without elements the gradient has another shape."""

    @staticmethod
    def forward(_, x):
        return x - (x.mean() if x.numel() else 0.0)

    @staticmethod
    def backward(_, g):
        return g - g.mean() if g.numel() else g.new_zeros(1)


def test_a_fault_of_tensors_without_elements_is_found():
    faults = faults_of(Declaration(OfEmpty, "float[n]"), "FWD-EMPTY")
    assert [line["property"] for line, _ in faults] == ["FWD-EMPTY"]


def test_products_of_dimensions_tie_shapes_and_bounds():
    for x, pairs, places in _drawn("float[n,m]", "float[2*n*m]", "int[b](0..n*m-1)"):
        assert pairs.numel() == 2 * x.numel()
        assert torch.all((places >= 0) & (places < max(x.numel(), 1)))


def test_lengths_are_at_most_a_dimension():
    assert all(torch.all((k >= 1) & (k <= x.shape[1])) for x, k in _drawn("float[b,n]", "int[b](1..n)"))


def test_real_and_complex_tensors_in_one_call():
    drawn = _drawn("complex[n]", "float[n]")
    assert all(x.is_complex() and not y.is_complex() for x, y in drawn)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("float[n] symmetric", "a symmetric matrix has two dimensions of one name, as in float[n,n]"),
        ("float[n,m] symmetric", "a symmetric matrix has two dimensions of one name, as in float[n,n]"),
        ("float[n] full_rank", "a full_rank matrix has two dimensions, as in float[n,m]"),
        ("float[...] full_rank", "a full_rank matrix has two dimensions, as in float[n,m]"),
        ("float[n,n] symmetric full_rank", "these words cannot be combined"),
        ("float[n*]", "'n*' is not a dimension; write a name, a length, a sum, a product, ... or ~"),
        ("float[n,n] symetric", "unknown word 'symetric'"),
    ],
)
def test_what_cannot_be_read_is_said(text, says):
    with pytest.raises(UsageProblem) as problem:
        Declaration(torch.exp, text)
    assert says in str(problem.value)
