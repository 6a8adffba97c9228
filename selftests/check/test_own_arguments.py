"""Words and dimensions of declared arguments: what is drawn is what they say."""

from __future__ import annotations

import sys

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from autograd_conformance import implementations
from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.check.declaration.loading import declarations
from autograd_conformance.harness.check.discovery.discovery import discover
from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.selftests.check.checking import faults_of
from autograd_conformance.selftests.check.specimens import choices
from autograd_conformance.selftests.check.specimens.arguments import CONSTANT, multiplied, negative, of_first
from autograd_conformance.selftests.check.specimens.functions import custom
from autograd_conformance.selftests.support import scripts
from autograd_conformance.strategies.calls import Call, Cotangent, Tensor, tensor_values
from autograd_conformance.suites.declared import Checked, claims

TORCH = implementations.load("torch")


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


def test_marks_occur_among_integers_that_are_several_and_are_never_all():
    for x, places in _drawn("float[n,m]", "int[b](0..m-1 | -100 | 255)"):
        marked = (places == -100) | (places == 255)
        assert torch.all((places >= 0) & (places < x.shape[1]) | marked)
        assert marked.any() == (places.numel() > 1)
        assert not places.numel() or not marked.all()


@pytest.mark.parametrize("text", ["float[n]", "float[n,m]", "float[...]"])
def test_few_calls_have_no_elements(text):
    sizes = [x.numel() for (x,) in _drawn(text)]
    assert sum(size == 0 for size in sizes) <= len(sizes) / 4


def test_products_of_dimensions_tie_shapes_and_bounds():
    for x, pairs, places in _drawn("float[n,m]", "float[2*n*m]", "int[b](0..n*m-1)"):
        assert pairs.numel() == 2 * x.numel()
        assert torch.all((places >= 0) & (places < max(x.numel(), 1)))


def test_lengths_are_at_most_a_dimension():
    assert all(torch.all((k >= 1) & (k <= x.shape[1])) for x, k in _drawn("float[b,n]", "int[b](1..n)"))


def test_numbers_with_a_name_are_lengths_and_bounds():
    for x, places, n, row, m in _drawn("float[b]", "int[b](0..n-1)", "n=int(1..4)", "float[m]", "m=int(0..2)"):
        assert torch.all(places < n)
        assert row.numel() == m
        assert n in range(1, 5)
        assert x.shape == places.shape
    drawn = _drawn("float[b]", "int[b](0..n-1)", "n=int(1..4)")
    assert len({n for *_, n in drawn}) > 1
    assert any(places.numel() and places.max() == n - 1 for _, places, n in drawn)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("float[b]", "int[b](0..n-1)", "int(1..4)"), "if it is a number among the arguments, name that: n=int(1..4)"),
        (("float[b]", "int[b](0..n-1)", "n=int(0..4)"), "has no values where n is 0"),
        (("float[n+1]", "n=int(1..4)"), "a tensor must have the number 'n' as a dimension by itself"),
        (("float[n]", "n=int(1..4)", "n=int(1..2)"), "two numbers are called 'n'"),
    ],
    ids=["nameless", "empty", "sum", "twice"],
)
def test_numbers_that_do_not_fit_are_said(arguments, says):
    with pytest.raises(UsageProblem) as problem:
        Declaration(lambda *given: given[0], *arguments)
    assert says in str(problem.value)


class Scaled(torch.autograd.Function):
    """x times a number."""

    @staticmethod
    def forward(ctx, x, by, twice=False):
        ctx.by = by * (2 if twice else 1)
        return x * ctx.by

    @staticmethod
    def backward(ctx, g):
        return g * ctx.by, None, None


@pytest.mark.parametrize(
    ("function", "arguments", "says"),
    [
        (Scaled, ("float[n]",), ": forward takes at least 2, 1 is declared; "),
        (Scaled, ("float[n]", "2.0", "bool", "bool"), ": forward takes at most 3, 4 are declared; "),
        (lambda x, y, z: x * y * z, ("float[n]", "2.0"), ": it takes 3, 2 are declared; "),
        (lambda x, y: x.lost(y), ("float[n]", "2.0"), ": every simple call"),
    ],
    ids=["few", "many", "callable", "right"],
)
def test_another_number_of_arguments_is_said_first(function, arguments, says):
    with pytest.raises(UsageProblem) as problem:
        discover(Declaration(function, *arguments, name="given"), TORCH)
    assert says in str(problem.value)


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("theirops.Scaled", "; did you mean theirops:Scaled?"),
        ("theirop:Scaled", "; did you mean theirops?"),
        ("theirop.Scaled", "; did you mean theirops:Scaled?"),
        ("theirops.Other", "'theirops' is not a package"),
    ],
)
def test_the_nearest_module_and_a_missing_colon_are_said(target, says, tmp_path, monkeypatch):
    (tmp_path / "theirops.py").write_text("def Scaled(x): return 2 * x\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "theirops", raising=False)
    with pytest.raises(UsageProblem) as problem:
        declarations(target, ("float[n]",))
    assert str(problem.value).endswith(says)


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
        ("float[n,m", "'float[n,m' lacks a ']'"),
        ("float n,m]", "lacks a '[' before the ']' in 'float n,m]'"),
        ("float[n](1..2", "lacks a ')'"),
        ("int[n](0..3 | -m)", "after a | there are integers, as in int[n](0..9 | -100)"),
        ("int[n)(0..3)", "'int[n)' opens another one than ')'"),
        ("n=int(-1..4)", "a length is at least 0"),
    ],
)
def test_what_cannot_be_read_is_said(text, says):
    with pytest.raises(UsageProblem) as problem:
        Declaration(torch.exp, text)
    assert says in str(problem.value)


def test_a_constant_that_gets_a_gradient_is_stale():
    (sentence,) = discover(Declaration(multiplied, *CONSTANT), TORCH).stale
    assert "argument 1 (w) is declared constant, but backward returns a gradient" in sentence
    assert discover(Declaration(of_first, *CONSTANT), TORCH).stale == ()
    # Nothing could be dropped.
    assert discover(Declaration(multiplied, "float[n]", "float[n] binary"), TORCH).stale == ()
    assert discover(Declaration(lambda x, w: x * w, *CONSTANT), TORCH).stale == ()


def test_a_script_shows_an_input_that_does_not_come_back():
    ((line, _),) = faults_of(negative, "FWD-PURE")
    assert scripts.status(line["failure"]["script"]) == 1


def test_what_is_declared_to_change_and_never_does_is_refused():
    copied = custom(forward=lambda _, x: -x, backward=lambda _, g: -g)
    with pytest.raises(
        UsageProblem, match=r"inplace=\(0,\): in all of \d calls forward neither changes argument 0 \(x\)"
    ):
        faults_of(Declaration(copied, "float[n]", inplace=(0,)), "FWD-PURE")


def test_arguments_of_one_shape_are_equal_on_purpose_alone():
    function = next(
        Checked(Declaration(torch.mul, "float[n]", "float[n]"), seed=0).subjects(claims()["VJP_FD"][0])
    ).function
    tensors = (Tensor((3,), "float64", True, fill="ramp"),) * 2
    x, y = tensor_values(Call("mul", tensors, (Cotangent(),), smooth=True), function)
    assert not np.any(x == y)
    x, y = tensor_values(Call("mul", tensors, (Cotangent(),)), function)
    assert np.all(x == y)


def test_the_most_precise_dtype_is_the_plain_one_in_whatever_order_they_are_declared():
    declared = Declaration(choices.Relu, "float[n]", dtypes=("float16", "float32", "float64"))
    assert declared.candidates == ("float64", "float32", "float16")
