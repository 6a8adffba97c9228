"""Faults of which a word would be wrong: whose cause is that of another method, kind of failure, or choice."""

from __future__ import annotations

import torch

from autograd_conformance.selftests.check.specimens import right, wrong
from autograd_conformance.selftests.check.specimens.functions import custom, function

TWO = ("float[n,k]", "float[k,m]")
# What is left behind by forward, by backward, and after both; and what repeats the call.
LEFT = "FWD-PURE VJP-PURE MEM-FREE VJP-REPEAT FWD-LAYOUT VJP-LINEAR VJP-COTANGENT-LAYOUT"


def _product(ctx, x, w):
    ctx.save_for_backward(x, w)
    return x @ w


def _into_input(ctx, g):
    x, w = ctx.saved_tensors
    of_w = x.T @ g
    return x.detach().copy_(g @ w.T), of_w


def _into_cotangent(ctx, g):
    x, w = ctx.saved_tensors
    of_x, of_w = g @ w.T, x.T @ g
    g.mul_(2)
    return of_x, of_w


def _new(ctx, g):
    x, w = ctx.saved_tensors
    return g @ w.T, x.T @ g


def _raises_for_many(_, g):
    if g.numel() > 1:
        raise ValueError("one at a time")
    return g


def _picked(g, _, x, index):
    """Twice as large where x is shorter than the index, which has a value twice there."""
    found = torch.zeros_like(x).index_add(0, index, g)
    return found * (1 if len(x) >= len(index) else 2), None


def _overwritten(g, _, x, index):
    return torch.zeros_like(x).index_put((index,), g), None


PICKED = ("float[n]", "int[k](0..n-1)")
SPECIMENS = (
    *(
        wrong(
            f"backward writes into {what}", "VJP-PURE", custom(forward=_product, backward=backward), *TWO, tests=LEFT,
            says="backward writes into", unsaid=("forward changes an input", "reference cycle", "state is kept"),
            seed=1, once=True,
        )
        for what, backward in {"an input": _into_input, "a cotangent": _into_cotangent}.items()
    ),
    right("backward writes into its own", LEFT, custom(forward=_product, backward=_new), *TWO, once=True),
    wrong(
        "an exception of backward", "VJP-PURE", custom(forward=lambda _, x: x.clone(), backward=_raises_for_many),
        "float[n]", tests="VJP-PURE MEM-FREE FWD-GRADFLAG VJP-ACCUMULATE", word="raises", says="one at a time",
        unsaid=("reference cycle", "writes into", "keeps or changes later"),
    ),
    wrong(
        "repeated values of an index, and another length", "VJP-FD", function(lambda x, i: x[i], _picked), *PICKED,
        unsaid="different", shrink=True,
    ),
    wrong(
        "repeated values of an index", "VJP-FD", function(lambda x, i: x[i], _overwritten), *PICKED,
        says="all values of argument 1 (i) different", shrink=True,
    ),
)  # fmt: skip
