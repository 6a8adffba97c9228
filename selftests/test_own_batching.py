"""Rules for vmap of users' Functions: what they may refuse."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch

from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.check.report.verdicts import REFUSED, verdict
from autograd_conformance.selftests import tiers
from autograd_conformance.selftests.checking import lines_of
from autograd_conformance.selftests.specimens.batching import ARGUMENTS, right, ruled
from autograd_conformance.suites.declared import Checked


def refuses_the_second(size, dims, x, w):
    if dims[1] not in (None, 0):
        raise RuntimeError("the batch of w must come first")
    return right(size, dims, x, w)


def has_no_rule_for_the_second(size, dims, x, w):
    if dims[1] not in (None, 0):
        raise NotImplementedError
    return right(size, dims, x, w)


def line_of(function, *arguments):
    (line,) = lines_of(Checked(Declaration(function, *arguments), seed=0, shrink=tiers.NIGHT), "BATCH-VMAP")
    return line


@pytest.mark.parametrize("prepare", [refuses_the_second, has_no_rule_for_the_second])
def test_a_rule_that_refuses_a_little_gets_a_note(prepare):
    line = line_of(ruled(prepare), *ARGUMENTS)
    assert line["outcome"] == "pass"
    assert 0 < 2 * line["excused"] < line["examples"]
    assert verdict(line).word == REFUSED


class Reduced(torch.autograd.Function):
    """The maximum without ties, which an empty tensor has not. Right."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x.exp() * x.amax(-1, keepdim=True).detach() * 0 + x.exp()

    @staticmethod
    def setup_context(ctx, inputs, _):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0].exp()


# The plain call of the second one refuses empty tensors, which is no note on batches.
@pytest.mark.parametrize(("function", "arguments"), [(ruled(right), ARGUMENTS), (Reduced, ("float[...]",))])
def test_a_right_rule_gets_none(function, arguments):
    line = line_of(function, *arguments)
    assert line["outcome"] == "pass"
    assert verdict(line) is None
