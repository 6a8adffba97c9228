"""The bodies in which faults of the numbers that backward gives are planted."""

# The hooks of a body take parameters that not each of them uses.
# ruff: noqa: ARG001, ARG005

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from autograd_conformance.reference.definitions import REAL, Array, Function
from autograd_conformance.reference.functions.linear import LINEAR, QKV_PROJECTION
from autograd_conformance.selftests.planted.definitions import custom


def linear_with(gradients: Any) -> Any:
    """The documented linear Function with another backward."""

    def body(xp: Any, ag: Any) -> Any:
        class Linear(LINEAR.body(xp, ag)):
            @staticmethod
            def backward(ctx, g):
                return gradients(xp, ctx.needs_input_grad, g, *ctx.saved_tensors)

        return Linear

    return body


def linear_guarded(input_flag: int, weight_flag: int, bias_flag: int) -> Any:
    """Linear's gradients, each guarded by the flag of the argument of that number."""

    def gradients(xp: Any, needs: Any, g: Any, input: Any, weight: Any, bias: Any) -> Any:
        flags = (*needs, *(False,) * (3 - len(needs)))
        return (
            g @ xp.conj(weight) if flags[input_flag] else None,
            xp.matrix_transpose(g) @ xp.conj(input) if flags[weight_flag] else None,
            xp.sum(g, axis=0) if bias is not None and flags[bias_flag] else None,
        )[: max(len(needs), 2)]

    return linear_with(gradients)


def linear_transposed(xp: Any, needs: Any, g: Any, input: Any, weight: Any, bias: Any) -> Any:
    square = weight.shape[0] == weight.shape[1]
    grad_weight = xp.matrix_transpose(g) @ xp.conj(input)
    # The fault: the memory of the transposed product is given the right shape.
    grad_weight = grad_weight if square else xp.reshape(xp.matrix_transpose(grad_weight), tuple(weight.shape))
    return (g @ xp.conj(weight), grad_weight, None if bias is None else xp.sum(g, axis=0))[: max(len(needs), 2)]


def linear_shared_factor(xp: Any, needs: Any, g: Any, input: Any, weight: Any, bias: Any) -> Any:
    grad_input = g @ xp.conj(weight) if needs[0] else None
    # The fault: the cotangent is prepared for the bias while the gradient of the input is computed.
    prepared = g if needs[0] else g * 0
    grad_bias = xp.sum(prepared, axis=0) if bias is not None else None
    return (grad_input, xp.matrix_transpose(g) @ xp.conj(input), grad_bias)[: max(len(needs), 2)]


def mul_reduced(axes: Any) -> Any:
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


def mirrored(wide: tuple[int, ...], narrow: tuple[int, ...]) -> tuple[int, ...]:
    """The right axes, counted from the wrong end where the sizes are the same."""
    right = _stretched(wide, narrow)
    other = tuple(sorted(len(wide) - 1 - n for n in right))
    return other if sorted(wide[n] for n in right) == sorted(wide[n] for n in other) else right


def qkv_last_forgotten(xp: Any, ag: Any) -> Any:
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


def one_entry(factor: float) -> Any:
    def gradient(xp: Any, ctx: Any, g: Any, x: Any, right: Any) -> Any:
        last = xp.reshape(xp.arange(x.numel()), tuple(x.shape)) == x.numel() - 1
        return xp.where(last, right * factor, right)

    return gradient


def tail(width: int) -> Any:
    def gradient(xp: Any, ctx: Any, g: Any, x: Any, right: Any) -> Any:
        places = xp.reshape(xp.arange(x.numel()), tuple(x.shape))
        return xp.where(places < width, right, xp.zeros_like(right))

    return gradient


def relu_with(at_zero: float) -> Any:
    def forward(xp: Any, ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return xp.where(x < 0, xp.zeros_like(x), x)

    def backward(xp: Any, ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return xp.where(x > 0, g, xp.where(x == 0, g * at_zero, xp.zeros_like(g)))

    return custom(forward=forward, backward=backward)


def clamp_with(inside: Any) -> Any:
    def forward(xp: Any, ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return torch.clamp(x, -1, 1)

    def backward(xp: Any, ctx: Any, g: Any) -> Any:
        return xp.where(inside(*ctx.saved_tensors), g, xp.zeros_like(g))

    return custom(forward=forward, backward=backward)


CLAMP = Function(
    name="Clamp",
    body=clamp_with(lambda x: abs(x) <= 1),
    arguments=(Array(name="x", dims="*s", smooth="nonzero"),),
    forward=lambda x: (np.where(np.less(x, -1), -1.0, np.where(np.less(1, x), 1.0, x)),),
    vjp=lambda cotangents, x: (np.where(np.abs(getattr(x, "value", x)) <= 1, cotangents[0], 0.0),),
    dtypes=REAL,
    document="none",
    exercises="kinks at -1 and 1",
)


def tanh_with(gradient: Any) -> Any:
    def forward(xp: Any, ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return xp.tanh(x)

    return custom(forward=forward, backward=lambda xp, ctx, g: gradient(xp, g, *ctx.saved_tensors))


TANH = Function(
    name="Tanh",
    body=tanh_with(lambda xp, g, x: g * (1 - xp.tanh(x) ** 2)),
    arguments=(Array(name="x", dims="*s"),),
    forward=lambda x: (np.tanh(x),),
    vjp=lambda cotangents, x: (cotangents[0] * (1 - np.tanh(x) * np.tanh(x)),),
    dtypes=("float64", "float32"),
    document="none",
    exercises="a gradient that vanishes at large magnitudes",
)


def overflowing(xp: Any, g: Any, x: Any) -> Any:
    powers = xp.exp(2 * x)
    return g * 4 * powers / (powers + 1) ** 2
