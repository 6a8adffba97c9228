"""Documented Functions built on matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np

from autograd_conformance.reference.definitions import REAL, Array, Function, Output


def linear_body(xp: Any, ag: Any) -> Any:
    class LinearFunction(ag.Function):
        @staticmethod
        def forward(ctx, input, weight, bias=None):
            ctx.save_for_backward(input, weight, bias)
            output = input @ xp.matrix_transpose(weight)
            if bias is not None:
                output = output + bias
            return output

        @staticmethod
        def backward(ctx, grad_output):
            input, weight, bias = ctx.saved_tensors
            grad_input = grad_weight = grad_bias = None
            if ctx.needs_input_grad[0]:
                grad_input = grad_output @ xp.conj(weight)
            if ctx.needs_input_grad[1]:
                grad_weight = xp.matrix_transpose(grad_output) @ xp.conj(input)
            if bias is not None and ctx.needs_input_grad[2]:
                grad_bias = xp.sum(grad_output, axis=0)
            return grad_input, grad_weight, grad_bias

    return LinearFunction


def linear_setup_context_body(xp: Any, ag: Any) -> Any:
    class LinearFunction(ag.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(input, weight, bias):
            output = input @ xp.matrix_transpose(weight)
            if bias is not None:
                output = output + bias
            return output

        @staticmethod
        def setup_context(ctx, inputs, output):  # noqa: ARG004 - the documented signature
            input, weight, bias = inputs
            ctx.save_for_backward(input, weight, bias)

        @staticmethod
        def backward(ctx, grad_output):
            input, weight, bias = ctx.saved_tensors
            grad_input = grad_weight = grad_bias = None
            if ctx.needs_input_grad[0]:
                grad_input = grad_output @ xp.conj(weight)
            if ctx.needs_input_grad[1]:
                grad_weight = xp.matrix_transpose(grad_output) @ xp.conj(input)
            if bias is not None and ctx.needs_input_grad[2]:
                grad_bias = xp.sum(grad_output, axis=0)
            return grad_input, grad_weight, grad_bias

    return LinearFunction


def _linear(x: Any, weight: Any, bias: Any = None) -> tuple[Any]:
    product = x @ weight.T
    return (product if bias is None else product + bias,)


def _linear_vjp(cotangents: Any, x: Any, weight: Any, bias: Any = None) -> tuple[Any, ...]:
    (g,) = cotangents
    return g @ np.conj(weight), g.T @ np.conj(x), None if bias is None else np.sum(g, axis=0)


LINEAR = Function(
    name="LinearFunction",
    body=linear_body,
    arguments=(
        Array(name="input", dims="n i"),
        Array(name="weight", dims="o i"),
        Array(name="bias", dims="o", optional=("none", "omitted")),
    ),
    forward=_linear,
    vjp=_linear_vjp,
    document="Extending PyTorch, combined forward and setup_context",
    exercises="an argument that may be omitted, None among the saved tensors, needs_input_grad",
)

LINEAR_SETUP_CONTEXT = Function(
    name="LinearFunctionSetupContext",
    body=linear_setup_context_body,
    arguments=(
        Array(name="input", dims="n i"),
        Array(name="weight", dims="o i"),
        Array(name="bias", dims="o", optional=("none",)),
    ),
    forward=_linear,
    vjp=_linear_vjp,
    batching=True,
    document="Extending PyTorch, example",
    exercises="setup_context with several tensors and None, needs_input_grad under a generated vmap rule",
)


def qkv_projection_body(xp: Any, ag: Any) -> Any:
    class QKVProjection(ag.Function):
        boxed_grads_call = True

        @staticmethod
        def forward(ctx, x, w_q, w_k, w_v):
            ctx.save_for_backward(x, w_q, w_k, w_v)
            return x @ w_q, x @ w_k, x @ w_v

        @staticmethod
        def backward(ctx, *grads):
            # One list where boxed_grads_call is known, else one argument an output.
            grads = grads[0] if len(grads) == 1 else list(grads)
            x, *weights = ctx.saved_tensors
            grad_x = None
            grad_weights = []
            for i, weight in enumerate(weights):
                grad = grads[i]
                grads[i] = None
                if ctx.needs_input_grad[0]:
                    term = grad @ xp.matrix_transpose(xp.conj(weight))
                    grad_x = term if grad_x is None else grad_x + term
                needed = ctx.needs_input_grad[i + 1]
                grad_weights.append(xp.matrix_transpose(xp.conj(x)) @ grad if needed else None)
                del grad
            return grad_x, *grad_weights

    return QKVProjection


def _qkv_vjp(cotangents: Any, x: Any, *weights: Any) -> tuple[Any, ...]:
    q, k, v = (g @ np.conj(w).T for g, w in zip(cotangents, weights, strict=True))
    return q + k + v, *(np.conj(x).T @ g for g in cotangents)


QKV_PROJECTION = Function(
    name="QKVProjection",
    body=qkv_projection_body,
    arguments=(
        Array(name="x", dims="n d"),
        Array(name="w_q", dims="d h"),
        Array(name="w_k", dims="d h"),
        Array(name="w_v", dims="d v"),
    ),
    outputs=(Output(name="q"), Output(name="k"), Output(name="v")),
    forward=lambda x, w_q, w_k, w_v: (x @ w_q, x @ w_k, x @ w_v),
    vjp=_qkv_vjp,
    document="Extending PyTorch, boxed_grads_call",
    exercises="backward takes its cotangents in one list and frees each as soon as it is used",
)


def lltm_body(xp: Any, ag: Any) -> Any:
    def sigmoid(z):
        # Through tanh, which does not overflow.
        return (xp.tanh(z / 2) + 1) / 2

    def elu(z):
        return xp.where(z > 0, z, xp.exp(xp.where(z > 0, xp.zeros_like(z), z)) - 1)

    def d_elu(z):
        return xp.exp(xp.where(z > 0, xp.zeros_like(z), z))

    class LLTM(ag.Function):
        @staticmethod
        def forward(ctx, input, weights, bias, old_h, old_cell):
            s = old_cell.shape[1]
            x = xp.concat([old_h, input], axis=1)
            gates = x @ xp.matrix_transpose(weights) + bias
            input_gate = sigmoid(gates[:, :s])
            output_gate = sigmoid(gates[:, s : 2 * s])
            candidate = elu(gates[:, 2 * s :])
            new_cell = old_cell + candidate * input_gate
            new_h = xp.tanh(new_cell) * output_gate
            ctx.save_for_backward(new_cell, input_gate, output_gate, candidate, x, gates, weights)
            return new_h, new_cell

        @staticmethod
        @ag.once_differentiable
        def backward(ctx, grad_h, grad_cell):
            new_cell, input_gate, output_gate, candidate, x, gates, weights = ctx.saved_tensors
            s = new_cell.shape[1]
            tanh_cell = xp.tanh(new_cell)
            d_cell = grad_cell + (1 - tanh_cell**2) * output_gate * grad_h
            d_gates = xp.concat(
                [
                    candidate * d_cell * input_gate * (1 - input_gate),
                    tanh_cell * grad_h * output_gate * (1 - output_gate),
                    input_gate * d_cell * d_elu(gates[:, 2 * s :]),
                ],
                axis=1,
            )
            d_weights = xp.matrix_transpose(d_gates) @ x
            d_bias = xp.sum(d_gates, axis=0)
            return d_gates @ weights[:, s:], d_weights, d_bias, d_gates @ weights[:, :s], d_cell

    return LLTM


def _lltm_gates(x: Any, weights: Any, bias: Any, h: Any, cell: Any) -> tuple[Any, ...]:
    s = cell.shape[1]
    joined = np.concatenate((h, x), axis=1)
    z = joined @ weights.T + bias
    input_gate = (np.tanh(z[:, :s] / 2) + 1) / 2
    output_gate = (np.tanh(z[:, s : 2 * s] / 2) + 1) / 2
    last = z[:, 2 * s :]
    # exp(z) - 1, not expm1: the text's formula cancels near 0.
    slope = np.exp(np.minimum(last, 0))
    candidate = np.where(last > 0, last, slope - 1)
    return joined, input_gate, output_gate, candidate, slope, cell + candidate * input_gate


def _lltm(x: Any, weights: Any, bias: Any, h: Any, cell: Any) -> tuple[Any, Any]:
    _, _, output_gate, _, _, new_cell = _lltm_gates(x, weights, bias, h, cell)
    return np.tanh(new_cell) * output_gate, new_cell


def _lltm_vjp(cotangents: Any, x: Any, weights: Any, bias: Any, h: Any, cell: Any) -> tuple[Any, ...]:
    grad_h, grad_cell = cotangents
    joined, input_gate, output_gate, candidate, slope, new_cell = _lltm_gates(x, weights, bias, h, cell)
    tanh_cell = np.tanh(new_cell)
    d_cell = grad_cell + grad_h * output_gate * (1 - tanh_cell * tanh_cell)
    d_z = np.concatenate(
        (
            d_cell * candidate * input_gate * (1 - input_gate),
            grad_h * tanh_cell * output_gate * (1 - output_gate),
            d_cell * input_gate * slope,
        ),
        axis=1,
    )
    d_joined = d_z @ weights
    s = cell.shape[1]
    return d_joined[:, s:], d_z.T @ joined, np.sum(d_z, axis=0), d_joined[:, :s], d_cell


LLTM = Function(
    name="LLTM",
    body=lltm_body,
    arguments=(
        Array(name="input", dims="n i"),
        Array(name="weights", dims="s+s+s s+i"),
        Array(name="bias", dims="s+s+s"),
        Array(name="old_h", dims="n s"),
        Array(name="old_cell", dims="n s"),
    ),
    outputs=(Output(name="new_h"), Output(name="new_cell")),
    forward=_lltm,
    vjp=_lltm_vjp,
    sizes={"n": (1, 2, 0, 3), "i": (1, 2, 3, 0), "s": (1, 2, 3, 0)},
    dtypes=REAL,
    double="once",
    document="Custom C++ and CUDA Extensions (tutorial)",
    exercises="many arguments, two outputs, and saved intermediates that rule out double backward",
)
