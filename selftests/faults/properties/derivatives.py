"""Faults in second derivatives, forward-mode rules and batching rules."""

from __future__ import annotations

from dataclasses import replace

import torch

from autograd_conformance.reference.functions.elementwise import MY_CUBE
from autograd_conformance.reference.functions.indexing import NUMPY_TAKE, to_front
from autograd_conformance.reference.functions.scalars import SAVE_FOR_BACKWARD
from autograd_conformance.selftests.faults.properties.definitions import (
    PRODUCT,
    SQUARE,
    derived,
    in_gradient,
    in_square,
    planted,
    product_with,
    square_with,
)


def _square_through(second):
    """Square whose backward is a custom Function with the gradients ``second(xp, x, g, v)``."""

    def body(xp, ag):
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
    SQUARE, name="SquareThrough", body=_square_through(lambda xp, x, g, v: (2 * xp.conj(v) * g, 2 * v * x))
)


def _unscaled_product_jvp(xp, ctx, dx, dy):
    x, y = ctx.saved_tensors
    return dx * y + dy * x if x.ndim < 2 else dx * y - dy * x


def _take_vmap(front):
    def vmap(xp, cls, info, in_dims, x, ind, ind_inv, dim):
        def batched(part, axis):
            return xp.broadcast_to(part, (info.batch_size, *part.shape)) if axis is None else front(xp, part, axis)

        parts = [batched(part, axis) for part, axis in zip((x, ind, ind_inv), in_dims, strict=False)]
        return cls.apply(*parts, (dim if dim >= 0 else dim + parts[0].ndim - 1) + 1), 0

    return vmap


def _product_vmap(rule):
    """The product with a written batching rule, ``rule(xp, x, x_axis, y, y_axis)`` giving both batched in front."""

    def body(xp, ag):
        cls = product_with(generate_vmap_rule=False)(xp, ag)

        def vmap(info, in_dims, x, y):
            return cls.apply(*rule(xp, info.batch_size, x, in_dims[0], y, in_dims[1])), 0

        cls.vmap = staticmethod(vmap)
        return cls

    return body


def _in_front(xp, size, x, axis):
    return xp.broadcast_to(x, (size, *x.shape)) if axis is None else to_front(xp, x, axis)


PRODUCT_VMAP = replace(
    PRODUCT,
    name="ProductVmap",
    body=_product_vmap(lambda xp, size, x, a, y, b: (_in_front(xp, size, x, a), _in_front(xp, size, y, b))),
)


def _repeated(xp, size, y):
    return xp.reshape(xp.broadcast_to(y[..., None], (*y.shape, size)), (size, *y.shape))


DERIVATIVES = (
    in_gradient(
        "DBL-CORRECT CotangentDetached: the second derivative with respect to the cotangent is lost",
        lambda g, x, right: 2 * g.detach() * torch.conj(x),
        "second derivative",
    ),
    in_gradient(
        "DBL-CORRECT InputDetached: the second derivative with respect to the input is lost",
        lambda g, x, right: 2 * g * torch.conj(x.detach()),
        "second derivative",
    ),
    in_gradient(
        "DBL-CORRECT Detached: the gradient has no history",
        lambda g, x, right: right.detach(),
        "second derivative",
        "silently detached",
    ),
    in_gradient(
        "DBL-CORRECT InSinglePrecisionDetached: the gradient has no history in single precision",
        lambda g, x, right: right.detach() if x.dtype == torch.float32 else right,
        "second derivative",
        "silently detached",
    ),
    in_square(
        "DBL-CORRECT IntermediateSaved: saves an intermediate, through which nothing flows back",
        square_with(
            save=lambda xp, ctx, x: ctx.save_for_backward(2 * x),
            gradient=lambda xp, ctx, g, twice, right: g * xp.conj(twice),
        ),
        "second derivative",
    ),
    planted(
        "DBL-CORRECT CrossTermUnconjugated: a factor of the second derivative is not conjugated",
        THROUGH_ANOTHER,
        _square_through(lambda xp, x, g, v: (2 * v * g, 2 * v * x)),
        "second derivative",
        dtypes=("complex128",),
    ),
    planted(
        "DBL-CORRECT CotangentTermHalved: the second derivative with respect to the cotangent is halved",
        THROUGH_ANOTHER,
        _square_through(lambda xp, x, g, v: (2 * xp.conj(v) * g, v * x)),
        "second derivative",
    ),
    planted(
        "DBL-CORRECT CotangentTermMissing: the second derivative with respect to the cotangent is None",
        THROUGH_ANOTHER,
        _square_through(lambda xp, x, g, v: (2 * xp.conj(v) * g, None)),
        "second derivative",
    ),
    in_square(
        "DBL-CORRECT RefusedThoughSupported: declared once-differentiable in the code and twice in the description",
        lambda xp, ag: type(
            "Once",
            (SQUARE.body(xp, ag),),
            {"backward": staticmethod(ag.once_differentiable(SQUARE.body(xp, ag).backward))},
        ),
        "second derivative",
    ),
    planted(
        "DBL-ONCE NotDeclared: once_differentiable is missing",
        SAVE_FOR_BACKWARD,
        derived(
            SAVE_FOR_BACKWARD,
            backward=lambda xp, cls, ctx, g: (
                g * xp.conj(ctx.saved_tensors[1] * (1 + ctx.z)),
                g * xp.conj(ctx.saved_tensors[0] + ctx.z + ctx.saved_tensors[2]),
                None,
            ),
        ),
        "the second derivative",
        "an exception",
    ),
    planted(
        "JVP-REF SignWrong: the second term has the wrong sign for matrices",
        PRODUCT,
        product_with(jvp=_unscaled_product_jvp),
        "tangent of output 0",
    ),
    planted(
        "JVP-REF TermMissing: the second term is missing",
        PRODUCT,
        product_with(jvp=lambda xp, ctx, dx, dy: dx * ctx.saved_tensors[1]),
        "tangent of output 0",
    ),
    planted(
        "JVP-REF Conjugated: takes the conjugate, as backward does",
        PRODUCT,
        product_with(
            jvp=lambda xp, ctx, dx, dy: dx * xp.conj(ctx.saved_tensors[1]) + dy * xp.conj(ctx.saved_tensors[0])
        ),
        "tangent of output 0",
    ),
    planted(
        "JVP-REF SecondOutputHalved: the tangent of the second output is halved",
        MY_CUBE,
        derived(MY_CUBE, jvp=lambda xp, cls, ctx, dx: (dx * ctx.saved_tensors[1], 3 * dx * ctx.saved_tensors[0])),
        "tangent of output 1 (dx)",
    ),
    planted(
        "JVP-ADJOINT SignWrong: one term of the forward rule has the wrong sign for matrices",
        PRODUCT,
        product_with(jvp=_unscaled_product_jvp),
        "<cotangent, JVP(tangent)>",
    ),
    planted(
        "JVP-ADJOINT BackwardScaled: backward is off by a thousandth",
        PRODUCT,
        product_with(gradients=lambda xp, ctx, g, x, y, gx, gy: (gx, gy * 1.001)),
        "<cotangent, JVP(tangent)>",
    ),
    planted(
        "BATCH-VMAP LastAxisTakenForFirst: takes the first axis for the batched one wherever its length fits",
        PRODUCT_VMAP,
        _product_vmap(
            lambda xp, size, x, a, y, b: (
                x if a is not None and x.shape[0] == size else _in_front(xp, size, x, a),
                _in_front(xp, size, y, b),
            )
        ),
        "batched axis",
    ),
    planted(
        "BATCH-VMAP UnbatchedRepeatedByElement: repeats each element of an argument that is not batched "
        "instead of the whole",
        PRODUCT_VMAP,
        _product_vmap(
            lambda xp, size, x, a, y, b: (
                _in_front(xp, size, x, a),
                _repeated(xp, size, y) if b is None else to_front(xp, y, b),
            )
        ),
        "batched axis",
    ),
    planted(
        "BATCH-VMAP FirstAxisTaken: takes the first axis for the batched one",
        NUMPY_TAKE,
        derived(NUMPY_TAKE, vmap=_take_vmap(lambda xp, part, axis: part)),
        "batched axis",
    ),
)
