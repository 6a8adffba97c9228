"""Faults of the numbers that backward gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from autograd_conformance.harness.outcomes import Vacuous
from autograd_conformance.reference.definitions import COMPLEX, REAL, Array, Function
from autograd_conformance.reference.functions.elementwise import MY_CUBE, RELU
from autograd_conformance.reference.functions.linear import LINEAR, QKV_PROJECTION
from autograd_conformance.reference.functions.scalars import NUMPY_MUL
from autograd_conformance.selftests.faults.properties.definitions import (
    PAIR,
    PRODUCT,
    custom,
    derived,
    in_gradient,
    in_output,
    pair_with,
    planted,
    product_with,
    unary,
)
from autograd_conformance.selftests.faults.properties.forward import whole_storage


def linear_with(gradients: Any) -> Any:
    """The documented linear Function with another backward."""
    return derived(LINEAR, backward=lambda xp, cls, ctx, g: gradients(xp, ctx.needs_input_grad, g, *ctx.saved_tensors))


def linear_guarded(input_flag: int, weight_flag: int, bias_flag: int) -> Any:
    """Linear's gradients, each guarded by the flag of the argument of that number."""

    def gradients(xp, needs, g, input, weight, bias):
        flags = (*needs, *(False,) * (3 - len(needs)))
        return (
            g @ xp.conj(weight) if flags[input_flag] else None,
            xp.matrix_transpose(g) @ xp.conj(input) if flags[weight_flag] else None,
            xp.sum(g, axis=0) if bias is not None and flags[bias_flag] else None,
        )[: max(len(needs), 2)]

    return linear_with(gradients)


def linear_transposed(xp: Any, needs: Any, g: Any, input: Any, weight: Any, bias: Any) -> Any:
    square = weight.shape[0] == weight.shape[1]
    grad_weight = xp.matrix_transpose(g) @ xp.conj(input)
    # The fault: the memory of the transposed product is given the right shape.
    grad_weight = grad_weight if square else xp.reshape(xp.matrix_transpose(grad_weight), tuple(weight.shape))
    return (g @ xp.conj(weight), grad_weight, None if bias is None else xp.sum(g, axis=0))[: max(len(needs), 2)]


def linear_shared_factor(xp: Any, needs: Any, g: Any, input: Any, weight: Any, bias: Any) -> Any:
    grad_input = g @ xp.conj(weight) if needs[0] else None
    # The fault: the cotangent is prepared for the bias while the gradient of the input is computed.
    prepared = g if needs[0] else g * 0
    grad_bias = xp.sum(prepared, axis=0) if bias is not None else None
    return (grad_input, xp.matrix_transpose(g) @ xp.conj(input), grad_bias)[: max(len(needs), 2)]


def mul_reduced(axes: Any) -> Any:
    """NumpyMul whose gradients are summed over the axes that ``axes(gradient shape, argument shape)`` lists."""

    def backward(xp, ctx, g):
        x, y = ctx.saved_tensors
        pairs = ((g * xp.conj(y), x), (g * xp.conj(x), y))
        return tuple(_summed(xp, gradient, tuple(part.shape), axes) for gradient, part in pairs)

    def setup(xp, ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    return custom(forward=lambda xp, x, y: x * y, setup_context=setup, backward=backward, generate_vmap_rule=True)


def _summed(xp, gradient, shape, axes):
    found = axes(tuple(gradient.shape), shape)
    return xp.reshape(xp.sum(gradient, axis=found) if found else gradient, shape)


def _stretched(wide, narrow):
    padded = (1,) * (len(wide) - len(narrow)) + narrow
    return tuple(n for n, (a, b) in enumerate(zip(wide, padded, strict=True)) if a != b)


def mirrored(wide: tuple[int, ...], narrow: tuple[int, ...]) -> tuple[int, ...]:
    """The right axes, counted from the wrong end where the sizes are the same."""
    right = _stretched(wide, narrow)
    other = tuple(sorted(len(wide) - 1 - n for n in right))
    return other if sorted(wide[n] for n in right) == sorted(wide[n] for n in other) else right


def qkv_last_forgotten(xp: Any, ag: Any) -> Any:
    class LastForgotten(QKV_PROJECTION.body(xp, ag)):
        @staticmethod
        def backward(ctx, *grads):
            g = grads[0] if len(grads) == 1 else list(grads)
            x, *weights = ctx.saved_tensors
            needs = ctx.needs_input_grad
            terms = [part @ xp.matrix_transpose(xp.conj(w)) for part, w in zip(g, weights, strict=True)]
            # The fault: the values' share is left out while their weight is frozen.
            kept = terms if needs[3] else terms[:2]
            return sum(kept[1:], kept[0]), *(xp.matrix_transpose(xp.conj(x)) @ part for part in g)

    return LastForgotten


def one_entry(factor: float) -> Any:
    """The last entry of the gradient is multiplied."""

    def gradient(g, x, right):
        last = torch.arange(x.numel()).reshape(x.shape) == x.numel() - 1
        return torch.where(last, right * factor, right)

    return gradient


def tail(width: int) -> Any:
    """The elements past this number get no gradient."""
    return lambda g, x, right: torch.where(torch.arange(x.numel()).reshape(x.shape) < width, right, 0)


def relu_with(at_zero: float) -> Any:
    """ReLU with this derivative at 0."""
    return unary(
        lambda x: torch.where(x < 0, 0, x),
        lambda g, x: torch.where(x > 0, g, torch.where(x == 0, g * at_zero, torch.zeros_like(g))),
    )


def clamp_with(inside: Any) -> Any:
    """x between -1 and 1, with a gradient where it is ``inside(x)``."""
    return unary(lambda x: torch.clamp(x, -1, 1), lambda g, x: torch.where(inside(x), g, torch.zeros_like(g)))


CLAMP = Function(
    name="Clamp",
    body=clamp_with(lambda x: abs(x) <= 1),
    arguments=(Array(name="x", dims="*s", smooth="nonzero"),),
    forward=lambda x: (np.where(np.less(x, -1), -1.0, np.where(np.less(1, x), 1.0, x)),),
    vjp=lambda cotangents, x: (np.where(np.abs(getattr(x, "value", x)) <= 1, cotangents[0], 0.0),),
    dtypes=REAL,
    document="none",
    exercises="kinks at -1 and 1",
)


TANH = Function(
    name="Tanh",
    body=unary(torch.tanh, lambda g, x: g * (1 - torch.tanh(x) ** 2)),
    arguments=(Array(name="x", dims="*s"),),
    forward=lambda x: (np.tanh(x),),
    vjp=lambda cotangents, x: (cotangents[0] * (1 - np.tanh(x) * np.tanh(x)),),
    dtypes=("float64", "float32"),
    document="none",
    exercises="a gradient that vanishes at large magnitudes",
)


def overflowing(g: Any, x: Any) -> Any:
    """The gradient of tanh by exponentials."""
    powers = torch.exp(2 * x)
    return g * 4 * powers / (powers + 1) ** 2


# The hooks of a body take parameters that not each of them uses.


VALUES = (
    in_gradient("VJP-REF OneEntryOff: one entry is off by 1e-4", one_entry(1 + 1e-4), "gradient"),
    in_gradient("VJP-REF OneEntryOffByNano: one entry is off by 1e-9", one_entry(1 + 1e-9), "gradient"),
    in_gradient("VJP-REF TailPast16Lost: the elements past the 16th get no gradient", tail(16), "gradient"),
    in_gradient("VJP-REF TailPast32Lost: the elements past the 32nd get no gradient", tail(32), "gradient"),
    in_gradient("VJP-REF TailPast256Lost: the elements past the 256th get no gradient", tail(256), "gradient"),
    in_gradient(
        "VJP-REF/sizes TailPast1024Lost: the elements past number 1024 get no gradient", tail(1024), "gradient"
    ),
    in_gradient(
        "VJP-REF/sizes TailPast65536Lost: the elements past number 65536 get no gradient", tail(65536), "gradient"
    ),
    in_gradient(
        "VJP-REF/sizes LastBlockForgotten: the last block gets no gradient if it is not full",
        lambda g, x, right: (
            right if x.numel() % 1024 in (0, x.numel()) else tail(x.numel() // 1024 * 1024)(g, x, right)
        ),
        "gradient",
    ),
    in_gradient(
        "VJP-REF/specials MaskedByProduct: 0 times the sum of the gradient is added, "
        "which is NaN if one element is not finite",
        lambda g, x, right: right + 0 * torch.sum(right),
        "gradient",
    ),
    in_gradient(
        "VJP-REF RankFiveHalved: wrong for rank five",
        lambda g, x, right: right / 2 if x.ndim == 5 else right,
        "gradient",
    ),
    in_gradient(
        "VJP-REF HalfOnly: wrong in half precision alone",
        lambda g, x, right: right * 1.01 if x.dtype == torch.float16 else right,
        "gradient",
    ),
    in_gradient(
        "VJP-REF BrainHalf: wrong in bfloat16 alone, by a few of its units",
        lambda g, x, right: right * 1.05 if x.dtype == torch.bfloat16 else right,
        "gradient",
    ),
    in_gradient(
        "VJP-REF Unconjugated: the factor is not conjugated",
        lambda g, x, right: 2 * g * x,
        "gradient",
        dtypes=("float64", "complex128"),
    ),
    in_gradient(
        "VJP-REF RealPartOfCotangent: drops the imaginary part of the cotangent",
        lambda g, x, right: 2 * torch.real(g) * torch.conj(x),
        "gradient",
        dtypes=COMPLEX,
    ),
    in_gradient(
        "VJP-REF DoubleInSinglePrecision: double precision is computed in single precision",
        lambda g, x, right: (2 * g.float() * x.float()).double() if x.dtype == torch.float64 else right,
        "gradient",
    ),
    in_gradient("VJP-FD OneEntryOff: one entry is off by 1e-4", one_entry(1 + 1e-4), "argument 0 (x)"),
    in_gradient(
        "VJP-FD NegativeInputs: the sign is wrong for negative inputs",
        lambda g, x, right: torch.where(x < 0, -right, right),
        "argument 0 (x)",
        dtypes=("float64",),
    ),
    in_gradient("VJP-FD OffByMicro: off by 1e-6 everywhere", lambda g, x, right: right * (1 + 1e-6), "argument 0 (x)"),
    in_gradient(
        "VJP-FD Unconjugated: the factor is not conjugated",
        lambda g, x, right: 2 * g * x,
        "argument 0 (x)",
        dtypes=COMPLEX,
    ),
    planted(
        "VJP-REF HalfAtTheKink: takes one half for the derivative at 0",
        RELU,
        relu_with(0.5),
        "gradient of argument 0 (input)",
    ),
    planted(
        "VJP-REF SaturatedExcluded: a value exactly on the bound gets no gradient",
        CLAMP,
        clamp_with(lambda x: abs(x) < 1),
        "gradient of argument 0 (x)",
    ),
    planted(
        "VJP-REF GradientsSwapped: the gradients come in the wrong order",
        PRODUCT,
        product_with(gradients=lambda xp, ctx, g, x, y, gx, gy: (gy, gx)),
        "gradient of argument",
    ),
    planted(
        "VJP-REF ReducedOverTheMirroredAxis: a broadcast gradient is summed over the wrong one of two axes "
        "of the same length",
        NUMPY_MUL,
        mul_reduced(mirrored),
        "gradient of argument",
    ),
    planted(
        "VJP-REF ReducedOverLeadingAxesOnly: unit axes that were broadcast are not summed",
        NUMPY_MUL,
        mul_reduced(lambda wide, narrow: tuple(range(len(wide) - len(narrow)))),
        "the call raised",
    ),
    planted(
        "VJP-REF WeightTransposed: the gradient of a weight that is not square is transposed in memory",
        LINEAR,
        linear_with(linear_transposed),
        "gradient of argument 1 (weight)",
    ),
    planted(
        "VJP-REF SecondCotangentDropped: the cotangent of the second output is ignored",
        MY_CUBE,
        derived(MY_CUBE, backward=lambda xp, cls, ctx, g, h: g * xp.conj(ctx.saved_tensors[1])),
        "gradient of argument 0 (x)",
    ),
    planted(
        "VJP-MASK BiasGuardedByWeight: the gradient of the bias is guarded by the flag of the weight",
        LINEAR,
        linear_guarded(0, 1, 1),
        "gradient of argument 2 (bias)",
    ),
    planted(
        "VJP-MASK InputGuardedByWeight: the gradient of the input is guarded by the flag of the weight",
        LINEAR,
        linear_guarded(1, 1, 2),
        "gradient of argument 0 (input)",
    ),
    planted(
        "VJP-MASK FrozenShareForgotten: the share of the values is left out while their weight is frozen",
        QKV_PROJECTION,
        qkv_last_forgotten,
        "gradient of argument 0 (x)",
    ),
    planted(
        "VJP-NONE WeightGuardedByBias: the gradient of the weight is guarded by the flag of the bias",
        LINEAR,
        linear_guarded(0, 2, 2),
        "which tensors get a gradient",
    ),
    planted(
        "VJP-MASK PreparedForAnother: the gradient of the bias uses what is computed only "
        "where the input requires grad",
        LINEAR,
        linear_with(linear_shared_factor),
        "argument 2 (bias)",
    ),
    planted(
        "VJP-MASK ScaledByCount: doubled where not every argument requires grad",
        PRODUCT,
        product_with(gradients=lambda xp, ctx, g, x, y, gx, gy: (gx, gy * (1 if all(ctx.needs_input_grad) else 2))),
        "gradient of argument 1 (y)",
    ),
    in_gradient(
        "VJP-COTANGENT-LAYOUT StridesIgnored: the cotangent is read as if it were contiguous",
        lambda g, x, right: 2 * whole_storage(g) * torch.conj(x),
    ),
    in_gradient(
        "VJP-COTANGENT-LAYOUT ExpandedTakenForOneElement: the cotangent that sum() sends is taken for its mean",
        lambda g, x, right: right / x.numel() if x.numel() > 1 and not any(g.stride()) else right,
    ),
    in_gradient(
        "VJP-COTANGENT-LAYOUT FirstAxisExpanded: wrong where the cotangent repeats along its first axis alone",
        lambda g, x, right: right * 2 if g.ndim > 1 and g.stride(0) == 0 != g.stride(-1) else right,
    ),
    in_gradient(
        "VJP-COTANGENT-LAYOUT ConjugateBitIgnored: a lazily conjugated cotangent is read as it is stored",
        lambda g, x, right: 2 * torch.conj(g) * torch.conj(x) if g.is_conj() else right,
        dtypes=COMPLEX,
    ),
    in_gradient(
        "VJP-COTANGENT-LAYOUT NegativeBitIgnored: a lazily negated cotangent is read as it is stored",
        lambda g, x, right: -right if g.is_neg() else right,
    ),
    in_gradient(
        "VJP-COTANGENT-LAYOUT OffsetIgnored: the cotangent is read from the start of its storage",
        lambda g, x, right: 2 * whole_storage(g, 0) * torch.conj(x) if g.is_contiguous() else right,
    ),
    in_gradient(
        "VJP-COTANGENT-LAYOUT TransposedOnly: wrong where a matrix of cotangents is transposed",
        lambda g, x, right: right * 2 if g.ndim == 2 and g.mT.is_contiguous() and not g.is_contiguous() else right,
    ),
    in_gradient(
        "VJP-UNUSED/severed OneWhereNothingIsUsed: a pass that reaches no cotangent gives ones",
        lambda g, x, right: right if bool((g != 0).any()) else right + 1,
    ),
    in_gradient(
        "VJP-UNUSED/severed InfiniteWhereNothingIsUsed: a pass that reaches no cotangent divides by it",
        lambda g, x, right: right if bool((g != 0).any()) else 2 / g,
    ),
    planted(
        "VJP-UNUSED NoneTakenForOne: with materialization off, an unused first output hides the gradient of the second",
        PAIR,
        pair_with(
            lambda xp, ctx, x, y, z: ctx.set_materialize_grads(False),
            lambda xp, ctx, g, h: (0 if g is None else g) - (0 if h is None else h) if g is not None else None,
        ),
        "gradient of argument 0 (x)",
        materialize=False,
    ),
    planted(
        "VJP-UNUSED NoneMultiplied: with materialization off, None is subtracted",
        PAIR,
        pair_with(lambda xp, ctx, x, y, z: ctx.set_materialize_grads(False)),
        "the call raised",
        materialize=False,
    ),
    in_gradient(
        "VJP-LINEAR Clipped: the gradient is clipped", lambda g, x, right: torch.clip(right, -1, 1), dtypes=REAL
    ),
    in_gradient("VJP-LINEAR ConstantAdded: a constant is added to the gradient", lambda g, x, right: right + 1),
    in_gradient(
        "VJP-LINEAR NormalizedByCotangent: divides by the cotangent, which gives NaN where it is zero",
        lambda g, x, right: right * (torch.abs(g) / torch.abs(g)),
    ),
    in_gradient(
        "VJP-LINEAR ScaledByLargest: scales by the cotangent's largest element, which gives NaN where all are zero",
        lambda g, x, right: right / abs(g).amax() * abs(g).amax() if x.numel() else right,
    ),
    planted(
        "VJP-SAME-TENSOR SharedMemoryIsSquared: takes two arguments with the same memory for a square "
        "and doubles both gradients",
        PRODUCT,
        product_with(
            gradients=lambda xp, ctx, g, x, y, gx, gy: (2 * gx, 2 * gy) if x.data_ptr() == y.data_ptr() else (gx, gy)
        ),
        "gradient of argument 0 (x)",
    ),
    in_gradient(
        "VJP-CHAIN CotangentTakenForOnes: ignores the cotangent, which is right while sum() follows",
        lambda g, x, right: 2 * torch.conj(x) * torch.ones_like(g),
    ),
    in_gradient(
        "VJP-CHAIN CotangentsMeanTaken: takes the mean of the cotangent, which is right where it is constant",
        lambda g, x, right: 2 * torch.conj(x) * torch.mean(g) if x.numel() else right,
    ),
    planted(
        "VJP-FINITE ExponentialOverflows: divides infinity by infinity at large inputs",
        TANH,
        unary(torch.tanh, overflowing),
        "gradient of argument 0 (x)",
        "nan",
    ),
    in_gradient(
        "VJP-FINITE DividedByInput: cancels x against x, which gives NaN at zero",
        lambda g, x, right: 2 * g * torch.conj(x * x / x),
        "gradient of argument 0 (x)",
        "nan",
        dtypes=REAL,
    ),
    in_gradient(
        "VJP-FINITE ProductOverflowsFirst: an intermediate product overflows",
        lambda g, x, right: g * (x * 1e300 * 2 / 1e300) if x.dtype == torch.float64 else right,
        dtypes=("float64",),
    ),
    in_output(
        "VJP-FINITE NeverFinite: the forward is never finite, so that nothing can be checked",
        lambda x, y: y * float("nan"),
        "too little to say",
        raises=Vacuous,
    ),
)
