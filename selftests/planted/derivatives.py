"""Faults in second derivatives, forward-mode rules and batching rules."""

# The hooks of a body take parameters that not each of them uses.
# ruff: noqa: ARG001, ARG005

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from autograd_conformance.reference.functions.elementwise import MY_CUBE
from autograd_conformance.reference.functions.indexing import NUMPY_TAKE, to_front
from autograd_conformance.reference.functions.scalars import SAVE_FOR_BACKWARD
from autograd_conformance.selftests.planted.definitions import (
    PRODUCT,
    SQUARE,
    planted,
    product_with,
    square_with,
)


def derived(base: Any, **methods: Any) -> Any:
    """The body of a Function with some methods replaced; they take ``xp`` and the class before their parameters."""

    def body(xp: Any, ag: Any) -> Any:
        cls: Any = type(base.name, (base.body(xp, ag),), {})
        for name, method in methods.items():
            setattr(cls, name, staticmethod(lambda *args, method=method: method(xp, cls, *args)))
        return cls

    return body


def _square_through(second: Any) -> Any:
    """Square whose backward is a custom Function with the gradients ``second(xp, x, g, v)``."""

    def body(xp: Any, ag: Any) -> Any:
        class Backward(ag.Function):
            @staticmethod
            def forward(ctx, x, g):
                ctx.save_for_backward(x, g)
                return 2 * g * xp.conj(x)

            @staticmethod
            def backward(ctx, v):
                return second(xp, *ctx.saved_tensors, v)

        return square_with(gradient=lambda xp, ctx, g, x, right: Backward.apply(x, g))(xp, ag)

    return body


THROUGH_ANOTHER = replace(
    SQUARE,
    name="SquareThrough",
    body=_square_through(lambda xp, x, g, v: (2 * xp.conj(v) * g, 2 * v * x)),
)


def _unscaled_product_jvp(xp: Any, ctx: Any, dx: Any, dy: Any) -> Any:
    x, y = ctx.saved_tensors
    return dx * y + dy * x if x.ndim < 2 else dx * y - dy * x


def _half_product_jvp(xp: Any, ctx: Any, dx: Any, dy: Any) -> Any:
    return dx * ctx.saved_tensors[1]


def _take_vmap(front: Any) -> Any:
    def vmap(xp: Any, cls: Any, info: Any, in_dims: Any, x: Any, ind: Any, ind_inv: Any, dim: int) -> Any:
        def batched(part: Any, axis: int | None) -> Any:
            return xp.broadcast_to(part, (info.batch_size, *part.shape)) if axis is None else front(xp, part, axis)

        parts = [batched(part, axis) for part, axis in zip((x, ind, ind_inv), in_dims, strict=False)]
        return cls.apply(*parts, (dim if dim >= 0 else dim + parts[0].ndim - 1) + 1), 0

    return vmap


def _product_vmap(rule: Any) -> Any:
    """The product with a written batching rule, ``rule(xp, x, x_axis, y, y_axis)`` giving both batched in front."""

    def body(xp: Any, ag: Any) -> Any:
        cls: Any = product_with(generate_vmap_rule=False)(xp, ag)

        def vmap(info: Any, in_dims: Any, x: Any, y: Any) -> Any:
            return cls.apply(*rule(xp, info.batch_size, x, in_dims[0], y, in_dims[1])), 0

        cls.vmap = staticmethod(vmap)
        return cls

    return body


def _in_front(xp: Any, size: int, x: Any, axis: int | None) -> Any:
    return xp.broadcast_to(x, (size, *x.shape)) if axis is None else to_front(xp, x, axis)


PRODUCT_VMAP = replace(
    PRODUCT,
    name="ProductVmap",
    body=_product_vmap(lambda xp, size, x, a, y, b: (_in_front(xp, size, x, a), _in_front(xp, size, y, b))),
)


def _repeated(xp: Any, size: int, y: Any) -> Any:
    return xp.reshape(xp.broadcast_to(y[..., None], (*y.shape, size)), (size, *y.shape))


DERIVATIVES = (
    *(
        planted("DBL-CORRECT", SQUARE, name, body, fault, "second derivative", *says)
        for name, body, fault, *says in (
            (
                "CotangentDetached",
                square_with(gradient=lambda xp, ctx, g, x, right: 2 * g.detach() * xp.conj(x)),
                "the second derivative with respect to the cotangent is lost",
            ),
            (
                "InputDetached",
                square_with(gradient=lambda xp, ctx, g, x, right: 2 * g * xp.conj(x.detach())),
                "the second derivative with respect to the input is lost",
            ),
            (
                "Detached",
                square_with(gradient=lambda xp, ctx, g, x, right: right.detach()),
                "the gradient has no history",
                "silently detached",
            ),
            (
                "InSinglePrecisionDetached",
                square_with(
                    gradient=lambda xp, ctx, g, x, right: right.detach() if x.dtype == torch.float32 else right
                ),
                "the gradient has no history in single precision",
                "silently detached",
            ),
            (
                "IntermediateSaved",
                square_with(
                    save=lambda xp, ctx, x: ctx.save_for_backward(2 * x),
                    gradient=lambda xp, ctx, g, twice, right: g * xp.conj(twice),
                ),
                "saves an intermediate, through which nothing flows back",
            ),
        )
    ),
    planted(
        "DBL-CORRECT",
        THROUGH_ANOTHER,
        "CrossTermUnconjugated",
        _square_through(lambda xp, x, g, v: (2 * v * g, 2 * v * x)),
        "a factor of the second derivative is not conjugated",
        "second derivative",
        changes={"dtypes": ("complex128",)},
    ),
    planted(
        "DBL-CORRECT",
        THROUGH_ANOTHER,
        "CotangentTermHalved",
        _square_through(lambda xp, x, g, v: (2 * xp.conj(v) * g, v * x)),
        "the second derivative with respect to the cotangent is halved",
        "second derivative",
    ),
    planted(
        "DBL-CORRECT",
        THROUGH_ANOTHER,
        "CotangentTermMissing",
        _square_through(lambda xp, x, g, v: (2 * xp.conj(v) * g, None)),
        "the second derivative with respect to the cotangent is None",
        "second derivative",
    ),
    planted(
        "DBL-CORRECT",
        SQUARE,
        "RefusedThoughSupported",
        lambda xp, ag: type(
            "Once",
            (SQUARE.body(xp, ag),),
            {"backward": staticmethod(ag.once_differentiable(SQUARE.body(xp, ag).backward))},
        ),
        "declared once-differentiable in the code and twice in the description",
        "second derivative",
    ),
    planted(
        "DBL-ONCE",
        SAVE_FOR_BACKWARD,
        "NotDeclared",
        derived(
            SAVE_FOR_BACKWARD,
            backward=lambda xp, cls, ctx, g: (
                g * xp.conj(ctx.saved_tensors[1] * (1 + ctx.z)),
                g * xp.conj(ctx.saved_tensors[0] + ctx.z + ctx.saved_tensors[2]),
                None,
            ),
        ),
        "once_differentiable is missing",
        "the second derivative",
        "an exception",
    ),
    *(
        planted("JVP-REF", twin, name, body, fault, "tangent of output 0")
        for twin, name, body, fault in (
            (
                PRODUCT,
                "SignWrong",
                product_with(jvp=_unscaled_product_jvp),
                "the second term has the wrong sign for matrices",
            ),
            (PRODUCT, "TermMissing", product_with(jvp=_half_product_jvp), "the second term is missing"),
            (
                PRODUCT,
                "Conjugated",
                product_with(
                    jvp=lambda xp, ctx, dx, dy: dx * xp.conj(ctx.saved_tensors[1]) + dy * xp.conj(ctx.saved_tensors[0])
                ),
                "takes the conjugate, as backward does",
            ),
        )
    ),
    planted(
        "JVP-REF",
        MY_CUBE,
        "SecondOutputHalved",
        derived(MY_CUBE, jvp=lambda xp, cls, ctx, dx: (dx * ctx.saved_tensors[1], 3 * dx * ctx.saved_tensors[0])),
        "the tangent of the second output is halved",
        "tangent of output 1 (dx)",
    ),
    *(
        planted("JVP-ADJOINT", PRODUCT, name, body, fault, "<cotangent, JVP(tangent)>")
        for name, body, fault in (
            (
                "SignWrong",
                product_with(jvp=_unscaled_product_jvp),
                "one term of the forward rule has the wrong sign for matrices",
            ),
            (
                "BackwardScaled",
                product_with(gradients=lambda xp, ctx, g, x, y, gx, gy: (gx, gy * 1.001)),
                "backward is off by a thousandth",
            ),
        )
    ),
    *(
        planted("BATCH-VMAP", PRODUCT_VMAP, name, _product_vmap(rule), fault, "batched axis")
        for name, rule, fault in (
            (
                "LastAxisTakenForFirst",
                lambda xp, size, x, a, y, b: (
                    x if a is not None and x.shape[0] == size else _in_front(xp, size, x, a),
                    _in_front(xp, size, y, b),
                ),
                "takes the first axis for the batched one wherever its length fits",
            ),
            (
                "UnbatchedRepeatedByElement",
                lambda xp, size, x, a, y, b: (
                    _in_front(xp, size, x, a),
                    _repeated(xp, size, y) if b is None else to_front(xp, y, b),
                ),
                "repeats each element of an argument that is not batched instead of the whole",
            ),
        )
    ),
    planted(
        "BATCH-VMAP",
        NUMPY_TAKE,
        "FirstAxisTaken",
        derived(NUMPY_TAKE, vmap=_take_vmap(lambda xp, part, axis: part)),
        "takes the first axis for the batched one",
        "batched axis",
    ),
)
