"""Functions with one fault, which several tests meet: what follows from it has no block of its own."""

from __future__ import annotations

from dataclasses import replace

import torch

from autograd_conformance.harness.check import Declaration
from autograd_conformance.selftests.check.checking import each_test_of
from autograd_conformance.selftests.check.specimens import Specimen, wrong
from autograd_conformance.selftests.check.specimens.functions import custom, function


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


class AddedIfTrained(torch.autograd.Function):
    """x + b, or x alone while b requires no grad."""

    @staticmethod
    def forward(ctx, x, b):
        return x + b if ctx.needs_input_grad[1] else x.clone()

    @staticmethod
    def backward(_, g):
        return g, g.sum(0)


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


def _from_memory(x):
    return 2 * x.as_strided(x.shape, torch.empty(x.shape).stride())


# 2 x with a gradient of the cotangent's sign; 2 x of the numbers in memory, whose backward writes into its cotangent.
BY_SIGN = function(lambda x: 2 * x, lambda g, *_: 3 * g.sign())
READING = function(_from_memory, lambda g, *_: g.mul_(2))


def _of(head, declaration, tests):
    """The Function whose one fault all tests of these properties meet, in calls as they are drawn."""
    # Threads meet by chance, and what they meet is explained in the smallest call.
    met_by = tuple(sorted(tests - {"ENV-THREADS"}))
    properties = dict.fromkeys(test.split("/")[0] for test in met_by)
    every = tuple(test for property_id in properties for test in each_test_of(property_id))
    return Specimen(head, declaration, every, (head.split()[0],), met_by=met_by)


def _threads(head):
    return each_test_of("ENV-THREADS") if "ENV-THREADS" in ONE_FAULT[head][1] else []


_BESIDE = "VJP-FD VJP-FD/kinks VJP-REF VJP-LINEAR VJP-PURE VJP-REPEAT VJP-ACCUMULATE"
_DRAWN = [_of(head, *row) for head, row in ONE_FAULT.items()]


def _two(ctx, x):
    """There is no gradient if the second output is unused."""
    ctx.set_materialize_grads(False)
    return 2 * x, 3 * x


def _of_both(_, g, h):
    return None if g is None or h is None else 2 * g + 3 * h


def _hard_sigmoid(ctx, x):
    ctx.save_for_backward(x)
    return (x / 6 + 0.5).clamp(0, 1)


def _halved(ctx, g):
    """This writes into its cotangent."""
    (x,) = ctx.saved_tensors
    return g.mul_(((x > -3) & (x < 3)).to(g.dtype) / 6)


def _of_tanh(g, _, x):
    return 1.5 * g * (1 - x.tanh() ** 2)


SPECIMENS = (
    *_DRAWN,
    *(
        replace(each, name=f"{each.name}, smallest", shrink=True, tests=(*each.tests, *_threads(each.name)))
        for each in _DRAWN
    ),
    wrong(
        "a forward that branches on the mask", "FWD-MASK", AddedIfTrained, "float[n,m]", "float[m]",
        tests="FWD-VALUE* FWD-MASK* VJP-FD*",
        met_by=("FWD-VALUE", "VJP-FD"),
    ),
    # A chain calls the Function once, and uses both outputs.
    wrong("a second output that is needed", "VJP-UNUSED", custom(forward=_two, backward=_of_both), "float[n]",
          tests="VJP-CHAIN VJP-UNUSED", profile="quick", seed=1, alone=True),
    # No shape is blamed for a cotangent.
    wrong("a cotangent given away", "VJP-PURE DBL-CORRECT", GivenAway, *("float[n]",) * 2,
          tests="VJP-PURE* DBL-CORRECT*", shrink=True, unsaid="shapes ("),
    wrong("a change of a cotangent", "VJP-PURE", custom(forward=_hard_sigmoid, backward=_halved), "float[n]", once=True,
          tests="VJP-FD* VJP-REF* VJP-PURE*"),
    wrong("another derivative than the declared one", "VJP-FD", function(torch.sign, _of_tanh), "float[n]",
          soft=torch.tanh, says="soft=", unsaid="surrogate=True", tests="VJP-FD*"),
    # What is declared is no cause.
    wrong("a wrong factor, declared nonlinear", "VJP-FD", BY_SIGN, "float[n]", nonlinear=True,
          tests="VJP-FD VJP-CHAIN", alone=True),
    # Backward touches no output.
    wrong("a forward that reads memory, and a write", "FWD-LAYOUT VJP-PURE", READING,
          "float[n,m]", tests="FWD-LAYOUT VJP-PURE"),
    *(
        wrong(name, heads, declaration, tests=_BESIDE, profile="quick", seed=1)
        for name, declaration, heads in (
            ("a write alone", writing(2), "VJP-PURE"),
            ("a write and a factor", writing(3), "VJP-FD VJP-PURE"),
            ("a write that clips", writing(2, clips=True), "VJP-LINEAR VJP-PURE"),
        )
    ),
)  # fmt: skip
