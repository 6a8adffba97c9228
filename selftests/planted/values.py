"""Faults in the numbers that backward gives."""

# The hooks of a body take parameters that not each of them uses.
# ruff: noqa: ARG005

from __future__ import annotations

import torch

from autograd_conformance.harness.outcomes import Vacuous
from autograd_conformance.reference.definitions import COMPLEX, REAL
from autograd_conformance.reference.functions.elementwise import MY_CUBE, RELU
from autograd_conformance.reference.functions.linear import LINEAR, QKV_PROJECTION
from autograd_conformance.reference.functions.scalars import NUMPY_MUL
from autograd_conformance.selftests.planted.definitions import (
    PAIR,
    PRODUCT,
    SQUARE,
    pair_with,
    planted,
    product_with,
    square_with,
)
from autograd_conformance.selftests.planted.forward import whole_storage
from autograd_conformance.selftests.planted.values_definitions import (
    CLAMP,
    TANH,
    clamp_with,
    linear_guarded,
    linear_shared_factor,
    linear_transposed,
    linear_with,
    mirrored,
    mul_reduced,
    one_entry,
    overflowing,
    qkv_last_forgotten,
    relu_with,
    tail,
    tanh_with,
)

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
            ("VJP-REF", "OneEntryOff", one_entry(1 + 1e-4), "one entry is off by 1e-4", {}),
            ("VJP-REF", "OneEntryOffByNano", one_entry(1 + 1e-9), "one entry is off by 1e-9", {}),
            ("VJP-REF", "TailPast16Lost", tail(16), "the elements past the 16th get no gradient", {}),
            ("VJP-REF", "TailPast32Lost", tail(32), "the elements past the 32nd get no gradient", {}),
            ("VJP-REF", "TailPast256Lost", tail(256), "the elements past the 256th get no gradient", {}),
            *(
                (
                    "VJP-REF",
                    f"TailPast{width}Lost",
                    tail(width),
                    f"the elements past number {width} get no gradient",
                    {"variant": "sizes"},
                )
                for width in (1024, 65536)
            ),
            (
                "VJP-REF",
                "LastBlockForgotten",
                lambda xp, ctx, g, x, right: (
                    right
                    if x.numel() % 1024 in (0, x.numel())
                    else tail(x.numel() // 1024 * 1024)(xp, ctx, g, x, right)
                ),
                "the last block gets no gradient if it is not full",
                {"variant": "sizes"},
            ),
            (
                "VJP-REF",
                "MaskedByProduct",
                lambda xp, ctx, g, x, right: right + 0 * xp.sum(right),
                "0 times the sum of the gradient is added, which is NaN if one element is not finite",
                {"variant": "specials"},
            ),
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
            ("VJP-FD", "OneEntryOff", one_entry(1 + 1e-4), "one entry is off by 1e-4", {}),
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
        relu_with(0.5),
        "takes one half for the derivative at 0",
        "gradient of argument 0 (input)",
    ),
    planted(
        "VJP-REF",
        CLAMP,
        "SaturatedExcluded",
        clamp_with(lambda x: abs(x) < 1),
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
        mul_reduced(mirrored),
        "a broadcast gradient is summed over the wrong one of two axes of the same length",
        "gradient of argument",
    ),
    planted(
        "VJP-REF",
        NUMPY_MUL,
        "ReducedOverLeadingAxesOnly",
        mul_reduced(lambda wide, narrow: tuple(range(len(wide) - len(narrow)))),
        "unit axes that were broadcast are not summed",
        "the call raised",
    ),
    planted(
        "VJP-REF",
        LINEAR,
        "WeightTransposed",
        linear_with(linear_transposed),
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
        linear_guarded(0, 1, 1),
        "the gradient of the bias is guarded by the flag of the weight",
        "gradient of argument 2 (bias)",
    ),
    planted(
        "VJP-MASK",
        LINEAR,
        "InputGuardedByWeight",
        linear_guarded(1, 1, 2),
        "the gradient of the input is guarded by the flag of the weight",
        "gradient of argument 0 (input)",
    ),
    planted(
        "VJP-MASK",
        QKV_PROJECTION,
        "FrozenShareForgotten",
        qkv_last_forgotten,
        "the share of the values is left out while their weight is frozen",
        "gradient of argument 0 (x)",
    ),
    planted(
        "VJP-NONE",
        LINEAR,
        "WeightGuardedByBias",
        linear_guarded(0, 2, 2),
        "the gradient of the weight is guarded by the flag of the bias",
        "which tensors get a gradient",
    ),
    planted(
        "VJP-MASK",
        LINEAR,
        "PreparedForAnother",
        linear_with(linear_shared_factor),
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
        SQUARE,
        "InfiniteWhereNothingIsUsed",
        square_with(gradient=lambda xp, ctx, g, x, right: right if bool((g != 0).any()) else 2 / g),
        "a pass that reaches no cotangent divides by it",
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
        "the call raised",
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
        tanh_with(overflowing),
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
        "too little to say",
        raises=Vacuous,
    ),
)
