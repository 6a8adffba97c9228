"""Faults of the forward."""

from __future__ import annotations

from typing import Any

import torch

from autograd_conformance.reference.definitions import COMPLEX
from autograd_conformance.reference.functions.inplace import INPLACE
from autograd_conformance.reference.functions.linear import LINEAR
from autograd_conformance.selftests.faults.properties.definitions import (
    PAIR,
    PRODUCT,
    custom,
    in_gradient,
    in_output,
    in_square,
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


def _tail_lost(width):
    return lambda x, y: torch.where(torch.arange(x.numel()).reshape(x.shape) < width, y, 0)


def _linear_bias_by_flag(xp, ag):
    class FrozenBias(LINEAR.body(xp, ag)):
        @staticmethod
        def forward(ctx, input, weight, bias=None):
            ctx.save_for_backward(input, weight, bias)
            output = input @ xp.matrix_transpose(weight)
            # The fault: the bias is added only where it is trained.
            return output + bias if bias is not None and ctx.needs_input_grad[2] else output

    return FrozenBias


def _restored(x, y):
    with torch.no_grad():
        x.add_(1).sub_(1)
    return y


def _doubled_in_place(x, y):
    x.data.mul_(2)
    return y


def _inplace_unmarked(xp, ctx, x):
    values = xp.to_numpy(x)
    values += 1
    return x


def _inplace_copied(xp, ctx, x):
    ctx.mark_dirty(x)
    return x + 1


FORWARD = (
    in_output(
        "FWD-VALUE RankFourDoubled: wrong for tensors of rank four and more", lambda x, y: y * 2 if x.ndim >= 4 else y
    ),
    in_output("FWD-VALUE TailPast32Lost: the elements past the 32nd are not computed", _tail_lost(32)),
    in_output("FWD-VALUE TailPast256Lost: the elements past the 256th are not computed", _tail_lost(256)),
    in_output("FWD-VALUE/sizes TailPast1024Lost: the elements past number 1024 are not computed", _tail_lost(1024)),
    in_output("FWD-VALUE/sizes TailPast65536Lost: the elements past number 65536 are not computed", _tail_lost(65536)),
    in_output(
        "FWD-VALUE/specials SumsToNothing: 0 times the sum of the input is added, "
        "which is NaN if one element is not finite",
        lambda x, y: y + 0 * torch.sum(x),
    ),
    in_output("FWD-VALUE OffByNano: off by 1e-9, which only double precision shows", lambda x, y: y * (1 + 1e-09)),
    in_output(
        "FWD-VALUE HalfRoundedCoarsely: half precision is computed in eight bits",
        lambda x, y: y.to(torch.float8_e4m3fn).half() if x.dtype == torch.float16 else y,
        "output 0",
        "float16",
    ),
    in_output(
        "FWD-VALUE DoubleInSinglePrecision: double precision is computed in single precision",
        lambda x, y: (x.float() ** 2).double() if x.dtype == torch.float64 else y,
    ),
    planted(
        "FWD-VALUE ComplexUnconjugated: multiplies with the conjugate, which only complex numbers show",
        PRODUCT,
        product_with(lambda xp, ctx, x, y, right: x * xp.conj(y)),
        "output 0",
        "complex",
    ),
    planted(
        "FWD-MASK BiasOnlyWhileTrained: the bias is left out while it is frozen",
        LINEAR,
        _linear_bias_by_flag,
        "output 0",
    ),
    in_square(
        "FWD-MASK InferenceIsCoarser: takes a coarser path when nothing requires grad",
        square_with(lambda xp, ctx, x, y: y if any(ctx.needs_input_grad) else y * (1 + 2**-7)),
        "output 0",
    ),
    in_output(
        "FWD-LAYOUT StridesIgnored: the forward reads a tensor that is not contiguous as if it were",
        lambda x, y: whole_storage(x) ** 2,
    ),
    in_output(
        "FWD-LAYOUT OffsetIgnored: the forward reads from the start of the storage",
        lambda x, y: whole_storage(x, 0) ** 2 if x.is_contiguous() else y,
    ),
    in_output(
        "FWD-LAYOUT ConjugateBitIgnored: a lazily conjugated tensor is read as it is stored",
        lambda x, y: torch.conj(y) if x.is_conj() else y,
        "conjugated",
        dtypes=COMPLEX,
    ),
    in_gradient(
        "FWD-LAYOUT NegativeBitIgnored: backward reads a lazily negated tensor as it is stored",
        lambda g, x, right: -right if x.is_neg() else right,
        "negated",
    ),
    in_gradient(
        "FWD-LAYOUT ExpandedInputSummed: the gradient is wrong where the input has stride 0",
        lambda g, x, right: right * x.shape[0] if 0 in x.stride() else right,
    ),
    in_gradient(
        "FWD-LAYOUT ChannelsLastScaled: the gradient is wrong where a rank-4 input lies channels last",
        lambda g, x, right: (
            right * 2
            if x.ndim == 4 and x.is_contiguous(memory_format=torch.channels_last) and not x.is_contiguous()
            else right
        ),
    ),
    in_output(
        "FWD-EMPTY EmptyRefused: reshapes with -1, which is ambiguous without elements",
        lambda x, y: torch.reshape(y, (*x.shape[:1], -1)).view_as(y),
        "the call raised",
    ),
    in_output(
        "FWD-EMPTY ScalarBecomesRow: a 0-d tensor comes back with one dimension",
        lambda x, y: y if x.shape else torch.reshape(y, (1,)),
        "the call raised",
        "shape",
    ),
    in_gradient(
        "FWD-EMPTY EmptyGetsNoGradient: backward returns None for a tensor without elements",
        lambda g, x, right: right if x.numel() else None,
        "gradient of argument 0 (x)",
        "None",
    ),
    in_gradient(
        "FWD-EMPTY ScalarGradientDoubled: the gradient of a 0-d tensor is doubled",
        lambda g, x, right: right if x.shape else 2 * right,
    ),
    in_output(
        "FWD-PURE ChangedAndRestored: the forward changes its input and changes it back, so that its version rises",
        _restored,
        "what changed in the inputs",
    ),
    in_output(
        "FWD-PURE ChangedBehindTheCounter: the forward doubles its input without raising the version",
        _doubled_in_place,
        "what changed in the inputs",
    ),
    planted(
        "FWD-PURE InplaceUnmarked: changes its input without mark_dirty",
        INPLACE,
        custom(forward=_inplace_unmarked, backward=lambda xp, ctx, g: g),
        "dirty inputs",
    ),
    planted(
        "FWD-PURE InplaceCopied: marks its input dirty and returns another tensor",
        INPLACE,
        custom(forward=_inplace_copied, backward=lambda xp, ctx, g: g),
        "the call raised",
    ),
    planted(
        "FWD-GRADFLAG SecondMarkedConstant: marks a differentiable output as non-differentiable",
        PAIR,
        pair_with(lambda xp, ctx, x, y, z: ctx.mark_non_differentiable(z)),
        "requires_grad of the outputs",
    ),
    in_output(
        "FWD-DTYPE HalfUpcast: half precision comes back in single precision",
        lambda x, y: y.float() if x.dtype == torch.float16 else y,
        "float16",
        "float32",
    ),
    in_output(
        "FWD-DTYPE DoubleDowncast: double precision comes back in single precision",
        lambda x, y: y.float() if x.dtype == torch.float64 else y,
        "float64",
        "float32",
    ),
    in_output(
        "FWD-DTYPE SmallComplexWidened: complex64 is widened by a double-precision constant",
        lambda x, y: y.to(torch.complex128) if x.dtype == torch.complex64 else y,
        "complex64",
        "complex128",
    ),
)
