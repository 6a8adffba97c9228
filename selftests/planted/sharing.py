"""Faults in what calls share, keep and receive: buffers, re-laid inputs, cotangents that never come."""

# The hooks of a body take parameters that not each of them uses.
# ruff: noqa: ARG001

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from autograd_conformance.implementations.torch import TorchImplementation
from autograd_conformance.reference.functions.indexing import SORT
from autograd_conformance.reference.functions.scalars import SAVE_FOR_BACKWARD, SIMPLE_FUNC_UNMATERIALIZED
from autograd_conformance.selftests.planted.definitions import SQUARE, misbehaving, planted, square_with


def _shared_output() -> Any:
    buffers: dict[Any, Any] = {}

    def output(xp: Any, ctx: Any, x: Any, y: Any) -> Any:
        buffer = buffers.setdefault((x.shape, x.dtype), xp.copy(y))
        buffer.copy_(y)
        return buffer.detach()

    return square_with(output)


def _relaid(xp: Any, ctx: Any, x: Any, y: Any) -> Any:
    if x.ndim == 2:
        x.data = x.data.mT.contiguous().mT
    return y


def _keeping_cotangents() -> Any:
    kept: list[Any] = []

    def gradient(xp: Any, ctx: Any, g: Any, x: Any, right: Any) -> Any:
        kept.append(g)
        return right

    return square_with(gradient=gradient)


class MaterializesAlways(TorchImplementation):
    """ctx.set_materialize_grads does nothing."""

    def function(self, cls: Any) -> Callable[..., Any]:
        class Deaf:
            def __init__(self, ctx: Any) -> None:
                self.__dict__["ctx"] = ctx

            def __getattr__(self, name: str) -> Any:
                return (lambda _: None) if name == "set_materialize_grads" else getattr(self.ctx, name)

        forward = staticmethod(lambda ctx, *args: cls.forward(Deaf(ctx), *args))
        return type(cls)(cls.__name__, (cls,), {"forward": forward}).apply  # type: ignore[no-any-return]


class RefusesCreateGraph(TorchImplementation):
    """A once-differentiable backward dies of being recorded."""

    def vjp(self, f: Any, primals: Any, *, track: Any = None) -> Any:
        outputs, pullback = super().vjp(f, primals, track=track)

        def refusing(cotangents: Any, *args: Any, differentiable: bool = False, **options: Any) -> Any:
            if differentiable:
                raise RuntimeError("create_graph is not supported")
            return pullback(cotangents, *args, **options)

        return outputs, refusing


def _sort_on_ctx(xp: Any, ag: Any) -> Any:
    class SortOnCtx(ag.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, axis: int) -> Any:
            ctx.indices, ctx.axis = xp.argsort(x, axis=axis), axis
            ctx.mark_non_differentiable(ctx.indices)
            return xp.take_along_axis(x, ctx.indices, axis=axis), ctx.indices

        @staticmethod
        @ag.once_differentiable
        def backward(ctx: Any, g: Any, _: Any) -> Any:
            inverse = xp.argsort(ctx.indices, axis=ctx.axis)
            return xp.take_along_axis(g, inverse, axis=ctx.axis), None

    return SortOnCtx


def _copy_and_input(xp: Any, ctx: Any, x: Any) -> None:
    ctx.kept = {"x": [x]}
    ctx.save_for_backward(xp.copy(x))


def _held(which: Callable[[Any, Any], Any]) -> Any:
    """Square that saves a copy, and asks its input, which it keeps on ctx, for a factor of its gradient."""

    def gradient(xp: Any, ctx: Any, g: Any, x: Any, right: Any) -> Any:
        (held,) = ctx.kept["x"]
        return right * which(held, x)

    return square_with(save=_copy_and_input, gradient=gradient)


SHARING = (
    planted("VJP-REPEAT", SQUARE, "SharedOutput", _shared_output(), "all calls of a shape give away one buffer"),
    planted(
        "FWD-PURE",
        SQUARE,
        "Relaid",
        square_with(_relaid),
        "the forward stores its input in another layout",
        "what changed in the inputs",
    ),
    planted("MEM-FREE", SQUARE, "CotangentKept", _keeping_cotangents(), "cotangents are kept for ever", "cotangent"),
    misbehaving(
        "VJP-UNUSED",
        MaterializesAlways(),
        "MaterializesAlways",
        SIMPLE_FUNC_UNMATERIALIZED,
        "set_materialize_grads(False) is ignored",
        "unused outputs",
    ),
    misbehaving(
        "DBL-ONCE",
        RefusesCreateGraph(),
        "RefusesCreateGraph",
        SAVE_FOR_BACKWARD,
        "gradients under create_graph are refused",
        "create_graph is not supported",
    ),
    planted(
        "VJP-INPLACE-SAFE",
        SORT,
        "IndicesOnCtx",
        _sort_on_ctx,
        "keeps an integer output as an attribute of ctx",
        "gradient of argument 0 (x)",
    ),
    *(
        planted(
            "VJP-INPLACE-SAFE",
            SQUARE,
            name,
            _held(factor),
            f"keeps its input in a list on ctx, which counts only if it is {what}",
            "gradient of argument 0 (x)",
            f"changed to: {value}",
            changes={"dtypes": ("float64", "float32", "float16", "bfloat16")},
        )
        for name, factor, what, value in (
            ("LargeOnCtx", lambda held, _: held < 100, "large", "1000"),
            ("SmallOnCtx", lambda held, _: held > -100, "very negative", "-1000"),
            ("ZeroOnCtx", lambda held, _: held != 0, "zero", "0"),
            ("SignOnCtx", lambda held, x: 1 - 2 * ((held * x < 0) & (abs(held) < 5)), "negated", "its negative"),
        )
    ),
)
