"""Documented Functions that change their input in place."""

from __future__ import annotations

from typing import Any

from autograd_conformance.reference.definitions import Array, Function


def inplace_body(xp: Any, ag: Any) -> Any:
    class Inplace(ag.Function):
        @staticmethod
        def forward(ctx, x):
            values = xp.to_numpy(x)
            values += 1
            ctx.mark_dirty(x)
            return x

        @staticmethod
        @ag.once_differentiable
        def backward(ctx, g):  # noqa: ARG004
            return g

    return Inplace


INPLACE = Function(
    name="Inplace",
    body=inplace_body,
    arguments=(Array(name="x", dims="*s"),),
    forward=lambda x: (x + 1,),
    vjp=lambda cotangents, x: (cotangents[0],),  # noqa: ARG005
    dtypes=("float64", "float32", "float16", "complex128", "complex64"),
    devices=("cpu",),
    double="once",
    inplace=(0,),
    needs=frozenset({"inplace", "numpy"}),
    document="FunctionCtx.mark_dirty docstring, Inplace",
    exercises="changes its input through NumPy, unseen by the version counter, and returns its cotangent as it is",
)


def reciprocal_inplace_body(xp: Any, ag: Any) -> Any:
    class ReciprocalInplace(ag.Function):
        @staticmethod
        def forward(x):
            r = 1 / x
            x *= r
            x *= r
            return x

        @staticmethod
        def setup_context(ctx, inputs, output):
            (x,) = inputs
            ctx.mark_dirty(x)
            ctx.save_for_backward(output)
            ctx.save_for_forward(output)

        @staticmethod
        def backward(ctx, g):
            (y,) = ctx.saved_tensors
            return -g * xp.conj(y * y)

        @staticmethod
        def jvp(ctx, x_tangent):
            (y,) = ctx.saved_tensors
            x_tangent *= -(y * y)
            return x_tangent

        @staticmethod
        def vmap(info, in_dims, x):  # noqa: ARG004
            ReciprocalInplace.apply(x)
            return x, in_dims[0]

    return ReciprocalInplace


def _reciprocal(x: Any) -> Any:
    r = 1 / x
    return x * r * r


RECIPROCAL_INPLACE = Function(
    name="ReciprocalInplace",
    body=reciprocal_inplace_body,
    arguments=(Array(name="x", dims="*s", values="nonzero"),),
    forward=lambda x: (_reciprocal(x),),
    vjp=lambda cotangents, x: (-cotangents[0] * (_reciprocal(x) * _reciprocal(x)).conj(),),
    jvp=lambda tangents, x: (-tangents[0] * (_reciprocal(x) * _reciprocal(x)),),
    inplace=(0,),
    batching=True,
    needs=frozenset({"inplace"}),
    document="torch.testing._internal.autograd_function_db, NumpyExp_",
    exercises="marks its input dirty in setup_context and saves the changed input as its output; in-place jvp",
)
