"""Documented Functions that convolve, alone and fused with batch norm."""

from __future__ import annotations

from typing import Any

import numpy as np

from autograd_conformance.reference.definitions import Array, Function, Static
from autograd_conformance.reference.functions.indexing import numpy_values


def unfold(xp: Any, x: Any, p: int, q: int) -> Any:
    """The p by q windows of each image as columns: (n, c * p * q, h * w)."""
    n, c, height, width = x.shape
    h, w = height - p + 1, width - q + 1
    taps = xp.stack([x[:, :, i : i + h, j : j + w] for i in range(p) for j in range(q)], axis=2)
    return xp.reshape(taps, (n, c * p * q, h * w))


def correlate(xp: Any, x: Any, weight: Any) -> Any:
    """Valid cross-correlation with stride one."""
    o, c, p, q = weight.shape
    columns = xp.matmul(xp.reshape(weight, (o, c * p * q)), unfold(xp, x, p, q))
    return xp.reshape(columns, (x.shape[0], o, x.shape[2] - p + 1, x.shape[3] - q + 1))


def _pad(xp: Any, x: Any, axis: int, width: int) -> Any:
    shape = list(x.shape)
    shape[axis] = width
    border = xp.zeros(tuple(shape), dtype=x.dtype, device=x.device)
    return xp.concat([border, x, border], axis=axis)


def correlate_backward(xp: Any, g: Any, x: Any, weight: Any) -> tuple[Any, Any]:
    """Gradients of `correlate`: full correlation with the flipped weight, and the windows of x weighted by g."""
    o, _, p, q = weight.shape
    flipped = xp.flip(xp.permute_dims(weight, (1, 0, 2, 3)), axis=(2, 3))
    grad_x = correlate(xp, _pad(xp, _pad(xp, g, 2, p - 1), 3, q - 1), xp.conj(flipped))
    rows = xp.reshape(g, (g.shape[0], o, g.shape[2] * g.shape[3]))
    products = xp.matmul(rows, xp.conj(xp.matrix_transpose(unfold(xp, x, p, q))))
    return grad_x, xp.reshape(xp.sum(products, axis=0), weight.shape)


def conv2d_body(xp: Any, ag: Any) -> Any:
    class Conv2D(ag.Function):
        @staticmethod
        def forward(ctx, x, weight):
            ctx.save_for_backward(x, weight)
            return correlate(xp, x, weight)

        @staticmethod
        @ag.once_differentiable
        def backward(ctx, g):
            x, weight = ctx.saved_tensors
            return correlate_backward(xp, g, x, weight)

    return Conv2D


def _windows(x: Any, p: int, q: int) -> Any:
    """(n, c, h, w, p, q)"""
    h, w = x.shape[2] - p + 1, x.shape[3] - q + 1
    rows = [np.stack([x[:, :, i : i + h, j : j + w] for j in range(q)], axis=-1) for i in range(p)]
    return np.stack(rows, axis=-2)


def conv2d(x: Any, weight: Any) -> Any:
    """The reference: every product, then one sum."""
    products = _windows(x, *weight.shape[2:])[:, None] * weight[None, :, :, None, None]
    return products.sum(axis=(2, 5, 6))


def conv2d_vjp(g: Any, x: Any, weight: Any) -> tuple[Any, Any]:
    """Gradients of `conv2d`: each tap's share put back where the tap was read, and the windows weighted by g."""
    p, q = weight.shape[2:]
    shares = []
    for i in range(p):
        for j in range(q):
            share = (g[:, :, None] * np.conj(weight[None, :, :, i, j, None, None])).sum(axis=1)
            shares.append(np.pad(share, ((0, 0), (0, 0), (i, p - 1 - i), (j, q - 1 - j))))
    products = g[:, :, None, :, :, None, None] * np.conj(_windows(x, p, q))[:, None]
    return np.stack(shares).sum(axis=0), products.sum(axis=(0, 3, 4))


CONV2D = Function(
    name="Conv2D",
    body=conv2d_body,
    arguments=(Array(name="x", dims="n c h+p-1 w+q-1"), Array(name="weight", dims="o c p q")),
    forward=lambda x, weight: (conv2d(x, weight),),
    vjp=lambda cotangents, x, weight: conv2d_vjp(cotangents[0], x, weight),
    sizes={
        "n": (1, 2, 0),
        "c": (1, 2, 3, 0),
        "o": (1, 2, 3, 0),
        "h": (1, 2, 5, 0),
        "w": (1, 3, 4),
        "p": (1, 2, 3),
        "q": (1, 2),
    },
    double="once",
    document="Fusing Convolution and Batch Norm tutorial, Conv2D",
    exercises="gradients that mix every dimension of two saved inputs",
)


def normalize(xp: Any, y: Any, eps: float) -> tuple[Any, Any, Any]:
    """(y - mean) / (deviation + eps) for each channel, with the mean and the unbiased deviation."""
    count = y.shape[0] * y.shape[2] * y.shape[3]
    mean = xp.sum(y, axis=(0, 2, 3), keepdims=True) / count
    centred = y - mean
    deviation = xp.sqrt(xp.sum(centred * centred, axis=(0, 2, 3), keepdims=True) / (count - 1))
    return centred / (deviation + eps), mean, deviation


def normalize_backward(xp: Any, g: Any, y: Any, mean: Any, deviation: Any, eps: float) -> Any:
    """Gradient of `normalize` by the chain rule through the numerator, the mean and the deviation."""
    count = y.shape[0] * y.shape[2] * y.shape[3]
    centred = y - mean
    denominator = deviation + eps
    grad_mean = xp.sum(g, axis=(0, 2, 3), keepdims=True) / count
    grad_denominator = -xp.sum(g / denominator * (centred / denominator), axis=(0, 2, 3), keepdims=True)
    return (g - grad_mean) / denominator + grad_denominator * (centred / deviation / (count - 1))


def fused_conv_bn_body(xp: Any, ag: Any) -> Any:
    class FusedConvBN(ag.Function):
        @staticmethod
        def forward(ctx, x, weight, eps=1e-3):
            ctx.save_for_backward(x, weight)
            y, ctx.mean, ctx.deviation = normalize(xp, correlate(xp, x, weight), eps)
            ctx.eps = eps
            return y

        @staticmethod
        @ag.once_differentiable
        def backward(ctx, g):
            x, weight = ctx.saved_tensors
            y = correlate(xp, x, weight)
            g = normalize_backward(xp, g, y, ctx.mean, ctx.deviation, ctx.eps)
            grad_x, grad_weight = correlate_backward(xp, g, x, weight)
            return grad_x, grad_weight, None

    return FusedConvBN


def _centred(y: Any) -> Any:
    count = y.shape[0] * y.shape[2] * y.shape[3]
    return y - y.sum(axis=(0, 2, 3), keepdims=True) / count


def _deviation(y: Any) -> Any:
    count = y.shape[0] * y.shape[2] * y.shape[3]
    return np.sqrt((_centred(y) * _centred(y)).sum(axis=(0, 2, 3), keepdims=True) / (count - 1))


def batch_norm(y: Any, eps: float | None) -> Any:
    """The reference of batch norm without affine parameters."""
    return _centred(y) / (_deviation(y) + (1e-3 if eps is None else eps))


def batch_norm_vjp(g: Any, y: Any, eps: float | None) -> Any:
    """Gradient of `batch_norm`: what reaches the centred values, centred in turn."""
    count = y.shape[0] * y.shape[2] * y.shape[3]
    deviation = _deviation(y)
    denominator = deviation + (1e-3 if eps is None else eps)
    slope = (g * _centred(y) / denominator / denominator).sum(axis=(0, 2, 3), keepdims=True) / deviation
    return _centred(g / denominator - slope * _centred(y) / (count - 1))


FUSED_CONV_BN = Function(
    name="FusedConvBN",
    body=fused_conv_bn_body,
    arguments=(
        Array(name="x", dims="n c h+p-1 w+q-1", values="distinct"),
        Array(name="weight", dims="o c p q", values="positive"),
        Static(name="eps", choices=lambda _: (1e-3, 0.125, 1.0), default=1e-3),
    ),
    forward=lambda x, weight, eps: (batch_norm(conv2d(x, weight), eps),),
    vjp=lambda cotangents, x, weight, eps: (
        *conv2d_vjp(batch_norm_vjp(cotangents[0], conv2d(x, weight), eps), x, weight),
        None,
    ),
    # With distinct x, positive weights and this many values a channel cannot be constant in practice.
    sizes={"n": (2, 3), "c": (1, 2), "o": (1, 2, 0), "h": (2, 3), "w": (2, 3), "p": (1, 2), "q": (1, 2)},
    # In bfloat16 the bound on the backward exceeds its gradients: nothing could be found wrong.
    dtypes=("float64", "float32", "float16"),
    double="once",
    document="Fusing Convolution and Batch Norm tutorial, FusedConvBN2DFunction",
    exercises="recomputes an intermediate in backward, keeps small tensors on ctx, has a defaulted argument",
)


def _correlate2d(x: Any, f: Any) -> Any:
    p, q = f.shape
    h, w = x.shape[0] - p + 1, x.shape[1] - q + 1
    total = np.zeros((h, w), x.dtype)
    for i in range(p):
        for j in range(q):
            total = total + f[i, j] * x[i : i + h, j : j + w]
    return total


def scipy_conv2d_forward(xp: Any, ctx: Any, x: Any, weight: Any, bias: Any) -> Any:
    ctx.save_for_backward(x, weight)
    return xp.from_numpy(_correlate2d(numpy_values(xp, x), numpy_values(xp, weight)) + numpy_values(xp, bias), x)


def scipy_conv2d_backward(xp: Any, ctx: Any, g: Any) -> tuple[Any, Any, Any]:
    x, weight = ctx.saved_tensors
    grad, f = numpy_values(xp, g), numpy_values(xp, weight)
    p, q = f.shape
    grad_x = _correlate2d(np.pad(grad, ((p - 1, p - 1), (q - 1, q - 1))), np.flip(f))
    grad_weight = _correlate2d(numpy_values(xp, x), grad)
    grad_bias = np.sum(grad, keepdims=True)
    return xp.from_numpy(grad_x, g), xp.from_numpy(grad_weight, g), xp.from_numpy(grad_bias, g)


def scipy_conv2d_body(xp: Any, ag: Any) -> Any:
    class ScipyConv2d(ag.Function):
        @staticmethod
        def forward(ctx, x, weight, bias):
            return scipy_conv2d_forward(xp, ctx, x, weight, bias)

        @staticmethod
        @ag.once_differentiable
        def backward(ctx, g):
            return scipy_conv2d_backward(xp, ctx, g)

    return ScipyConv2d


def _scipy_vjp(cotangents: Any, x: Any, weight: Any, bias: Any) -> tuple[Any, Any, Any]:  # noqa: ARG001
    g = cotangents[0]
    grad_x, grad_weight = conv2d_vjp(g[None, None], x[None, None], weight[None, None])
    return grad_x[0, 0], grad_weight[0, 0], g.sum(keepdims=True)


SCIPY_CONV2D = Function(
    name="ScipyConv2d",
    body=scipy_conv2d_body,
    arguments=(
        Array(name="x", dims="h+p-1 w+q-1"),
        Array(name="weight", dims="p q"),
        Array(name="bias", dims="1 1"),
    ),
    forward=lambda x, weight, bias: (conv2d(x[None, None], weight[None, None])[0, 0] + bias,),
    vjp=_scipy_vjp,
    sizes={"h": (1, 2, 5, 0), "w": (1, 3, 4, 0), "p": (1, 2, 3), "q": (1, 2, 3)},
    dtypes=("float64", "float32", "float16"),
    double="once",
    needs=frozenset({"numpy"}),
    document="Creating Extensions Using NumPy and SciPy tutorial, ScipyConv2dFunction",
    exercises="NumPy inside forward and backward, so that no gradient has a history",
)
