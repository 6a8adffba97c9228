"""What Functions return: sparse tensors, and numbers of less precision than they were given."""

from __future__ import annotations

import torch

from autograd_conformance.harness.check import Declaration
from autograd_conformance.selftests.check.specimens import right, wrong
from autograd_conformance.selftests.check.specimens.functions import custom, function, wide

# What sparse gradients and other dtypes are met by.
SEVERAL = "VJP-FD* VJP-REF* VJP-PURE* VJP-CHAIN* VJP-REPEAT* DBL-CORRECT*"
TABLE = ("float[v,d]", "int[b](0..v-1)")


def _sparse(index, values, shape):
    return torch.sparse_coo_tensor(index.reshape(1, -1), values, shape, check_invariants=True), None


def _of_bag(g, _, table, index):
    values = g.unsqueeze(1).expand(*index.shape, g.shape[-1]).reshape(index.numel(), g.shape[-1])
    return _sparse(index, values, table.shape)


def _rows(ctx, table, index):
    ctx.save_for_backward(index)
    ctx.shape = table.shape
    return table[index]


def _of_rows(ctx, g):
    return _sparse(ctx.saved_tensors[0], g, ctx.shape)


def _overwriting(ctx, g):
    """Of the gradients of one row only the last one counts."""
    dense = torch.zeros(ctx.shape, dtype=g.dtype)
    dense[ctx.saved_tensors[0]] = g
    return dense.to_sparse(), None


def _writing(ctx, g):
    """Changes the gradient, whose values are those of the cotangent."""
    found = _of_rows(ctx, g)
    found[0]._values().mul_(2)
    return found


def _embedding(backward=_of_rows):
    """Rows of a table, with that gradient."""
    return custom("Embedding", forward=_rows, backward=backward)


embedding = Declaration(_embedding(), *TABLE)


def returning(made, constant=False):
    """Twice x in another kind of tensor, or next to one that is not differentiable."""

    def forward(ctx, x):
        other = made(x.detach())
        if constant:
            ctx.mark_non_differentiable(other)
        return (2 * x, other) if constant else other

    return Declaration(custom(forward=forward, backward=lambda _, g, *__: 2 * g), "float[n,m]", dtypes="float32")


# Less precision than was given.


def _narrow(factor=1.0):
    """A sum of products, in single precision, with that factor on its second gradient."""

    def gradients(g, _, x, w):
        wide = g[..., None].to(x.dtype)
        return wide * w, factor * wide * x

    return function(lambda x, w: (x * w).sum(-1).float(), gradients)


narrow_gradient = Declaration(function(torch.exp, lambda g, y, _: (g * y).float()), "float[...]")
PRODUCTS = ("float[...,n]", "float[...,n]")


def _beside(*others, doubled=1):
    """The exponential and the sum, with what is no tensor between them."""

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.exp(), *others, x.sum()

    def backward(ctx, g, *rest):
        (x,) = ctx.saved_tensors
        return doubled * g * x.exp() + rest[-1]

    return custom(forward=forward, backward=backward)


OF_OUTPUTS = "VJP-FD VJP-UNUSED VJP-NONDIFF VJP-REF VJP-FINITE VJP-REF/range VJP-FINITE/far"
SPECIMENS = (
    right("None among the outputs", OF_OUTPUTS, _beside(None), "float[...]", decided=False),
    right("a text among the outputs", OF_OUTPUTS, _beside("hello", 3), "float[...]", decided=False),
    wrong("another factor beside None", "VJP-FD", _beside(None, doubled=2), "float[...]"),
    right("a sparse gradient", SEVERAL, embedding, decided=False),
    # Their rounding is no fault.
    right(
        "rows that are named several times",
        "VJP-ACCUMULATE*",
        function(lambda table, index: table[index].sum(1), _of_bag),
        "float[v,d]",
        "int[b,k](0..v-1)",
        decided=False,
    ),
    wrong("a sparse gradient of which the last counts", "VJP-FD", _embedding(_overwriting), *TABLE, tests="VJP-FD*"),
    wrong("a sparse gradient that is written to", "VJP-PURE", _embedding(_writing), *TABLE, tests="VJP-PURE*"),
    right(
        "a sparse output that is not differentiable",
        "FWD-VALUE* VJP-FD*",
        returning(torch.Tensor.to_sparse, constant=True),
        decided=False,
    ),
    right("single precision for double", SEVERAL, _narrow(), *PRODUCTS, casts=True, taken=True),
    right(
        "single precision for half",
        SEVERAL,
        function(lambda x: wide(x).sin(), lambda g, _, x: (g * x.to(g.dtype).cos()).to(x.dtype)),
        "float[...]",
        casts=True,
        taken=True,
    ),
    wrong(
        "a wrong gradient in single precision",
        "VJP-FD",
        _narrow(1.01),
        *PRODUCTS,
        casts=True,
        tests="VJP-FD*",
        profile="quick",
    ),
    right("a gradient in single precision", SEVERAL, narrow_gradient, decided=False),
)
