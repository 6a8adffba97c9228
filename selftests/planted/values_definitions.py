"""The bodies in which faults of the numbers that backward gives are planted."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from autograd_conformance.reference.definitions import REAL, Array, Function
from autograd_conformance.reference.functions.linear import LINEAR, QKV_PROJECTION
from autograd_conformance.selftests.planted.definitions import custom, derived, unary


def linear_with(gradients: Any) -> Any:
    """The documented linear Function with another backward."""
    return derived(LINEAR, backward=lambda xp, cls, ctx, g: gradients(xp, ctx.needs_input_grad, g, *ctx.saved_tensors))


def linear_guarded(input_flag: int, weight_flag: int, bias_flag: int) -> Any:
    """Linear's gradients, each guarded by the flag of the argument of that number."""

    def gradients(xp, needs, g, input, weight, bias):
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

    def backward(xp, ctx, g):
        x, y = ctx.saved_tensors
        pairs = ((g * xp.conj(y), x), (g * xp.conj(x), y))
        return tuple(_summed(xp, gradient, tuple(part.shape), axes) for gradient, part in pairs)

    def setup(xp, ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    return custom(forward=lambda xp, x, y: x * y, setup_context=setup, backward=backward, generate_vmap_rule=True)


def _summed(xp, gradient, shape, axes):
    found = axes(tuple(gradient.shape), shape)
    return xp.reshape(xp.sum(gradient, axis=found) if found else gradient, shape)


def _stretched(wide, narrow):
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
    """The last entry of the gradient is multiplied."""

    def gradient(g, x, right):
        last = torch.arange(x.numel()).reshape(x.shape) == x.numel() - 1
        return torch.where(last, right * factor, right)

    return gradient


def tail(width: int) -> Any:
    """The elements past this number get no gradient."""
    return lambda g, x, right: torch.where(torch.arange(x.numel()).reshape(x.shape) < width, right, 0)


def relu_with(at_zero: float) -> Any:
    """ReLU with this derivative at 0."""
    return unary(
        lambda x: torch.where(x < 0, 0, x),
        lambda g, x: torch.where(x > 0, g, torch.where(x == 0, g * at_zero, torch.zeros_like(g))),
    )


def clamp_with(inside: Any) -> Any:
    """x between -1 and 1, with a gradient where it is ``inside(x)``."""
    return unary(lambda x: torch.clamp(x, -1, 1), lambda g, x: torch.where(inside(x), g, torch.zeros_like(g)))


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


TANH = Function(
    name="Tanh",
    body=unary(torch.tanh, lambda g, x: g * (1 - torch.tanh(x) ** 2)),
    arguments=(Array(name="x", dims="*s"),),
    forward=lambda x: (np.tanh(x),),
    vjp=lambda cotangents, x: (cotangents[0] * (1 - np.tanh(x) * np.tanh(x)),),
    dtypes=("float64", "float32"),
    document="none",
    exercises="a gradient that vanishes at large magnitudes",
)


def overflowing(g: Any, x: Any) -> Any:
    """The gradient of tanh by exponentials."""
    powers = torch.exp(2 * x)
    return g * 4 * powers / (powers + 1) ** 2
