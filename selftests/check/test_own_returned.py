"""What is found out of what users' Functions take and return: layouts, sparse and nested tensors, other dtypes."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from autograd_conformance import implementations
from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.check.discovery.discovery import discover
from autograd_conformance.harness.check.report.facts_in_words import in_words
from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.implementations.protocol import Unreadable
from autograd_conformance.selftests.check.specimens.layouts import CURES, REFUSING, contiguous, one_refused_wrong
from autograd_conformance.selftests.check.specimens.returned import embedding, narrow_gradient, returning

TORCH = implementations.load("torch")


def test_a_sparse_gradient_is_a_fact():
    assert discover(embedding, TORCH).sparse


KINDS = {
    "a sparse_coo tensor that requires grad": torch.Tensor.to_sparse,
    "a sparse_csr tensor that requires grad": torch.Tensor.to_sparse_csr,
    "a mkldnn tensor that requires grad": torch.Tensor.to_mkldnn,
    "a nested tensor has no shape": lambda x: torch.nested.nested_tensor([x, x], layout=torch.jagged),
}


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support:UserWarning")
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
@pytest.mark.parametrize("words", KINDS)
def test_outputs_that_cannot_be_checked_are_named_in_a_sentence(words):
    with pytest.raises(UsageProblem, match=words) as problem:
        discover(returning(KINDS[words]), TORCH)
    assert "cannot be checked" in str(problem.value)


class Marked(torch.Tensor):
    """A subclass of tensors."""


# torch warns that sparse CSR is new, and that quantized dtypes are old.
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_values_are_read_from_every_kind_of_tensor():
    plain = torch.tensor([[1.0, 0.0], [-2.0, 3.0]], dtype=torch.float32)
    z = torch.complex(plain, plain)
    kinds = [
        plain.to_sparse(),
        plain.to_sparse_csr(),
        plain.to_mkldnn(),
        torch.quantize_per_tensor(plain, 0.5, 0, torch.qint8),
        plain.clone().requires_grad_(),
        plain.as_subclass(Marked),
        z.conj().imag * -1,
        (-z).conj().imag,
    ]
    for tensor in kinds:
        np.testing.assert_array_equal(TORCH.numpy(tensor), plain.numpy())
    assert TORCH.numpy(torch.tensor(2.5)).shape == ()
    expanded = torch.sparse_coo_tensor([[0]], torch.ones(()).expand(1, 1), (1, 1), check_invariants=True)
    # torch 2.13 gives 0 for expanded.to_dense().
    assert TORCH.numpy(expanded) == 1
    with pytest.raises(Unreadable, match="has no shape"):
        TORCH.numpy(torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]))


def test_a_gradient_of_less_precision_is_a_fact():
    facts = discover(narrow_gradient, TORCH)
    assert facts.comes_back == {"float64": "float32"}
    assert (facts.computes_in, len(facts.coarse)) == ("float64", 1)


def _facts(declaration, about):
    return [line for line in in_words(discover(declaration, TORCH)) if about in line]


def test_refused_layouts_are_facts():
    assert _facts(contiguous, "does not take") == [
        "does not take arguments 0, 1, 2 in the layouts transposed, strided, expanded, negated: ValueError: contiguous "
        "tensors only"
    ]
    layouts = {each.layout for each in discover(one_refused_wrong, TORCH).refused_layouts}
    assert layouts == {"transposed", "expanded"}


@pytest.mark.parametrize("name", REFUSING)
@pytest.mark.parametrize(("argument", "layout"), [("float[n,m]", "negated"), ("complex[n,m]", "conjugated")])
def test_lazy_layouts_are_refused_in_any_words(name, argument, layout):
    (refused,) = _facts(Declaration(REFUSING[name], argument), "in the layouts")
    assert refused.startswith(f"does not take argument 0 in the layouts {layout}: RuntimeError: ")
    assert refused.endswith(f"; to take them, {CURES[layout]}")
