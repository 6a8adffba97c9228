"""One fault of a user's Function is one block: what follows from it has none of its own."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("torch")

import torch

from autograd_conformance import implementations
from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.check.discovery import discover
from autograd_conformance.harness.check.printing import Finds, headlines, rows
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.selftests.checking import faults_in, faults_of, lines_of
from autograd_conformance.suites.declared import Checked


def _heads(declaration, *asked, shrink=False):
    """The headlines of a Function's faults, and the tests that found any."""
    faults = faults_of(declaration, *asked, shrink=shrink)
    return [ndjson.test_of(line) for line in headlines(faults)], {ndjson.test_of(line) for line, _ in faults}


class WrongTangent(torch.autograd.Function):
    """x * x, whose jvp forgets the factor 2."""

    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, _):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, g):
        return 2 * g * ctx.saved_tensors[0]

    @staticmethod
    def jvp(ctx, t):
        return t * ctx.saved_tensors[0]


class Strided(torch.autograd.Function):
    """The rows of pairs. Backward reads the memory of its cotangent, which is one number after a sum."""

    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x.unflatten(-1, (-1, 2)).clone()

    @staticmethod
    def backward(ctx, g):
        return g.as_strided(ctx.shape, torch.empty(ctx.shape).stride())


class GivenAway(torch.autograd.Function):
    """The sum of x * y. For the cotangent 1 the gradients are the inputs themselves."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return (x * y).sum()

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return (y, x) if g == 1 else (g * y, g * x)


class Reused(torch.autograd.Function):
    """sin(x). Backward returns a buffer of the class, and writes into it again."""

    buffers: dict = {}  # noqa: RUF012 - the fault

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        buffer = Reused.buffers.setdefault((x.shape, x.dtype), torch.empty(x.shape, dtype=x.dtype))
        return buffer.copy_(g * x.cos())


class Probes(torch.autograd.Function):
    """The mean of fixed random products; forward seeds the random numbers of the process."""

    @staticmethod
    def forward(ctx, x):
        torch.manual_seed(0)
        z = torch.randint(0, 2, x.shape).to(x.dtype) * 2 - 1
        ctx.save_for_backward(z)
        return x * z

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


class Squeezed(torch.autograd.Function):
    """|x - y|^2 of all pairs of rows. Backward drops every dimension of length 1."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return (x[:, None] - y[None]).square().sum(-1)

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        d = (2 * g[..., None] * (x[:, None] - y[None])).squeeze()
        return d.sum(1), -d.sum(0)


class NormOfRows(torch.autograd.Function):
    """The norm of each row, with a small number under the root; without it in backward, which is 0 / 0 for zeros."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x.square().sum(-1) + 1e-6).sqrt()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g.unsqueeze(-1) * x / x.norm(dim=-1, keepdim=True)


class Line(torch.autograd.Function):
    """w^2 / (x^2 + w^2), with an approximation in backward that is wrong far from 0."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return w * w / (x * x + w * w)

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        d = x * x + w * w
        wing = -2 * g * w / x**3
        return torch.where(x.abs() > 8, wing, -2 * g * x * w * w / d**2), 2 * g * w * x * x / d**2


class OfContiguous(torch.autograd.Function):
    """2 x. Backward is right for a contiguous cotangent alone."""

    @staticmethod
    def forward(ctx, x):  # noqa: ARG004 - the interface
        return 2 * x

    @staticmethod
    def backward(ctx, g):  # noqa: ARG004 - the interface
        return 2 * g if g.is_contiguous() else 3 * g


class OfContiguousInputs(torch.autograd.Function):
    """2 x. Backward is right for a contiguous input alone."""

    @staticmethod
    def forward(ctx, x):
        ctx.factor = 2 if x.is_contiguous() else 3
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return ctx.factor * g


class Rolled(torch.autograd.Function):
    """A rotation by half of the length. Backward rotates the wrong way, which equal cotangents do not show."""

    @staticmethod
    def forward(ctx, x):
        ctx.by = x.shape[-1] // 2
        return x.roll(ctx.by, -1)

    @staticmethod
    def backward(ctx, g):
        return g.roll(ctx.by, -1)


class Scaled(torch.autograd.Function):
    """2 x. Backward multiplies a saved buffer in place, so that a second one is wrong."""

    @staticmethod
    def forward(ctx, x):
        ctx.buffer = torch.full_like(x, 2.0)
        return 2 * x

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        return ctx.buffer.mul_(g).clone()


ONE_FAULT = {
    "VJP-FD of a rotation": (Declaration(Rolled, "float[b,n]"), {"VJP-FD", "DBL-CORRECT"}),
    "VJP-REPEAT": (Declaration(Scaled, "float[n]", once=True), {"VJP-REPEAT", "VJP-LINEAR"}),
    "VJP-FD": (Declaration(Line, "float[n](-20..20)", "float[](0.5..2)"), {"VJP-FD", "VJP-FD/kinks"}),
    "VJP-COTANGENT-LAYOUT": (Declaration(OfContiguous, "float[n,m]"), {"VJP-COTANGENT-LAYOUT", "VJP-CHAIN"}),
    "FWD-LAYOUT": (Declaration(OfContiguousInputs, "float[n,m]"), {"FWD-LAYOUT", "VJP-CHAIN"}),
    "VJP-COTANGENT-LAYOUT by an exception": (
        Declaration(Strided, "float[b,2*n]"), {"VJP-COTANGENT-LAYOUT", "VJP-CHAIN"},
    ),
    "VJP-PURE": (Declaration(GivenAway, "float[n]", "float[n]"), {"VJP-PURE", "VJP-PURE/owned"}),
    "VJP-FINITE": (Declaration(NormOfRows, "float[b,n]", once=True), {"VJP-FINITE"}),
    "JVP-REF": (Declaration(WrongTangent, "float[n]"), {"JVP-REF", "JVP-ADJOINT"}),
    "VJP-PURE/owned": (
        Declaration(Reused, "float[n]", once=True),
        {"VJP-PURE/owned", "VJP-CHAIN/instances", "ENV-THREADS", "MEM-FREE"},
    ),
    "ENV-SETTINGS/seeds": (Declaration(Probes, "float[n,m]"), {"ENV-SETTINGS/seeds", "ENV-THREADS"}),
    "VJP-REF": (
        Declaration(Squeezed, "float[n,d]", "float[m,d]"), {"VJP-REF", "FWD-LAYOUT", "VJP-FIT"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("shrink", [False, True], ids=["drawn", "smallest"])
@pytest.mark.parametrize("head", ONE_FAULT)
def test_what_follows_from_a_fault_has_no_block_of_its_own(head, shrink):
    declaration, tests = ONE_FAULT[head]
    # Threads meet by chance, and what they meet is explained in the smallest call.
    certain = tests - {"ENV-THREADS"}
    heads, found_by = _heads(declaration, *{t.split("/")[0] for t in (tests if shrink else certain)}, shrink=shrink)
    assert found_by - {"VJP-REF/averages"} >= certain
    assert heads == head.split()[:1]


class AddedIfTrained(torch.autograd.Function):
    """x + b, or x alone while b requires no grad."""

    @staticmethod
    def forward(ctx, x, b):
        return x + b if ctx.needs_input_grad[1] else x.clone()

    @staticmethod
    def backward(_, g):
        return g, g.sum(0)


def test_a_forward_that_branches_on_the_mask_is_one_fault():
    heads, every = _heads(Declaration(AddedIfTrained, "float[n,m]", "float[m]"), "FWD-VALUE", "FWD-MASK", "VJP-FD")
    assert heads == ["FWD-MASK"]
    assert {"FWD-VALUE", "VJP-FD"} < every


def test_no_shape_is_blamed_for_a_cotangent():
    lines = Checked(Declaration(GivenAway, "float[n]", "float[n]"), seed=0).lines("VJP-PURE", "DBL-CORRECT")
    failures = [line["failure"] for line in lines if line["outcome"] == "fail"]
    assert failures
    assert [failure["right_with"] for failure in failures if "shapes" in failure.get("right_with", "")] == []


def writing(factor, *, clips=False):
    """2 * x, whose backward writes into its cotangent; that alone is wrong with the factor 2 and nothing else."""

    class Writing(torch.autograd.Function):
        @staticmethod
        def forward(_, x):
            return 2 * x

        @staticmethod
        def backward(_, g):
            g.mul_(factor)
            if clips:
                g[g.abs() > 2] = 0
            return g

    return Declaration(Writing, "float[n]")


@pytest.mark.parametrize(
    ("declaration", "heads"),
    [
        (writing(2), ["VJP-PURE"]),
        (writing(3), ["VJP-FD", "VJP-PURE"]),
        (writing(2, clips=True), ["VJP-LINEAR", "VJP-PURE"]),
    ],
    ids=["alone", "factor", "clips"],
)
def test_what_is_wrong_beside_a_write_is_a_fault_of_its_own(declaration, heads):
    asked = ("VJP-FD", "VJP-FD/kinks", "VJP-REF", "VJP-LINEAR", "VJP-PURE", "VJP-REPEAT", "VJP-ACCUMULATE")
    faults = list(faults_in(lines_of(Checked(declaration, profile="quick", seed=1), *asked)))
    assert sorted(line["property"] for line in headlines(faults)) == heads


def test_the_verdict_says_what_was_said_when_faults_were_found(tmp_path):
    declaration, finds = writing(3), Finds()
    lines = list(lines_of(Checked(declaration, profile="quick", seed=1), "VJP-FD", "VJP-REF", "VJP-PURE"))
    found = [row for line in lines for row in finds.rows(line)]
    assert found == [
        "found: Writing: WRONG: VJP-FD",
        "found: Writing: RAISES: VJP-REF",
        "found: Writing: MUTATES: VJP-PURE",
    ]
    facts = discover(declaration, implementations.load("torch"), errors=False)
    text = "\n".join(rows("Writing", facts, lines, tmp_path))
    assert text.count("WRONG: VJP-FD") == text.count("MUTATES: VJP-PURE") == 1
    assert re.search(r"same fault \(raises\): .*\bVJP-REF\b", text)
