"""Faults in the numbers that backward gives."""

# The hooks of a body take parameters that not each of them uses.
# ruff: noqa: ARG001, ARG005

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from autograd_conformance.harness.outcomes import Vacuous
from autograd_conformance.reference.definitions import COMPLEX, REAL, Array, Function
from autograd_conformance.reference.functions.elementwise import MY_CUBE, RELU
from autograd_conformance.reference.functions.linear import LINEAR, QKV_PROJECTION
from autograd_conformance.reference.functions.scalars import NUMPY_MUL
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
from autograd_conformance.selftests.planted.forward import whole_storage


def linear_with(gradients: Any) -> Any:
    """The documented linear Function with another backward."""

    def body(xp: Any, ag: Any) -> Any:
        class Linear(LINEAR.body(xp, ag)):
            @staticmethod
            def backward(ctx, g):
                return gradients(xp, ctx.needs_input_grad, g, *ctx.saved_tensors)

        return Linear

    return body


def _linear_guarded(input_flag: int, weight_flag: int, bias_flag: int) -> Any:
    """Linear's gradients, each guarded by the flag of the argument of that number."""

    def gradients(xp: Any, needs: Any, g: Any, input: Any, weight: Any, bias: Any) -> Any:
        flags = (*needs, *(False,) * (3 - len(needs)))
        return (
            g @ xp.conj(weight) if flags[input_flag] else None,
            xp.matrix_transpose(g) @ xp.conj(input) if flags[weight_flag] else None,
            xp.sum(g, axis=0) if bias is not None and flags[bias_flag] else None,
        )[: max(len(needs), 2)]

    return linear_with(gradients)


def _linear_transposed(xp: Any, needs: Any, g: Any, input: Any, weight: Any, bias: Any) -> Any:
    square = weight.shape[0] == weight.shape[1]
    grad_weight = xp.matrix_transpose(g) @ xp.conj(input)
    # The fault: the memory of the transposed product is given the right shape.
    grad_weight = grad_weight if square else xp.reshape(xp.matrix_transpose(grad_weight), tuple(weight.shape))
    return (g @ xp.conj(weight), grad_weight, None if bias is None else xp.sum(g, axis=0))[: max(len(needs), 2)]


def _linear_shared_factor(xp: Any, needs: Any, g: Any, input: Any, weight: Any, bias: Any) -> Any:
    grad_input = g @ xp.conj(weight) if needs[0] else None
    # The fault: the cotangent is prepared for the bias while the gradient of the input is computed.
    prepared = g if needs[0] else g * 0
    grad_bias = xp.sum(prepared, axis=0) if bias is not None else None
    return (grad_input, xp.matrix_transpose(g) @ xp.conj(input), grad_bias)[: max(len(needs), 2)]


def _mul_reduced(axes: Any) -> Any:
    """NumpyMul whose gradients are summed over the axes that ``axes(gradient shape, argument shape)`` lists."""

    def backward(xp: Any, ctx: Any, g: Any) -> Any:
        x, y = ctx.saved_tensors
        pairs = ((g * xp.conj(y), x), (g * xp.conj(x), y))
        return tuple(_summed(xp, gradient, tuple(part.shape), axes) for gradient, part in pairs)

    def setup(xp: Any, ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    return custom(forward=lambda xp, x, y: x * y, setup_context=setup, backward=backward, generate_vmap_rule=True)


def _summed(xp: Any, gradient: Any, shape: tuple[int, ...], axes: Any) -> Any:
    found = axes(tuple(gradient.shape), shape)
    return xp.reshape(xp.sum(gradient, axis=found) if found else gradient, shape)


def _stretched(wide: tuple[int, ...], narrow: tuple[int, ...]) -> tuple[int, ...]:
    padded = (1,) * (len(wide) - len(narrow)) + narrow
    return tuple(n for n, (a, b) in enumerate(zip(wide, padded, strict=True)) if a != b)


def _mirrored(wide: tuple[int, ...], narrow: tuple[int, ...]) -> tuple[int, ...]:
    """The right axes, counted from the wrong end where the sizes are the same."""
    right = _stretched(wide, narrow)
    other = tuple(sorted(len(wide) - 1 - n for n in right))
    return other if sorted(wide[n] for n in right) == sorted(wide[n] for n in other) else right


def _qkv_last_forgotten(xp: Any, ag: Any) -> Any:
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


def _one_entry(factor: float) -> Any:
    def gradient(xp: Any, ctx: Any, g: Any, x: Any, right: Any) -> Any:
        last = xp.reshape(xp.arange(x.numel()), tuple(x.shape)) == x.numel() - 1
        return xp.where(last, right * factor, right)

    return gradient


def _tail(width: int) -> Any:
    def gradient(xp: Any, ctx: Any, g: Any, x: Any, right: Any) -> Any:
        places = xp.reshape(xp.arange(x.numel()), tuple(x.shape))
        return xp.where(places < width, right, xp.zeros_like(right))

    return gradient


def _relu_with(at_zero: float) -> Any:
    def forward(xp: Any, ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return xp.where(x < 0, xp.zeros_like(x), x)

    def backward(xp: Any, ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return xp.where(x > 0, g, xp.where(x == 0, g * at_zero, xp.zeros_like(g)))

    return custom(forward=forward, backward=backward)


def _clamp_with(inside: Any) -> Any:
    def forward(xp: Any, ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return torch.clamp(x, -1, 1)

    def backward(xp: Any, ctx: Any, g: Any) -> Any:
        return xp.where(inside(*ctx.saved_tensors), g, xp.zeros_like(g))

    return custom(forward=forward, backward=backward)


CLAMP = Function(
    name="Clamp",
    body=_clamp_with(lambda x: abs(x) <= 1),
    arguments=(Array(name="x", dims="*s", smooth="nonzero"),),
    forward=lambda x: (np.where(np.less(x, -1), -1.0, np.where(np.less(1, x), 1.0, x)),),
    vjp=lambda cotangents, x: (np.where(np.abs(getattr(x, "value", x)) <= 1, cotangents[0], 0.0),),
    dtypes=REAL,
    document="none",
    exercises="kinks at -1 and 1",
)


def _tanh_with(gradient: Any) -> Any:
    def forward(xp: Any, ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return xp.tanh(x)

    return custom(forward=forward, backward=lambda xp, ctx, g: gradient(xp, g, *ctx.saved_tensors))


TANH = Function(
    name="Tanh",
    body=_tanh_with(lambda xp, g, x: g * (1 - xp.tanh(x) ** 2)),
    arguments=(Array(name="x", dims="*s"),),
    forward=lambda x: (np.tanh(x),),
    vjp=lambda cotangents, x: (cotangents[0] * (1 - np.tanh(x) * np.tanh(x)),),
    dtypes=("float64", "float32"),
    document="none",
    exercises="a gradient that vanishes at large magnitudes",
)


def _overflowing(xp: Any, g: Any, x: Any) -> Any:
    powers = xp.exp(2 * x)
    return g * 4 * powers / (powers + 1) ** 2


VALUES = (
    *(
        planted(
            property_id,
            SQUARE,
            name,
            square_with(gradient=gradient),
            fault,
            "gradient" if property_id == "VJP-REF" else "argument 0 (x)",
            **options,
        )
        for property_id, name, gradient, fault, options in (
            ("VJP-REF", "OneEntryOff", _one_entry(1 + 1e-4), "one entry is off by 1e-4", {}),
            ("VJP-REF", "OneEntryOffByNano", _one_entry(1 + 1e-9), "one entry is off by 1e-9", {}),
            ("VJP-REF", "TailPast16Lost", _tail(16), "the elements past the 16th get no gradient", {}),
            ("VJP-REF", "TailPast32Lost", _tail(32), "the elements past the 32nd get no gradient", {}),
            ("VJP-REF", "TailPast256Lost", _tail(256), "the elements past the 256th get no gradient", {}),
            (
                "VJP-REF",
                "RankFiveHalved",
                lambda xp, ctx, g, x, right: right / 2 if x.ndim == 5 else right,
                "wrong for rank five",
                {},
            ),
            (
                "VJP-REF",
                "HalfOnly",
                lambda xp, ctx, g, x, right: right * 1.01 if x.dtype == torch.float16 else right,
                "wrong in half precision alone",
                {},
            ),
            (
                "VJP-REF",
                "BrainHalf",
                lambda xp, ctx, g, x, right: right * 1.05 if x.dtype == torch.bfloat16 else right,
                "wrong in bfloat16 alone, by a few of its units",
                {},
            ),
            (
                "VJP-REF",
                "Unconjugated",
                lambda xp, ctx, g, x, right: 2 * g * x,
                "the factor is not conjugated",
                {"changes": {"dtypes": ("float64", "complex128")}},
            ),
            (
                "VJP-REF",
                "RealPartOfCotangent",
                lambda xp, ctx, g, x, right: 2 * xp.real(g) * xp.conj(x),
                "drops the imaginary part of the cotangent",
                {"changes": {"dtypes": COMPLEX}},
            ),
            (
                "VJP-REF",
                "DoubleInSinglePrecision",
                lambda xp, ctx, g, x, right: (
                    (2 * g.float() * x.float()).double() if x.dtype == torch.float64 else right
                ),
                "double precision is computed in single precision",
                {},
            ),
            ("VJP-FD", "OneEntryOff", _one_entry(1 + 1e-4), "one entry is off by 1e-4", {}),
            (
                "VJP-FD",
                "NegativeInputs",
                lambda xp, ctx, g, x, right: xp.where(x < 0, -right, right),
                "the sign is wrong for negative inputs",
                {"changes": {"dtypes": ("float64",)}},
            ),
            ("VJP-FD", "OffByMicro", lambda xp, ctx, g, x, right: right * (1 + 1e-6), "off by 1e-6 everywhere", {}),
            (
                "VJP-FD",
                "Unconjugated",
                lambda xp, ctx, g, x, right: 2 * g * x,
                "the factor is not conjugated",
                {"changes": {"dtypes": COMPLEX}},
            ),
        )
    ),
    planted(
        "VJP-REF",
        RELU,
        "HalfAtTheKink",
        _relu_with(0.5),
        "takes one half for the derivative at 0",
        "gradient of argument 0 (input)",
    ),
    planted(
        "VJP-REF",
        CLAMP,
        "SaturatedExcluded",
        _clamp_with(lambda x: abs(x) < 1),
        "a value exactly on the bound gets no gradient",
        "gradient of argument 0 (x)",
    ),
    planted(
        "VJP-REF",
        PRODUCT,
        "GradientsSwapped",
        product_with(gradients=lambda xp, ctx, g, x, y, gx, gy: (gy, gx)),
        "the gradients come in the wrong order",
        "gradient of argument",
    ),
    planted(
        "VJP-REF",
        NUMPY_MUL,
        "ReducedOverTheMirroredAxis",
        _mul_reduced(_mirrored),
        "a broadcast gradient is summed over the wrong one of two axes of the same length",
        "gradient of argument",
    ),
    planted(
        "VJP-REF",
        NUMPY_MUL,
        "ReducedOverLeadingAxesOnly",
        _mul_reduced(lambda wide, narrow: tuple(range(len(wide) - len(narrow)))),
        "unit axes that were broadcast are not summed",
        "exception",
    ),
    planted(
        "VJP-REF",
        LINEAR,
        "WeightTransposed",
        linear_with(_linear_transposed),
        "the gradient of a weight that is not square is transposed in memory",
        "gradient of argument 1 (weight)",
    ),
    planted(
        "VJP-REF",
        MY_CUBE,
        "SecondCotangentDropped",
        lambda xp, ag: type(
            "Dropped",
            (MY_CUBE.body(xp, ag),),
            {"backward": staticmethod(lambda ctx, g, h: g * xp.conj(ctx.saved_tensors[1]))},
        ),
        "the cotangent of the second output is ignored",
        "gradient of argument 0 (x)",
    ),
    planted(
        "VJP-MASK",
        LINEAR,
        "BiasGuardedByWeight",
        _linear_guarded(0, 1, 1),
        "the gradient of the bias is guarded by the flag of the weight",
        "gradient of argument 2 (bias)",
    ),
    planted(
        "VJP-MASK",
        LINEAR,
        "InputGuardedByWeight",
        _linear_guarded(1, 1, 2),
        "the gradient of the input is guarded by the flag of the weight",
        "gradient of argument 0 (input)",
    ),
    planted(
        "VJP-MASK",
        QKV_PROJECTION,
        "FrozenShareForgotten",
        _qkv_last_forgotten,
        "the share of the values is left out while their weight is frozen",
        "gradient of argument 0 (x)",
    ),
    planted(
        "VJP-NONE",
        LINEAR,
        "WeightGuardedByBias",
        _linear_guarded(0, 2, 2),
        "the gradient of the weight is guarded by the flag of the bias",
        "which tensors get a gradient",
    ),
    planted(
        "VJP-MASK",
        LINEAR,
        "PreparedForAnother",
        linear_with(_linear_shared_factor),
        "the gradient of the bias uses what is computed only where the input requires grad",
        "argument 2 (bias)",
    ),
    planted(
        "VJP-MASK",
        PRODUCT,
        "ScaledByCount",
        product_with(gradients=lambda xp, ctx, g, x, y, gx, gy: (gx, gy * (1 if all(ctx.needs_input_grad) else 2))),
        "doubled where not every argument requires grad",
        "gradient of argument 1 (y)",
    ),
    *(
        planted(
            "VJP-COTANGENT-LAYOUT",
            SQUARE,
            name,
            square_with(gradient=gradient),
            fault,
            "gradient of argument 0 (x)",
            **options,
        )
        for name, gradient, fault, options in (
            (
                "StridesIgnored",
                lambda xp, ctx, g, x, right: 2 * whole_storage(g) * xp.conj(x),
                "the cotangent is read as if it were contiguous",
                {},
            ),
            (
                "ExpandedTakenForOneElement",
                lambda xp, ctx, g, x, right: right / x.numel() if x.numel() > 1 and not any(g.stride()) else right,
                "the cotangent that sum() sends is taken for its mean",
                {},
            ),
            (
                "FirstAxisExpanded",
                lambda xp, ctx, g, x, right: right * 2 if g.ndim > 1 and g.stride(0) == 0 != g.stride(-1) else right,
                "wrong where the cotangent repeats along its first axis alone",
                {},
            ),
            (
                "ConjugateBitIgnored",
                lambda xp, ctx, g, x, right: 2 * xp.conj(g) * xp.conj(x) if g.is_conj() else right,
                "a lazily conjugated cotangent is read as it is stored",
                {"changes": {"dtypes": COMPLEX}},
            ),
            (
                "NegativeBitIgnored",
                lambda xp, ctx, g, x, right: -right if g.is_neg() else right,
                "a lazily negated cotangent is read as it is stored",
                {},
            ),
            (
                "OffsetIgnored",
                lambda xp, ctx, g, x, right: 2 * whole_storage(g, 0) * xp.conj(x) if g.is_contiguous() else right,
                "the cotangent is read from the start of its storage",
                {},
            ),
            (
                "TransposedOnly",
                lambda xp, ctx, g, x, right: (
                    right * 2 if g.ndim == 2 and g.mT.is_contiguous() and not g.is_contiguous() else right
                ),
                "wrong where a matrix of cotangents is transposed",
                {},
            ),
        )
    ),
    planted(
        "VJP-UNUSED",
        SQUARE,
        "OneWhereNothingIsUsed",
        square_with(gradient=lambda xp, ctx, g, x, right: right if bool((g != 0).any()) else right + 1),
        "a pass that reaches no cotangent gives ones",
        "gradient of argument 0 (x)",
        variant="severed",
    ),
    planted(
        "VJP-UNUSED",
        PAIR,
        "NoneTakenForOne",
        pair_with(
            lambda xp, ctx, x, y, z: ctx.set_materialize_grads(False),
            lambda xp, ctx, g, h: (0 if g is None else g) - (0 if h is None else h) if g is not None else None,
        ),
        "with materialization off, an unused first output hides the gradient of the second",
        "gradient of argument 0 (x)",
        changes={"materialize": False},
    ),
    planted(
        "VJP-UNUSED",
        PAIR,
        "NoneMultiplied",
        pair_with(lambda xp, ctx, x, y, z: ctx.set_materialize_grads(False)),
        "with materialization off, None is subtracted",
        "exception",
        changes={"materialize": False},
    ),
    *(
        planted(
            "VJP-LINEAR", SQUARE, name, square_with(gradient=gradient), fault, "gradient of argument 0 (x)", **options
        )
        for name, gradient, fault, options in (
            (
                "Clipped",
                lambda xp, ctx, g, x, right: xp.clip(right, -1, 1),
                "the gradient is clipped",
                {"changes": {"dtypes": REAL}},
            ),
            ("ConstantAdded", lambda xp, ctx, g, x, right: right + 1, "a constant is added to the gradient", {}),
            (
                "NormalizedByCotangent",
                lambda xp, ctx, g, x, right: right * (xp.abs(g) / xp.abs(g)),
                "divides by the cotangent, which gives NaN where it is zero",
                {},
            ),
            (
                "ScaledByLargest",
                lambda xp, ctx, g, x, right: right / abs(g).amax() * abs(g).amax() if x.numel() else right,
                "scales by the cotangent's largest element, which gives NaN where all are zero",
                {},
            ),
        )
    ),
    planted(
        "VJP-SAME-TENSOR",
        PRODUCT,
        "SharedMemoryIsSquared",
        product_with(
            gradients=lambda xp, ctx, g, x, y, gx, gy: (2 * gx, 2 * gy) if x.data_ptr() == y.data_ptr() else (gx, gy)
        ),
        "takes two arguments with the same memory for a square and doubles both gradients",
        "gradient of argument 0 (x)",
    ),
    *(
        planted(
            "VJP-CHAIN", SQUARE, name, square_with(gradient=gradient), fault, "gradient of argument 0 (x)", **options
        )
        for name, gradient, fault, options in (
            (
                "CotangentTakenForOnes",
                lambda xp, ctx, g, x, right: 2 * xp.conj(x) * xp.ones_like(g),
                "ignores the cotangent, which is right while sum() follows",
                {},
            ),
            (
                "CotangentsMeanTaken",
                lambda xp, ctx, g, x, right: 2 * xp.conj(x) * xp.mean(g) if x.numel() else right,
                "takes the mean of the cotangent, which is right where it is constant",
                {},
            ),
        )
    ),
    planted(
        "VJP-FINITE",
        TANH,
        "ExponentialOverflows",
        _tanh_with(_overflowing),
        "divides infinity by infinity at large inputs",
        "gradient of argument 0 (x)",
        "nan",
    ),
    planted(
        "VJP-FINITE",
        SQUARE,
        "DividedByInput",
        square_with(gradient=lambda xp, ctx, g, x, right: 2 * g * xp.conj(x * x / x)),
        "cancels x against x, which gives NaN at zero",
        "gradient of argument 0 (x)",
        "nan",
        changes={"dtypes": REAL},
    ),
    planted(
        "VJP-FINITE",
        SQUARE,
        "ProductOverflowsFirst",
        square_with(
            gradient=lambda xp, ctx, g, x, right: g * ((x * 1e300) * 2 / 1e300) if x.dtype == torch.float64 else right
        ),
        "an intermediate product overflows",
        "gradient of argument 0 (x)",
        changes={"dtypes": ("float64",)},
    ),
    planted(
        "VJP-FINITE",
        SQUARE,
        "NeverFinite",
        square_with(lambda xp, ctx, x, y: y * float("nan")),
        "the forward is never finite, so that nothing can be checked",
        "nothing is known",
        raises=Vacuous,
    ),
)
