"""Functions made of a formula and its gradient, for specimens."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from inspect import Parameter, Signature, signature
from typing import Any

import numpy as np
import torch
from torch.autograd import Function

HALF = {"float16": torch.float16, "bfloat16": torch.bfloat16}


def custom(name: str = "Made", base: type[Function] = Function, **methods: Callable[..., Any]) -> type[Function]:
    """A Function with these methods, such as forward and backward, and otherwise those of ``base``."""
    return type(name, (base,), {word: staticmethod(method) for word, method in methods.items()})


def function(forward: Callable[..., Any], gradients: Callable[..., Any], name: str = "Made") -> type[Function]:
    """A Function of tensors and constants whose backward is ``gradients(g, y, *inputs)``."""

    def run(ctx, *inputs):
        y = forward(*inputs)
        ctx.constants = {n: x for n, x in enumerate(inputs) if not isinstance(x, torch.Tensor | None)}
        ctx.save_for_backward(y, *(None if n in ctx.constants else x for n, x in enumerate(inputs)))
        return y

    def backward(ctx, g):
        y, *inputs = ctx.saved_tensors
        return gradients(g, y, *(ctx.constants.get(n, x) for n, x in enumerate(inputs)))

    with contextlib.suppress(ValueError):
        # Findings name the arguments as the formula does.
        ctx = Parameter("ctx", Parameter.POSITIONAL_ONLY)
        run.__signature__ = Signature([ctx, *signature(forward).parameters.values()])  # type: ignore[attr-defined]
    return custom(name, forward=run, backward=backward)


def with_jvp(forward: Callable[..., Any], slopes: Callable[..., Any], of_jvp: Callable[..., Any] | None = None) -> Any:
    """A Function of tensors with those slopes, one for each, in backward and in jvp, or with others in jvp."""

    def setup_context(ctx, inputs, _):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    def backward(ctx, g):
        return tuple(g * slope for slope in slopes(*ctx.saved_tensors))

    def jvp(ctx, *tangents):
        rows = zip(tangents, (of_jvp or slopes)(*ctx.saved_tensors), strict=True)
        return sum(tangent * slope for tangent, slope in rows)

    # The engine asks for a signature, which operations of torch lack.
    run = {1: lambda x: forward(x), 2: lambda x, y: forward(x, y)}[len(signature(slopes).parameters)]
    return custom("Made", forward=run, setup_context=setup_context, backward=backward, jvp=jvp)


def opaque(compute: Callable[[np.ndarray], np.ndarray]) -> Callable[..., Any]:
    """A forward of which no operation is seen: it computes with NumPy."""

    def forward(x):
        wide = torch.float32 if x.dtype is torch.bfloat16 else x.dtype
        with np.errstate(all="ignore"):
            return torch.as_tensor(compute(x.detach().to(wide).numpy())).to(x.dtype)

    return forward


def wide(x: torch.Tensor) -> torch.Tensor:
    """The tensor in single precision if it has half precision."""
    return x.float() if x.dtype in HALF.values() else x


def in_single(compute: Callable[..., Any]) -> Callable[..., Any]:
    """The same in single precision where inputs have half precision, as kernels compute."""

    return lambda *inputs: compute(*map(wide, inputs)).to(inputs[-1].dtype)


def column(y: torch.Tensor) -> torch.Tensor:
    """The tensor with a last dimension of length one."""
    return y.unsqueeze(-1)


class Sine(Function):
    """Right."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0].conj().cos()


class SineSlope(Function):
    """x.cos() * g, which is the slope of the sine along g. It has no backward."""

    @staticmethod
    def forward(ctx, x, g):
        ctx.save_for_backward(x, g)
        return x.cos() * g
