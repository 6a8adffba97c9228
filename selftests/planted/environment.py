"""Faults that show under a compiler, autocast, hooks, checkpointing or on another device."""

# The hooks of a body take parameters that not each of them uses.
# ruff: noqa: ARG001, ARG005

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from autograd_conformance.implementations.torch import TorchImplementation
from autograd_conformance.reference.definitions import Array
from autograd_conformance.selftests.planted.definitions import SQUARE, custom, misbehaving, planted, square_with


def _compiled_body(factor: float) -> Any:
    def body(xp: Any, ag: Any) -> Any:
        class Compiled(ag.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx, g):
                (x,) = ctx.saved_tensors
                right = 2 * g * xp.conj(x)
                return right * factor if torch.compiler.is_compiling() else right

        return Compiled

    return body


COMPILED = replace(SQUARE, name="Compiled", body=_compiled_body(1.0), dtypes=("float64",))


def _marked(xp: Any, ctx: Any, x: Any) -> None:
    kept = x * 1
    kept.factor = 2
    ctx.save_for_backward(kept)


def _matmul_with(gradients: Any) -> Any:
    def forward(xp: Any, ctx: Any, x: Any, w: Any) -> Any:
        ctx.save_for_backward(x, w)
        ctx.lowered = torch.is_autocast_enabled("cpu")
        return x @ w

    def backward(xp: Any, ctx: Any, g: Any) -> Any:
        x, w = ctx.saved_tensors
        return gradients(ctx, g.to(x.dtype), x, w)

    return custom(
        forward=forward,
        backward=backward,
    )


MATMUL = replace(
    SQUARE,
    name="Matmul",
    body=_matmul_with(lambda ctx, g, x, w: (g @ w.mT, x.mT @ g)),
    arguments=(Array(name="x", dims="n i"), Array(name="w", dims="i o")),
    forward=lambda x, w: (x @ w,),
    vjp=lambda cotangents, x, w: (cotangents[0] @ w.T, x.T @ cotangents[0]),
    dtypes=("float64", "float32"),
)


def _checkpointed(twice: Any) -> Any:
    def body(xp: Any, ag: Any) -> Any:
        calls: list[int] = []

        def save(xp: Any, ctx: Any, x: Any) -> None:
            calls.append(1)
            ctx.save_for_backward(x)
            ctx.factor = twice(len(calls))

        return square_with(save=save, gradient=lambda xp, ctx, g, x, right: right * ctx.factor)(xp, ag)

    return body


class Replaying(TorchImplementation):
    """A compiler whose code gives again what it gave first."""

    def compile(self, f):
        first = []

        def replay(*args):
            now = f(*args)
            first.append(now.detach())
            return now + (first[0] - first[-1])

        return replay


ENVIRONMENT = (
    misbehaving("ENV-COMPILE", Replaying(), "Replaying", SQUARE, "values are baked into what is compiled", "output 0"),
    planted(
        "ENV-COMPILE",
        COMPILED,
        "DoubledWhenCompiled",
        _compiled_body(2.0),
        "takes another path while it is traced",
        "gradient of argument 0 (x)",
    ),
    planted(
        "ENV-AUTOCAST",
        MATMUL,
        "ScaledUnderAutocast",
        _matmul_with(lambda ctx, g, x, w: (g @ w.mT, (x.mT @ g) * (1.25 if ctx.lowered else 1))),
        "a gradient is scaled where the forward ran under autocast",
        "gradient of argument 1 (w)",
    ),
    planted(
        "ENV-AUTOCAST",
        SQUARE,
        "EighthLostUnderAutocast",
        square_with(
            lambda xp, ctx, x, y: y.to(torch.float8_e4m3fn).to(x.dtype) if torch.is_autocast_enabled("cpu") else y
        ),
        "computes in eight bits under autocast",
        "output 0",
    ),
    planted(
        "ENV-SAVED-HOOKS",
        SQUARE,
        "AttributeOfSavedTensor",
        square_with(
            save=_marked,
            gradient=lambda xp, ctx, g, x, right: g * getattr(ctx.saved_tensors[0], "factor", 1) * xp.conj(x),
        ),
        "keeps a factor as an attribute of a saved tensor, which packing loses",
        "under saved-tensor hooks",
    ),
    planted(
        "ENV-SAVED-HOOKS",
        SQUARE,
        "EveryOtherCallDoubled",
        _checkpointed(lambda count: 2 - count % 2),
        "every other call is doubled, and a recomputation is a call",
        "under checkpointing",
        variant="checkpoint",
    ),
    planted(
        "ENV-DEVICE",
        SQUARE,
        "OutputOnTheHost",
        square_with(lambda xp, ctx, x, y: y.cpu()),
        "the output comes back on the host",
        "device",
        device="lazy",
    ),
    planted(
        "ENV-DEVICE",
        SQUARE,
        "GradientOnTheHost",
        square_with(gradient=lambda xp, ctx, g, x, right: right.cpu()),
        "the gradient comes back on the host",
        "device",
        device="lazy",
    ),
    planted(
        "ENV-DEVICE",
        SQUARE,
        "OtherDeviceNegated",
        square_with(gradient=lambda xp, ctx, g, x, right: right if x.device.type == "cpu" else -right),
        "another device has another sign",
        "gradient of argument 0 (x)",
        device="lazy",
    ),
    planted(
        "ENV-DEVICE",
        SQUARE,
        "ThroughNumpy",
        square_with(lambda xp, ctx, x, y: xp.from_numpy(xp.to_numpy(xp.copy(x)) ** 2, x)),
        "computes in NumPy, which a tensor without values does not have",
        "the call raised",
        device="meta",
    ),
    planted(
        "ENV-DEVICE",
        SQUARE,
        "ShapeOfAnotherDevice",
        square_with(lambda xp, ctx, x, y: y.new_empty((1, *y.shape)) if x.device.type == "meta" else y),
        "the shape is another where there are no values",
        "shape",
        device="meta",
    ),
)
