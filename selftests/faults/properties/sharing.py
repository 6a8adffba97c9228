"""Faults in what calls share, keep and receive: buffers, re-laid inputs, cotangents that never come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from autograd_conformance.implementations.torch import TorchImplementation
from autograd_conformance.reference.functions.indexing import SORT
from autograd_conformance.reference.functions.scalars import SAVE_FOR_BACKWARD, SIMPLE_FUNC_UNMATERIALIZED
from autograd_conformance.selftests.faults.properties.definitions import (
    SQUARE,
    in_gradient,
    in_output,
    in_square,
    misbehaving,
    planted,
    square_with,
)
from autograd_conformance.selftests.faults.properties.engines import pulling


def _shared_output():
    buffers = {}

    def output(xp, ctx, x, y):
        buffer = buffers.setdefault((x.shape, x.dtype), xp.copy(y))
        buffer.copy_(y)
        return buffer.detach()

    return square_with(output)


def _relaid(x, y):
    if x.ndim == 2:
        x.data = x.data.mT.contiguous().mT
    return y


_cotangents: list[Any] = []


def _kept(g, x, right):
    _cotangents.append(g)
    return right


class MaterializesAlways(TorchImplementation):
    """ctx.set_materialize_grads does nothing."""

    def function(self, cls: Any) -> Callable[..., Any]:
        class Deaf:
            def __init__(self, ctx):
                self.__dict__["ctx"] = ctx

            def __getattr__(self, name):
                return (lambda _: None) if name == "set_materialize_grads" else getattr(self.ctx, name)

        forward = staticmethod(lambda ctx, *args: cls.forward(Deaf(ctx), *args))
        return type(cls)(cls.__name__, (cls,), {"forward": forward}).apply  # type: ignore[no-any-return]


def _refusing(pull, outputs, cotangents, *args, differentiable=False, **options):
    if differentiable:
        raise RuntimeError("create_graph is not supported")
    return pull(cotangents, *args, **options)


def _sort_on_ctx(xp, ag):
    class SortOnCtx(ag.Function):
        @staticmethod
        def forward(ctx, x, axis):
            ctx.indices, ctx.axis = xp.argsort(x, axis=axis), axis
            ctx.mark_non_differentiable(ctx.indices)
            return xp.take_along_axis(x, ctx.indices, axis=axis), ctx.indices

        @staticmethod
        @ag.once_differentiable
        def backward(ctx, g, _):
            inverse = xp.argsort(ctx.indices, axis=ctx.axis)
            return xp.take_along_axis(g, inverse, axis=ctx.axis), None

    return SortOnCtx


def _copy_and_input(xp, ctx, x):
    ctx.kept = {"x": [x]}
    ctx.save_for_backward(xp.copy(x))


_FLOATS = ("float64", "float32", "float16", "bfloat16")


def _held(which):
    """Square that saves a copy, and asks its input, which it keeps on ctx, for a factor of its gradient."""

    def gradient(xp, ctx, g, x, right):
        (held,) = ctx.kept["x"]
        return right * which(held, x)

    return square_with(save=_copy_and_input, gradient=gradient)


SHARING = (
    planted("VJP-REPEAT SharedOutput: all calls of a shape give away one buffer", SQUARE, _shared_output()),
    in_output("FWD-PURE Relaid: the forward stores its input in another layout", _relaid, "what changed in the inputs"),
    in_gradient("MEM-FREE CotangentKept: cotangents are kept for ever", _kept, "cotangent"),
    misbehaving(
        "VJP-UNUSED MaterializesAlways: set_materialize_grads(False) is ignored",
        MaterializesAlways(),
        "unused outputs",
        of=SIMPLE_FUNC_UNMATERIALIZED,
    ),
    misbehaving(
        "DBL-ONCE RefusesCreateGraph: gradients under create_graph are refused",
        pulling(_refusing),
        "create_graph is not supported",
        of=SAVE_FOR_BACKWARD,
    ),
    planted(
        "VJP-INPLACE-SAFE IndicesOnCtx: keeps an integer output as an attribute of ctx",
        SORT,
        _sort_on_ctx,
        "gradient of argument 0 (x)",
    ),
    in_square(
        "VJP-INPLACE-SAFE LargeOnCtx: keeps its input in a list on ctx, which counts only if it is large",
        _held(lambda held, _: held < 100),
        "gradient of argument 0 (x)",
        "changed to: 1000",
        dtypes=_FLOATS,
    ),
    in_square(
        "VJP-INPLACE-SAFE SmallOnCtx: keeps its input in a list on ctx, which counts only if it is very negative",
        _held(lambda held, _: held > -100),
        "gradient of argument 0 (x)",
        "changed to: -1000",
        dtypes=_FLOATS,
    ),
    in_square(
        "VJP-INPLACE-SAFE ZeroOnCtx: keeps its input in a list on ctx, which counts only if it is zero",
        _held(lambda held, _: held != 0),
        "gradient of argument 0 (x)",
        "changed to: 0",
        dtypes=_FLOATS,
    ),
    in_square(
        "VJP-INPLACE-SAFE SignOnCtx: keeps its input in a list on ctx, which counts only if it is negated",
        _held(lambda held, x: 1 - 2 * ((held * x < 0) & (abs(held) < 5))),
        "gradient of argument 0 (x)",
        "changed to: its negative",
        dtypes=_FLOATS,
    ),
)
