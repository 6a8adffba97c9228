"""Documented Functions with arguments that are not tensors, and small ones that exercise one rule of the contract."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from autograd_conformance.reference.definitions import Array, Function, Output, Shape, Shapes, Static


def mul_constant_body(xp: Any, ag: Any) -> Any:  # noqa: ARG001 - every body takes both
    class MulConstant(ag.Function):
        @staticmethod
        def forward(tensor, constant):
            return tensor * constant

        @staticmethod
        def setup_context(ctx, inputs, output):  # noqa: ARG004 - the documented signature
            _, constant = inputs
            ctx.constant = constant

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * ctx.constant, None

    return MulConstant


def mul_constant_unmaterialized_body(xp: Any, ag: Any) -> Any:  # noqa: ARG001 - every body takes both
    class MulConstant(ag.Function):
        @staticmethod
        def forward(tensor, constant):
            return tensor * constant

        @staticmethod
        def setup_context(ctx, inputs, output):  # noqa: ARG004 - the documented signature
            _, constant = inputs
            ctx.set_materialize_grads(False)
            ctx.constant = constant

        @staticmethod
        def backward(ctx, grad_output):
            if grad_output is None:
                return None, None
            return grad_output * ctx.constant, None

    return MulConstant


_CONSTANT = Static(name="constant", choices=lambda _: (2, 0.5, -1.5, 0, 3))

MUL_CONSTANT = Function(
    name="MulConstant",
    body=mul_constant_body,
    arguments=(Array(name="tensor", dims="*s"), _CONSTANT),
    forward=lambda tensor, constant: (tensor * constant,),
    vjp=lambda cotangents, _, constant: (cotangents[0] * constant, None),
    document="Extending PyTorch, example",
    exercises="an argument that is not a tensor, kept as an attribute of ctx",
)

MUL_CONSTANT_UNMATERIALIZED = Function(
    name="MulConstantUnmaterialized",
    body=mul_constant_unmaterialized_body,
    arguments=(Array(name="tensor", dims="*s"), _CONSTANT),
    forward=lambda tensor, constant: (tensor * constant,),
    vjp=lambda cotangents, _, constant: (cotangents[0] * constant, None),
    materialize=False,
    document="Extending PyTorch, example",
    exercises="answers a cotangent None with a gradient None",
)


def save_for_backward_body(xp: Any, ag: Any) -> Any:
    class SaveForBackward(ag.Function):
        @staticmethod
        def forward(ctx, x, y, z: int):
            w = x * z
            out = x * y + y * z + w * y
            ctx.save_for_backward(x, y, w, out)
            ctx.z = z
            return out

        @staticmethod
        @ag.once_differentiable
        def backward(ctx, grad_out):
            x, y, w, _ = ctx.saved_tensors
            z = ctx.z
            gx = grad_out * xp.conj(y + y * z)
            gy = grad_out * xp.conj(x + z + w)
            return gx, gy, None

    return SaveForBackward


SAVE_FOR_BACKWARD = Function(
    name="SaveForBackward",
    body=save_for_backward_body,
    arguments=(
        Array(name="x", dims="*s"),
        Array(name="y", dims="*s"),
        Static(name="z", choices=lambda _: (2, 1, 0, -1, 3)),
    ),
    forward=lambda x, y, z: (x * y + y * z + x * z * y,),
    vjp=lambda cotangents, x, y, z: (
        cotangents[0] * np.conj(y + y * z),
        cotangents[0] * np.conj(x + z + x * z),
        None,
    ),
    double="once",
    document="torch.autograd.function.FunctionCtx.save_for_backward",
    exercises="saves an input, an intermediate and an output",
)


def simple_func_body(xp: Any, ag: Any) -> Any:
    class SimpleFunc(ag.Function):
        @staticmethod
        def forward(ctx, x):  # noqa: ARG004 - the documented signature
            return xp.copy(x), xp.copy(x)

        @staticmethod
        @ag.once_differentiable
        def backward(ctx, g1, g2):  # noqa: ARG004 - the documented signature
            return g1 + g2

    return SimpleFunc


def simple_func_unmaterialized_body(xp: Any, ag: Any) -> Any:
    class SimpleFunc(ag.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            ctx.save_for_backward(x)
            return xp.copy(x), xp.copy(x)

        @staticmethod
        @ag.once_differentiable
        def backward(ctx, g1, g2):
            (x,) = ctx.saved_tensors
            grad_input = xp.zeros_like(x)
            if g1 is not None:
                grad_input = grad_input + g1
            if g2 is not None:
                grad_input = grad_input + g2
            return grad_input

    return SimpleFunc


SIMPLE_FUNC = Function(
    name="SimpleFunc",
    body=simple_func_body,
    arguments=(Array(name="x", dims="*s"),),
    outputs=(Output(name="first"), Output(name="second")),
    forward=lambda x: (x, x),
    vjp=lambda cotangents, _: (cotangents[0] + cotangents[1],),
    double="once",
    document="torch.autograd.function.FunctionCtx.set_materialize_grads",
    exercises="relies on zeros for the output that is not used",
)

SIMPLE_FUNC_UNMATERIALIZED = Function(
    name="SimpleFuncUnmaterialized",
    body=simple_func_unmaterialized_body,
    arguments=(Array(name="x", dims="*s"),),
    outputs=(Output(name="first"), Output(name="second")),
    forward=lambda x: (x, x),
    vjp=lambda cotangents, _: (cotangents[0] + cotangents[1],),
    double="once",
    materialize=False,
    document="torch.autograd.function.FunctionCtx.set_materialize_grads",
    exercises="gets None for the output that is not used",
)


def numpy_mul_body(xp: Any, ag: Any) -> Any:
    def reduced(gradient, shape):
        """The gradient summed over the axes along which a tensor of that shape was broadcast."""
        missing = gradient.ndim - len(shape)
        stretched = [missing + axis for axis, side in enumerate(shape) if side != gradient.shape[missing + axis]]
        axes = (*range(missing), *stretched)
        return xp.reshape(xp.sum(gradient, axis=axes), shape) if axes else gradient

    class NumpyMul(ag.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x, y):
            return x * y

        @staticmethod
        def setup_context(ctx, inputs, output):  # noqa: ARG004 - the documented signature
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx, grad_output):
            x, y = ctx.saved_tensors
            gx = gy = None
            if ctx.needs_input_grad[0]:
                gx = reduced(NumpyMul.apply(grad_output, xp.conj(y)), x.shape)
            if ctx.needs_input_grad[1]:
                gy = reduced(NumpyMul.apply(grad_output, xp.conj(x)), y.shape)
            return gx, gy

        @staticmethod
        def jvp(ctx, x_tangent, y_tangent):
            x, y = ctx.saved_tensors
            return x_tangent * y + y_tangent * x

    return NumpyMul


def _reduced(gradient: Any, shape: Shape) -> Any:
    padded = (1,) * (len(gradient.shape) - len(shape)) + tuple(shape)
    axes = tuple(axis for axis, side in enumerate(padded) if side == 1)
    return np.reshape(np.sum(gradient, axis=axes, keepdims=True), shape)


NUMPY_MUL = Function(
    name="NumpyMul",
    body=numpy_mul_body,
    arguments=(Array(name="x", dims="~s"), Array(name="y", dims="~s")),
    forward=lambda x, y: (x * y,),
    vjp=lambda cotangents, x, y: (
        _reduced(cotangents[0] * np.conj(y), x.shape),
        _reduced(cotangents[0] * np.conj(x), y.shape),
    ),
    jvp=lambda tangents, x, y: (tangents[0] * y + tangents[1] * x,),
    batching=True,
    document="torch.testing._internal.autograd_function_db",
    exercises="arguments that broadcast, a backward that calls the Function itself, forward mode in two arguments",
)


def gradient_scaler_body(xp: Any, ag: Any) -> Any:
    class GradientScaler(ag.Function):
        generate_vmap_rule = True
        scale = 3.14

        @staticmethod
        def forward(x):
            return xp.copy(x)

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, grad_output):  # noqa: ARG004 - the documented signature
            return grad_output * GradientScaler.scale

    return GradientScaler


GRADIENT_SCALER = Function(
    name="GradientScaler",
    body=gradient_scaler_body,
    arguments=(Array(name="x", dims="*s"),),
    forward=lambda x: (x,),
    vjp=lambda cotangents, _: (cotangents[0] * 3.14,),
    surrogate=True,
    batching=True,
    document="torch.testing._internal.autograd_function_db, ScaleGradGenVmap",
    exercises="a gradient that shows whether the rule ran or the forward was differentiated instead",
)


def select_body(xp: Any, ag: Any) -> Any:
    def placed(values, shape, idx):
        """Zeros of that shape that hold the values at the index."""
        if not idx:
            return values
        first = idx[0] % shape[0]
        options = {"dtype": values.dtype, "device": values.device}
        before = xp.zeros((first, *shape[1:]), **options)
        after = xp.zeros((shape[0] - first - 1, *shape[1:]), **options)
        return xp.concat([before, xp.expand_dims(placed(values, shape[1:], idx[1:]), axis=0), after], axis=0)

    class Select(ag.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x, idx=(2,)):
            return x[idx]

        @staticmethod
        def setup_context(ctx, inputs, output):  # noqa: ARG004 - the documented signature
            x, idx = inputs
            ctx.x_shape = x.shape
            ctx.idx = idx

        @staticmethod
        def backward(ctx, grad_output):
            idx = (ctx.idx,) if isinstance(ctx.idx, int) else ctx.idx
            return placed(grad_output, ctx.x_shape, idx), None

        @staticmethod
        def jvp(ctx, x_tangent, _):
            return Select.apply(x_tangent, ctx.idx)

    return Select


def _select_choices(shapes: Shapes) -> Sequence[Any]:
    ((rows, *columns),) = shapes
    choices = [(2,), 0, 2, -1, (-2,), (rows - 1,)]
    if columns and columns[0]:
        choices += [(1, 0), (0, -1)]
    return choices


def _select_vjp(cotangents: Any, x: Any, idx: Any) -> tuple[Any, None]:
    (g,) = cotangents
    leading = [(i % side, side) for i, side in zip(idx if isinstance(idx, tuple) else (idx,), x.shape, strict=False)]
    widths = [(i, side - i - 1) for i, side in leading] + [(0, 0)] * len(g.shape)
    return np.pad(np.reshape(g, (1,) * len(leading) + g.shape), widths), None


SELECT = Function(
    name="Select",
    body=select_body,
    arguments=(Array(name="x", dims="n *s"), Static(name="idx", choices=_select_choices, default=(2,))),
    forward=lambda x, idx: (x[idx],),
    vjp=_select_vjp,
    jvp=lambda tangents, _, idx: (tangents[0][idx],),
    # The default index needs three rows.
    sizes={"n": (3, 4, 17), "*s": (0, 3)},
    batching=True,
    document="torch.testing._internal.autograd_function_db, ForwardHasDefaultArgs",
    exercises="a default argument that is not a tensor, and an output that is a view of the input",
)
