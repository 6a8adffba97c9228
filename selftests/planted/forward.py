"""Faults of the forward."""

# The hooks of a body take parameters that not each of them uses.
# ruff: noqa: ARG001, ARG005

from __future__ import annotations

from typing import Any

import torch

from autograd_conformance.reference.definitions import COMPLEX
from autograd_conformance.reference.functions.inplace import INPLACE
from autograd_conformance.reference.functions.linear import LINEAR
from autograd_conformance.selftests.planted.definitions import (
    PAIR,
    PRODUCT,
    SQUARE,
    custom,
    pair_with,
    planted,
    product_with,
    square_with,
)


def whole_storage(x: Any, start: int | None = None) -> Any:
    """What a kernel reads that takes the tensor for a contiguous one."""
    if not x.numel():
        return x
    everything = x.as_strided((x.untyped_storage().nbytes() // x.element_size(),), (1,), 0)
    first = x.storage_offset() if start is None else start
    return everything[(torch.arange(x.numel()) + first) % everything.numel()].reshape(x.shape)


def _tail_lost(width: int) -> Any:
    def output(xp: Any, ctx: Any, x: Any, y: Any) -> Any:
        places = xp.reshape(xp.arange(x.numel()), tuple(x.shape))
        return xp.where(places < width, y, xp.zeros_like(y))

    return output


def _linear_bias_by_flag(xp: Any, ag: Any) -> Any:
    class FrozenBias(LINEAR.body(xp, ag)):
        @staticmethod
        def forward(ctx, input, weight, bias=None):
            ctx.save_for_backward(input, weight, bias)
            output = input @ xp.matrix_transpose(weight)
            # The fault: the bias is added only where it is trained.
            return output + bias if bias is not None and ctx.needs_input_grad[2] else output

    return FrozenBias


def _restored(xp: Any, ctx: Any, x: Any, y: Any) -> Any:
    with torch.no_grad():
        x.add_(1).sub_(1)
    return y


def _doubled_in_place(xp: Any, ctx: Any, x: Any, y: Any) -> Any:
    x.data.mul_(2)
    return y


def _inplace_unmarked(xp: Any, ctx: Any, x: Any) -> Any:
    values = xp.to_numpy(x)
    values += 1
    return x


def _inplace_copied(xp: Any, ctx: Any, x: Any) -> Any:
    ctx.mark_dirty(x)
    return x + 1


FORWARD = (
    planted(
        "FWD-VALUE",
        SQUARE,
        "RankFourDoubled",
        square_with(lambda xp, ctx, x, y: y * 2 if x.ndim >= 4 else y),
        "wrong for tensors of rank four and more",
        "output 0",
    ),
    planted(
        "FWD-VALUE",
        SQUARE,
        "TailPast32Lost",
        square_with(_tail_lost(32)),
        "the elements past the 32nd are not computed",
        "output 0",
    ),
    planted(
        "FWD-VALUE",
        SQUARE,
        "TailPast256Lost",
        square_with(_tail_lost(256)),
        "the elements past the 256th are not computed",
        "output 0",
    ),
    *(
        planted(
            "FWD-VALUE",
            SQUARE,
            f"TailPast{width}Lost",
            square_with(_tail_lost(width)),
            f"the elements past number {width} are not computed",
            "output 0",
            variant="sizes",
        )
        for width in (1024, 65536)
    ),
    planted(
        "FWD-VALUE",
        SQUARE,
        "SumsToNothing",
        square_with(lambda xp, ctx, x, y: y + 0 * xp.sum(x)),
        "0 times the sum of the input is added, which is NaN if one element is not finite",
        "output 0",
        variant="specials",
    ),
    planted(
        "FWD-VALUE",
        SQUARE,
        "OffByNano",
        square_with(lambda xp, ctx, x, y: y * (1 + 1e-9)),
        "off by 1e-9, which only double precision shows",
        "output 0",
    ),
    planted(
        "FWD-VALUE",
        SQUARE,
        "HalfRoundedCoarsely",
        square_with(lambda xp, ctx, x, y: y.to(torch.float8_e4m3fn).half() if x.dtype == torch.float16 else y),
        "half precision is computed in eight bits",
        "output 0",
        "float16",
    ),
    planted(
        "FWD-VALUE",
        SQUARE,
        "DoubleInSinglePrecision",
        square_with(lambda xp, ctx, x, y: (x.float() ** 2).double() if x.dtype == torch.float64 else y),
        "double precision is computed in single precision",
        "output 0",
    ),
    planted(
        "FWD-VALUE",
        PRODUCT,
        "ComplexUnconjugated",
        product_with(lambda xp, ctx, x, y, right: x * xp.conj(y)),
        "multiplies with the conjugate, which only complex numbers show",
        "output 0",
        "complex",
    ),
    planted(
        "FWD-MASK",
        LINEAR,
        "BiasOnlyWhileTrained",
        _linear_bias_by_flag,
        "the bias is left out while it is frozen",
        "output 0",
    ),
    planted(
        "FWD-MASK",
        SQUARE,
        "InferenceIsCoarser",
        square_with(lambda xp, ctx, x, y: y if any(ctx.needs_input_grad) else y * (1 + 2**-7)),
        "takes a coarser path when nothing requires grad",
        "output 0",
    ),
    *(
        planted("FWD-LAYOUT", SQUARE, name, body, fault, says, **options)
        for name, body, fault, says, options in (
            (
                "StridesIgnored",
                square_with(lambda xp, ctx, x, y: whole_storage(x) ** 2),
                "the forward reads a tensor that is not contiguous as if it were",
                "output 0",
                {},
            ),
            (
                "OffsetIgnored",
                square_with(lambda xp, ctx, x, y: whole_storage(x, 0) ** 2 if x.is_contiguous() else y),
                "the forward reads from the start of the storage",
                "output 0",
                {},
            ),
            (
                "ConjugateBitIgnored",
                square_with(lambda xp, ctx, x, y: xp.conj(y) if x.is_conj() else y),
                "a lazily conjugated tensor is read as it is stored",
                "conjugated",
                {"changes": {"dtypes": COMPLEX}},
            ),
            (
                "NegativeBitIgnored",
                square_with(gradient=lambda xp, ctx, g, x, right: -right if x.is_neg() else right),
                "backward reads a lazily negated tensor as it is stored",
                "negated",
                {},
            ),
            (
                "ExpandedInputSummed",
                square_with(gradient=lambda xp, ctx, g, x, right: right * x.shape[0] if 0 in x.stride() else right),
                "the gradient is wrong where the input has stride 0",
                "gradient of argument 0 (x)",
                {},
            ),
            (
                "ChannelsLastScaled",
                square_with(
                    gradient=lambda xp, ctx, g, x, right: (
                        right * 2
                        if x.ndim == 4 and x.is_contiguous(memory_format=torch.channels_last) and not x.is_contiguous()
                        else right
                    )
                ),
                "the gradient is wrong where a rank-4 input lies channels last",
                "gradient of argument 0 (x)",
                {},
            ),
        )
    ),
    planted(
        "FWD-EMPTY",
        SQUARE,
        "EmptyRefused",
        square_with(lambda xp, ctx, x, y: xp.reshape(y, (*x.shape[:1], -1)).view_as(y)),
        "reshapes with -1, which is ambiguous without elements",
        "the call raised",
    ),
    planted(
        "FWD-EMPTY",
        SQUARE,
        "ScalarBecomesRow",
        square_with(lambda xp, ctx, x, y: y if x.shape else xp.reshape(y, (1,))),
        "a 0-d tensor comes back with one dimension",
        "the call raised",
        "shape",
    ),
    planted(
        "FWD-EMPTY",
        SQUARE,
        "EmptyGetsNoGradient",
        square_with(gradient=lambda xp, ctx, g, x, right: right if x.numel() else None),
        "backward returns None for a tensor without elements",
        "gradient of argument 0 (x)",
        "None",
    ),
    planted(
        "FWD-EMPTY",
        SQUARE,
        "ScalarGradientDoubled",
        square_with(gradient=lambda xp, ctx, g, x, right: right if x.shape else 2 * right),
        "the gradient of a 0-d tensor is doubled",
        "gradient of argument 0 (x)",
    ),
    planted(
        "FWD-PURE",
        SQUARE,
        "ChangedAndRestored",
        square_with(_restored),
        "the forward changes its input and changes it back, so that its version rises",
        "what changed in the inputs",
    ),
    planted(
        "FWD-PURE",
        SQUARE,
        "ChangedBehindTheCounter",
        square_with(_doubled_in_place),
        "the forward doubles its input without raising the version",
        "what changed in the inputs",
    ),
    planted(
        "FWD-PURE",
        INPLACE,
        "InplaceUnmarked",
        custom(forward=_inplace_unmarked, backward=lambda xp, ctx, g: g),
        "changes its input without mark_dirty",
        "dirty inputs",
    ),
    planted(
        "FWD-PURE",
        INPLACE,
        "InplaceCopied",
        custom(forward=_inplace_copied, backward=lambda xp, ctx, g: g),
        "marks its input dirty and returns another tensor",
        "the call raised",
    ),
    planted(
        "FWD-GRADFLAG",
        PAIR,
        "SecondMarkedConstant",
        pair_with(lambda xp, ctx, x, y, z: ctx.mark_non_differentiable(z)),
        "marks a differentiable output as non-differentiable",
        "requires_grad of the outputs",
    ),
    planted(
        "FWD-DTYPE",
        SQUARE,
        "HalfUpcast",
        square_with(lambda xp, ctx, x, y: y.float() if x.dtype == torch.float16 else y),
        "half precision comes back in single precision",
        "float16",
        "float32",
    ),
    planted(
        "FWD-DTYPE",
        SQUARE,
        "DoubleDowncast",
        square_with(lambda xp, ctx, x, y: y.float() if x.dtype == torch.float64 else y),
        "double precision comes back in single precision",
        "float64",
        "float32",
    ),
    planted(
        "FWD-DTYPE",
        SQUARE,
        "SmallComplexWidened",
        square_with(lambda xp, ctx, x, y: y.to(torch.complex128) if x.dtype == torch.complex64 else y),
        "complex64 is widened by a double-precision constant",
        "complex64",
        "complex128",
    ),
)
