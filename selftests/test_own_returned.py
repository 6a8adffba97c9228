"""What users' Functions return: sparse and nested tensors, numbers of less precision than they were given."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from torch.autograd import Function

from autograd_conformance import implementations
from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.check.discovery.discovery import discover
from autograd_conformance.harness.check.report.facts_in_words import in_words
from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.implementations.protocol import Unreadable
from autograd_conformance.selftests.checking import accuses, faults_of, first_fault
from autograd_conformance.suites.declared import Checked

TORCH = implementations.load("torch")

# What sparse gradients and other dtypes are met by.
SEVERAL = ("VJP-FD", "VJP-REF", "VJP-PURE", "VJP-CHAIN", "VJP-REPEAT", "DBL-CORRECT")


class Embedding(Function):
    """Rows of a table, whose gradient is sparse. Right."""

    @staticmethod
    def forward(ctx, table, index):
        ctx.save_for_backward(index)
        ctx.shape = table.shape
        return table[index]

    @staticmethod
    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        return torch.sparse_coo_tensor(index.reshape(1, -1), g, ctx.shape, check_invariants=True), None


class Overwriting(Embedding):
    """Of the gradients of one row only the last one counts."""

    @staticmethod
    def backward(ctx, g):
        dense = torch.zeros(ctx.shape, dtype=g.dtype)
        dense[ctx.saved_tensors[0]] = g
        return dense.to_sparse(), None


class Writing(Embedding):
    """Changes its gradient, whose values are those of the cotangent."""

    @staticmethod
    def backward(ctx, g):
        found = Embedding.backward(ctx, g)
        found[0]._values().mul_(2)
        return found


TABLE = ("float[v,d]", "int[b](0..v-1)")


def test_a_sparse_gradient_is_no_fault():
    assert discover(Declaration(Embedding, *TABLE), TORCH).sparse
    assert accuses(Declaration(Embedding, *TABLE), *SEVERAL) == []


class Bag(Function):
    """Sums of rows, of which the same one is often named. Right."""

    @staticmethod
    def forward(ctx, table, index):
        ctx.save_for_backward(index)
        ctx.shape = table.shape
        return table[index].sum(1)

    @staticmethod
    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        values = g.unsqueeze(1).expand(*index.shape, g.shape[-1]).reshape(index.numel(), g.shape[-1])
        return torch.sparse_coo_tensor(index.reshape(1, -1), values, ctx.shape, check_invariants=True), None


@pytest.mark.parametrize("seed", range(4), ids="seed{}".format)
def test_the_rounding_of_what_is_named_several_times_is_no_fault(seed):
    bag = Declaration(Bag, "float[v,d]", "int[b,k](0..v-1)")
    assert faults_of(bag, "VJP-ACCUMULATE", seed=seed) == []


@pytest.mark.parametrize(("function", "property_id"), [(Overwriting, "VJP-FD"), (Writing, "VJP-PURE")])
def test_faults_of_sparse_gradients_are_found(function, property_id):
    line, _ = first_fault(Declaration(function, *TABLE), property_id)
    assert (line["property"], line["outcome"]) == (property_id, "fail")


def _returning(made, constant=False):
    class Made(Function):
        @staticmethod
        def forward(ctx, x):
            other = made(x.detach())
            if constant:
                ctx.mark_non_differentiable(other)
            return (2 * x, other) if constant else other

        @staticmethod
        def backward(_, g, *__):
            return 2 * g

    return Declaration(Made, "float[n,m]", dtypes="float32")


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
        discover(_returning(KINDS[words]), TORCH)
    assert "cannot be checked" in str(problem.value)


def test_sparse_outputs_that_are_not_differentiable_are_read():
    assert accuses(_returning(torch.Tensor.to_sparse, constant=True), "FWD-VALUE", "VJP-FD") == []


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


# Less precision than was given.


class Narrow(Function):
    """A sum of products, in single precision. Right."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return (x * w).sum(-1).float()

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g[..., None].to(x.dtype) * w, g[..., None].to(x.dtype) * x


class NarrowWrong(Narrow):
    """The second gradient is off by 1 %."""

    @staticmethod
    def backward(ctx, g):
        gx, gw = Narrow.backward(ctx, g)
        return gx, 1.01 * gw


class NarrowGradient(Function):
    """exp, whose gradient is returned in single precision."""

    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        return (g * ctx.saved_tensors[0]).float()


class Wide(Function):
    """The sine of numbers in half precision, in single precision. Right."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x.float() if x.dtype in (torch.float16, torch.bfloat16) else x).sin()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return (g * x.to(g.dtype).cos()).to(x.dtype)


PRODUCTS = ("float[...,n]", "float[...,n]")


@pytest.mark.parametrize(
    "declaration", [Declaration(Narrow, *PRODUCTS, casts=True), Declaration(Wide, "float[...]", casts=True)]
)
def test_results_are_judged_by_the_dtype_that_comes_back(declaration):
    lines = list(Checked(declaration, profile="quick", seed=0).lines(*SEVERAL))
    assert {line["outcome"] for line in lines} == {"pass"}
    assert not any(line.get("excused") for line in lines)


def test_a_wrong_gradient_of_less_precision_is_found():
    found = accuses(Declaration(NarrowWrong, *PRODUCTS, casts=True), "VJP-FD")
    assert {line["id"] for line, v in found if not v.follows} == {"VJP-FD[NarrowWrong-cpu]"}


def test_a_gradient_of_less_precision_is_one_finding():
    declaration = Declaration(NarrowGradient, "float[...]")
    facts = discover(declaration, TORCH)
    assert facts.comes_back == {"float64": "float32"}
    assert (facts.computes_in, len(facts.coarse)) == ("float64", 1)
    assert accuses(declaration, *SEVERAL) == []


# Layouts that are refused.


class Contiguous(Function):
    """x * w + b of contiguous tensors only. Right."""

    @staticmethod
    def forward(ctx, *given):
        if not all(x.is_contiguous() for x in given):
            raise ValueError("contiguous tensors only")
        ctx.save_for_backward(*given)
        return given[0] * given[1] + given[2]

    @staticmethod
    def backward(ctx, g):
        x, w, _ = ctx.saved_tensors
        return g * w, g * x, g


class OneRefused(Function):
    """x * w, which refuses a transposed x, and is wrong for a strided w."""

    @staticmethod
    def forward(ctx, x, w):
        if min(x.shape, default=0) > 1 and x.stride(0) < x.stride(-1):
            raise ValueError("x must not be transposed")
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * w * (1.5 if w.numel() and w.stride(-1) == 2 else 1), g * x


class OneRefusedRight(OneRefused):
    """x * w, which refuses a transposed x. Right."""

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * w, g * x


def test_a_refused_layout_excuses_no_property():
    declaration = Declaration(Contiguous, *("float[n,m]",) * 3)
    said = [line for line in in_words(discover(declaration, TORCH)) if "does not take" in line]
    assert said == [
        "does not take arguments 0, 1, 2 in the layouts transposed, strided, expanded, negated: ValueError: contiguous "
        "tensors only"
    ]
    checked = Checked(declaration, profile="quick", seed=0)
    lines = list(checked.lines("VJP-REF", "FWD-LAYOUT", "DBL-CORRECT", "VJP-CHAIN"))
    assert {line["outcome"] for line in lines} == {"pass"}
    assert not any(line.get("excused") for line in lines)


def test_a_refused_layout_excuses_no_other():
    matrices = ("float[n,m]",) * 2
    found = faults_of(Declaration(OneRefused, *matrices), "FWD-LAYOUT", shrink=False)
    assert [line["outcome"] for line, _ in found] == ["fail"]
    layouts = {each.layout for each in discover(Declaration(OneRefused, *matrices), TORCH).refused_layouts}
    assert layouts == {"transposed", "expanded"}
    assert accuses(Declaration(OneRefusedRight, *matrices), "FWD-LAYOUT", "VJP-REF") == []


class Picky(OneRefusedRight):
    """Refuses to run if only one of its tensors requires grad."""

    @staticmethod
    def forward(ctx, x, w):
        if ctx.needs_input_grad[0] != ctx.needs_input_grad[1]:
            raise ValueError("both or none")
        return OneRefusedRight.forward(ctx, x, w)


def test_a_refused_mask_is_not_taken_for_another_refusal():
    found = accuses(Declaration(Picky, "float[n]", "float[n]"), "VJP-PURE", "DBL-CORRECT")
    assert {v.word for _, v in found} == {"raises"}
    assert {line["property"] for line, _ in found} == {"VJP-PURE", "DBL-CORRECT"}
