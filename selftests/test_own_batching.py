"""Rules for vmap of users' Functions: what they get wrong where the batch is, and what they refuse."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch

from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.check.report.verdicts import REFUSED, verdict
from autograd_conformance.selftests import tiers
from autograd_conformance.selftests.checking import lines_of
from autograd_conformance.suites.declared import Checked

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


def _ruled(prepare):
    """`Product` with the rule that ``prepare`` brings both tensors to the front for."""

    def vmap(info, in_dims, x, w):
        return cls.apply(*prepare(info.batch_size, in_dims, x, w)), 0

    cls = type("Ruled", (Product,), {"vmap": staticmethod(vmap)})
    return cls


def _front(size, dim, x):
    return x.expand(size, *x.shape) if dim is None else x.movedim(dim, 0)


def right(size, dims, x, w):
    return _front(size, dims[0], x), _front(size, dims[1], w)


def ignores_the_second(size, dims, x, w):
    return _front(size, dims[0], x), w


def ignores_the_second_where_it_fits(size, dims, x, w):
    if dims[1] is not None and w.shape[0] != size:
        raise ValueError("the batch of w must come first")
    return _front(size, dims[0], x), _front(size, None if dims[1] is None else 0, w)


def knows_no_none(_, dims, x, w):
    return x.movedim(dims[0], 0), w.movedim(dims[1], 0)


def refuses_the_second(size, dims, x, w):
    if dims[1] not in (None, 0):
        raise RuntimeError("the batch of w must come first")
    return right(size, dims, x, w)


def has_no_rule_for_the_second(size, dims, x, w):
    if dims[1] not in (None, 0):
        raise NotImplementedError
    return right(size, dims, x, w)


def line_of(prepare, seed=0):
    checked = Checked(Declaration(_ruled(prepare), *ARGUMENTS), seed=seed, shrink=tiers.NIGHT)
    (line,) = lines_of(checked, "BATCH-VMAP")
    return line


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("prepare", [ignores_the_second, ignores_the_second_where_it_fits, knows_no_none])
def test_a_wrong_rule_is_found(prepare, seed):
    """One of them is wrong only if the batch is as long as another dimension."""
    assert line_of(prepare, seed)["outcome"] == "fail"


def test_a_rule_that_raises_by_mistake_refuses_nothing():
    failure = line_of(knows_no_none)["failure"]
    assert failure["kind"] == "raised"
    assert "NotImplementedError" in failure["hint"]


@pytest.mark.parametrize("prepare", [refuses_the_second, has_no_rule_for_the_second])
def test_a_rule_that_refuses_a_little_gets_a_note(prepare):
    line = line_of(prepare)
    assert line["outcome"] == "pass"
    assert 0 < 2 * line["excused"] < line["examples"]
    assert verdict(line).word == REFUSED


def test_a_right_rule_gets_none():
    line = line_of(right)
    assert line["outcome"] == "pass"
    assert verdict(line) is None
