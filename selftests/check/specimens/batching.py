"""Rules for vmap: what they get wrong where the batch is. Some are wrong only where it is as long as a dimension."""

from __future__ import annotations

import torch

from autograd_conformance.selftests.check.specimens import seeded, wrong
from autograd_conformance.selftests.check.specimens.functions import custom

ARGUMENTS = "float[n,m]", "float[m,k]"


class Product(torch.autograd.Function):
    """x @ w."""

    @staticmethod
    def forward(x, w):
        return x @ w

    @staticmethod
    def setup_context(ctx, inputs, _):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g @ w.transpose(-1, -2), x.transpose(-1, -2) @ g


def ruled(prepare):
    """`Product` with the rule that ``prepare`` brings both tensors to the front for."""

    def vmap(info, in_dims, x, w):
        return cls.apply(*prepare(info.batch_size, in_dims, x, w)), 0

    cls = custom("Ruled", Product, vmap=vmap)
    return cls


def _front(size, dim, x):
    return x.expand(size, *x.shape) if dim is None else x.movedim(dim, 0)


def right(size, dims, x, w):
    return _front(size, dims[0], x), _front(size, dims[1], w)


def _ignores_the_second(size, dims, x, w):
    return _front(size, dims[0], x), w


def _ignores_the_second_where_it_fits(size, dims, x, w):
    if dims[1] is not None and w.shape[0] != size:
        raise ValueError("the batch of w must come first")
    return _front(size, dims[0], x), _front(size, None if dims[1] is None else 0, w)


def _knows_no_none(_, dims, x, w):
    """This raises by mistake, which refuses nothing."""
    return x.movedim(dims[0], 0), w.movedim(dims[1], 0)


SPECIMENS = tuple(
    seeded(
        (
            wrong("a rule that ignores the second", "BATCH-VMAP", ruled(_ignores_the_second), *ARGUMENTS),
            wrong(
                "a rule that ignores the second where it fits",
                "BATCH-VMAP",
                ruled(_ignores_the_second_where_it_fits),
                *ARGUMENTS,
            ),
            wrong(
                "a rule that knows no None",
                "BATCH-VMAP",
                ruled(_knows_no_none),
                *ARGUMENTS,
                exactly={"kind": "raised"},
                says="NotImplementedError",
            ),
        ),
        4,
    )
)
