"""Wrong Functions with faults that look like an excuse, and right ones that look suspicious."""

from __future__ import annotations

import torch
from torch.autograd import Function

from autograd_conformance.selftests.check.specimens import right, wrong
from autograd_conformance.selftests.check.specimens.dtypes import DECISIVE, Scaled
from autograd_conformance.selftests.check.specimens.functions import Sine, SineSlope

# A refusal comes from forward.


class EmptyInBackward(Sine):
    """backward takes the largest of no elements."""

    @staticmethod
    def backward(ctx, g):
        x = ctx.saved_tensors[0]
        return g * x.cos() * (x.max() < 1e30)


class LaidOutInBackward(Sine):
    """backward alone takes contiguous inputs only."""

    @staticmethod
    def backward(ctx, g):
        x = ctx.saved_tensors[0]
        return g * x.view(-1).cos().view(x.shape)


class DtypeInBackward(Sine):
    """backward alone lacks bfloat16."""

    @staticmethod
    def backward(ctx, g):
        if g.dtype == torch.bfloat16:
            raise RuntimeError("no kernel for bfloat16")
        return Sine.backward(ctx, g)


class MaskInBackward(Function):
    """backward has no gradient where it was not asked for one."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        if ctx.needs_input_grad[0]:
            gx = g * w
        if ctx.needs_input_grad[1]:
            gw = g * x
        return gx, gw


class Unbound(Sine):
    """forward returns a name that has a value only if there are elements."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        if x.numel():
            y = x.sin()
        return y


class NumberInBackward(Sine):
    """backward returns a number."""

    @staticmethod
    def backward(ctx, g):
        return float(g.numel() * ctx.saved_tensors[0].numel())


class NoTangent(Sine):
    """jvp returns None."""

    @staticmethod
    def jvp(ctx, t):
        ctx.tangent = t


class UnboundInBackward(Sine):
    """backward returns a name that has a value only if there are elements."""

    @staticmethod
    def backward(ctx, g):
        if g.numel():
            found = g * ctx.saved_tensors[0].cos()
        return found


class NoSuchAttribute(Sine):
    """forward uses an attribute that tensors lack, unless they are contiguous."""

    @staticmethod
    def forward(ctx, x):
        return Sine.forward(ctx, x if x.is_contiguous() else x.contiguously())


class NoSuchFunction(Sine):
    """forward uses a function that torch lacks, in float16."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sine(x) if x.dtype == torch.float16 else x.sin()


class MisfitWhenEmpty(Sine):
    """backward returns a gradient of another shape, if there are no elements."""

    @staticmethod
    def backward(ctx, g):
        return Sine.backward(ctx, g) if g.numel() else g.new_zeros(3)


class AssertedInside(Sine):
    """Breaks an assertion of the framework without elements."""

    @staticmethod
    def forward(ctx, x):
        if not x.numel():
            raise RuntimeError("storage_ INTERNAL ASSERT FAILED at Storage.cpp:1, please report a bug to PyTorch.")
        return Sine.forward(ctx, x)


class _SineSlope(SineSlope):
    """A mistake in backward."""

    @staticmethod
    def backward(ctx, h):
        x, g = ctx.saved_tensors
        return (-x.sin() * g * h).new_zeros(7), x.cos() * h


class MisfitWhenTwice(Sine):
    """The second derivative has another shape."""

    @staticmethod
    def backward(ctx, g):
        return _SineSlope.apply(ctx.saved_tensors[0], g)


class EmptyRefused(Sine):
    """forward refuses tensors without elements. Right."""

    @staticmethod
    def forward(ctx, x):
        if not x.numel():
            raise ValueError("no elements")
        return Sine.forward(ctx, x)


class EmptyRefusedWithoutBias(Function):
    """x.sin() + bias, of which forward refuses tensors without elements. Right."""

    @staticmethod
    def forward(ctx, x, bias=None):
        if not x.numel():
            raise ValueError("no elements")
        ctx.save_for_backward(x)
        return x.sin() if bias is None else x.sin() + bias

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return x.cos() * g, g.sum(0) if ctx.needs_input_grad[1] else None


class HugeRefused(Sine):
    """forward refuses numbers near the largest. Right."""

    LARGEST = 1e30

    @staticmethod
    def forward(ctx, x):
        if bool((x.abs() > 1e30).any()):
            raise ValueError("too large")
        return Sine.forward(ctx, x)


class LargeRefused(Sine):
    """forward refuses numbers that a 16-bit dtype holds. Right."""

    LARGEST = 1e4

    @staticmethod
    def forward(ctx, x):
        if bool((x.abs() > 1e4).any()):
            raise ValueError("too large")
        return Sine.forward(ctx, x)


class LargeRefusedWrongBelow(LargeRefused):
    """forward refuses large numbers; backward spoils smaller ones."""

    @staticmethod
    def backward(ctx, g):
        x = ctx.saved_tensors[0]
        return g * torch.where(x.abs() > 1000, torch.nan, x.cos())


class LayoutRefused(Sine):
    """forward refuses tensors that are not contiguous. Right."""

    @staticmethod
    def forward(ctx, x):
        assert x.is_contiguous(), "contiguous tensors alone"
        return Sine.forward(ctx, x)


class DtypeRefused(Sine):
    """forward refuses bfloat16. Right."""

    @staticmethod
    def forward(ctx, x):
        if x.dtype == torch.bfloat16:
            raise NotImplementedError("no kernel for bfloat16")
        return Sine.forward(ctx, x)


class TwiceRefused(Sine):
    """backward refuses to be differentiated. Right."""

    @staticmethod
    def backward(ctx, g):
        if torch.is_grad_enabled():
            raise RuntimeError("no second derivatives")
        return Sine.backward(ctx, g)


# What the suite itself raises is not a refusal.


class OneMissing(Scaled):
    """One of two tensors never gets a gradient."""

    @staticmethod
    def backward(ctx, g):
        return Scaled.backward(ctx, g)[0], None


class FewerWhenEmpty(Function):
    """Returns one tensor instead of two, if there are no elements."""

    @staticmethod
    def forward(_, x):
        return (x * 2, x * 3) if x.numel() else x * 2

    @staticmethod
    def backward(_, *gs):
        return sum(k * g for k, g in zip((2, 3), gs, strict=False))


class Flagged(Function):
    """x.sin() and a mask, with a rule for forward mode. Right."""

    @staticmethod
    def forward(x):
        return x.sin(), x > 0

    @staticmethod
    def setup_context(ctx, inputs, outputs):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)
        ctx.mark_non_differentiable(outputs[1])

    @staticmethod
    def backward(ctx, g, _):
        return g * ctx.saved_tensors[0].cos()

    @staticmethod
    def jvp(ctx, t):
        return t * ctx.saved_tensors[0].cos(), None


class FlaggedWrong(Flagged):
    """The rule for forward mode has a factor too many."""

    @staticmethod
    def jvp(ctx, t):
        return 2 * t * ctx.saved_tensors[0].cos(), None


# Lower precision inside.


class SingleInForward(Sine):
    """forward computes in single precision, whatever it is given."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.float().sin().to(x.dtype)


class SingleInBackward(Sine):
    """backward computes in single precision, whatever it is given."""

    @staticmethod
    def backward(ctx, g):
        return (g.float() * ctx.saved_tensors[0].float().cos()).to(g.dtype)


class SingleInSum(Function):
    """The sum alone is computed in single precision."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x * x).float().sum(-1).to(x.dtype)

    @staticmethod
    def backward(ctx, g):
        return 2 * g[..., None] * ctx.saved_tensors[0]


_ONE, _TWO = ("float[n,m]",), ("float[n,m]", "float[n,m]")
_BACKWARD = "forward accepted this call, so backward must not raise"
_NO_VALUE, _NO_ATTRIBUTE = "a name is used that has no value", "an attribute is used that does not exist"
_MISFIT = "a gradient that does not fit its input"
_FORWARD = ("JVP-REF", "JVP-ADJOINT")

SPECIMENS = (
    *(
        wrong(function.__name__, head, function, *arguments, word=word, says=says)
        for function, arguments, head, word, says in (
            (EmptyInBackward, _ONE, "FWD-EMPTY", "edge", _BACKWARD),
            (LaidOutInBackward, _ONE, "FWD-LAYOUT", "raises", "view size is not compatible"),
            (DtypeInBackward, _ONE, "VJP-REF", "raises", _BACKWARD),
            (MaskInBackward, _TWO, "VJP-MASK", "raises", _NO_VALUE),
            (Unbound, _ONE, "FWD-EMPTY", "raises", _NO_VALUE),
            (UnboundInBackward, _ONE, "FWD-EMPTY", "raises", _NO_VALUE),
            (NoSuchAttribute, _ONE, "FWD-LAYOUT", "raises", _NO_ATTRIBUTE),
            (NoSuchFunction, _ONE, "VJP-REF", "raises", _NO_ATTRIBUTE),
            (MisfitWhenEmpty, _ONE, "FWD-EMPTY", "edge", _MISFIT),
            (NumberInBackward, _ONE, "VJP-NONE", "raises", "backward must return tensors or None"),
            (NoTangent, _ONE, "JVP-REF", "raises", "jvp must return a floating-point tangent"),
            (AssertedInside, _ONE, "FWD-EMPTY", "raises", "an assertion inside the framework failed"),
            (MisfitWhenTwice, _ONE, "DBL-CORRECT", "raises", _MISFIT),
        )
    ),
    wrong(
        "a number of outputs that varies", "FWD-EMPTY", FewerWhenEmpty, "float[n]", word="raises",
        says="the number of tensors that it returns varies: 1 here, 2 before",
    ),
    # Forward mode goes with outputs that are not numbers.
    right("a rule for forward mode", " ".join(f"{name}*" for name in (*DECISIVE.split(), *_FORWARD)), Flagged, *_ONE,
          decided=False),
    wrong(
        "a wrong rule for forward mode", "JVP-REF", FlaggedWrong, *_ONE, tests="JVP-REF* JVP-ADJOINT*",
        word="wrong", met_by=_FORWARD, profile="quick",
    ),
    *(
        right(function.__name__, f"{DECISIVE} VJP-FINITE", function, *_ONE, decided=False)
        for function in (EmptyRefused, LayoutRefused, DtypeRefused, TwiceRefused, HugeRefused, LargeRefused)
    ),
)  # fmt: skip
