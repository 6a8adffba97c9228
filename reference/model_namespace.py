"""The model's differentiable array namespace ``xp``, in plain NumPy.

`OPERATIONS` holds every operation as data: its NumPy forward and its VJP, one rule per argument. A rule is called with
the cotangent ``g`` and the arguments of the forward, and returns the gradient of its argument. It is written in
operations of the namespace, so that it can be differentiated again. Complex gradients follow the conjugate Wirtinger
convention. A rule need not undo broadcasting, take the real part, or restore the argument's dtype: `fit` does that, in
`model_tensors`.
"""

# A rule has the parameters of its forward whether it needs them or not.
# ruff: noqa: ARG005

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from autograd_conformance.reference.model_tensors import EachArgument, Operation, Tensor, call, operations, plain

DTYPES = (
    "float64", "float32", "float16", "complex128", "complex64",
    "int64", "int32", "int16", "int8", "uint8", "bool",
)  # fmt: skip

xp: Any = SimpleNamespace()


def _sum(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """NumPy's sum, but in float32 for float16, as NumPy's mean and products are."""
    if x.dtype != np.float16:
        return np.sum(x, axis=axis, keepdims=keepdims)
    return np.sum(x, axis=axis, keepdims=keepdims, dtype=np.float32).astype(np.float16)


def _at(axis: int, ndim: int, key: Any) -> tuple[Any, ...]:
    """The index that applies ``key`` to one axis."""
    return (slice(None),) * (axis % ndim) + (key,)


def _along(shape: tuple[int, ...], indices: Any, axis: int) -> tuple[Any, ...]:
    """The index that picks ``indices`` along an axis, as ``take_along_axis`` does."""
    grid = list(np.ogrid[tuple(slice(n) for n in shape)])
    grid[axis] = indices
    return tuple(grid)


def _scatter(values: Any, shape: tuple[int, ...], key: Any) -> Any:
    out = np.zeros(shape, values.dtype)
    np.add.at(out, key, values)
    return out


def _argsort(x: Any, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    if not descending:
        return np.argsort(x, axis=axis, stable=stable)
    backwards = np.flip(np.argsort(np.flip(x, axis=axis), axis=axis, stable=stable), axis=axis)
    return x.shape[axis] - 1 - backwards


def _power(x: Any, n: Any) -> Any:
    if isinstance(n, np.ndarray):
        raise TypeError("the exponent must be a number")
    return x**n


def _spread(g: Any, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """A reduction's cotangent in the shape of the reduction's argument."""
    axes = range(x.ndim) if axis is None else {a % x.ndim for a in (axis if isinstance(axis, tuple) else (axis,))}
    kept = g if keepdims else xp.reshape(g, tuple(1 if d in axes else n for d, n in enumerate(x.shape)))
    return xp.broadcast_to(kept, x.shape)


def _mean(g: Any, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    count = np.prod(x.shape, dtype=int) / max(np.prod(g.shape, dtype=int), 1)
    return _spread(g, x, axis, keepdims) / float(count)


def _max(g: Any, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Elements that tie get equal shares."""
    ties = x == xp.max(x, axis=axis, keepdims=True)
    return _spread(g, x, axis, keepdims) * ties / xp.sum(ties, axis=axis, keepdims=True)


def _sign(g: Any, x: Any) -> Any:
    if x.dtype.kind != "c":
        return xp.zeros_like(g)
    s, nonzero = xp.sign(x), x != 0
    return xp.where(nonzero, g - s * xp.real(xp.conj(g) * s), 0) / xp.where(nonzero, xp.abs(x), 1)


def _columns(g: Any, x: Any, y: Any) -> Any:
    """The cotangent of ``x @ y`` with the dimensions that 1-D operands leave out."""
    g = g[..., None] if y.ndim == 1 else g
    return g[..., None, :] if x.ndim == 1 else g


def _left(g: Any, x: Any, y: Any) -> Any:
    adjoint = xp.conj(y)[None] if y.ndim == 1 else xp.matrix_transpose(xp.conj(y))
    return _columns(g, x, y) @ adjoint


def _right(g: Any, x: Any, y: Any) -> Any:
    adjoint = xp.conj(x)[:, None] if x.ndim == 1 else xp.matrix_transpose(xp.conj(x))
    product = adjoint @ _columns(g, x, y)
    return product[..., 0] if y.ndim == 1 else product


def _part(g: Any, position: int, *xs: Any, axis: int = 0) -> Any:
    start = sum(x.shape[axis] for x in xs[:position])
    return g[_at(axis, g.ndim, slice(start, start + xs[position].shape[axis]))]


def _like(create: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, dtype=None, device=None: create(x.shape, dtype or x.dtype)


OPERATIONS: dict[str, Operation] = {
    # arithmetic
    "add": Operation(np.add, (lambda g, x, y: g, lambda g, x, y: g)),
    "subtract": Operation(np.subtract, (lambda g, x, y: g, lambda g, x, y: -g)),
    "multiply": Operation(np.multiply, (lambda g, x, y: g * xp.conj(y), lambda g, x, y: xp.conj(x) * g)),
    "divide": Operation(np.divide, (lambda g, x, y: g / xp.conj(y), lambda g, x, y: -g * xp.conj(x / y / y))),
    "negative": Operation(np.negative, (lambda g, x: -g,)),
    "power": Operation(_power, (lambda g, x, n: g * xp.conj(n * x ** (n - 1)) if n else xp.zeros_like(g), None)),
    "matmul": Operation(np.matmul, (_left, _right)),
    "sparse_matmul": Operation(
        lambda indices, values, shape, b: _scatter(values, shape, tuple(indices)) @ b,
        (
            None,
            lambda g, indices, values, shape, b: (g @ xp.matrix_transpose(xp.conj(b)))[indices[0], indices[1]],
            None,
            lambda g, indices, values, shape, b: xp.sparse_matmul(
                xp.flip(indices, axis=0), xp.conj(values), tuple(shape)[::-1], g
            ),
        ),
    ),
    # functions of each element
    "abs": Operation(np.abs, (lambda g, x: g * xp.sign(x),)),
    "conj": Operation(np.conj, (lambda g, x: xp.conj(g),)),
    "cos": Operation(np.cos, (lambda g, x: -g * xp.conj(xp.sin(x)),)),
    "cosh": Operation(np.cosh, (lambda g, x: g * xp.conj(xp.sinh(x)),)),
    "exp": Operation(np.exp, (lambda g, x: g * xp.conj(xp.exp(x)),)),
    "imag": Operation(lambda x: np.imag(x).copy(), (lambda g, x: g * 1j,)),
    "real": Operation(lambda x: np.real(x).copy(), (lambda g, x: g,)),
    "sign": Operation(np.sign, (_sign,)),
    "sin": Operation(np.sin, (lambda g, x: g * xp.conj(xp.cos(x)),)),
    "sinh": Operation(np.sinh, (lambda g, x: g * xp.conj(xp.cosh(x)),)),
    "sqrt": Operation(np.sqrt, (lambda g, x: g / xp.conj(2 * xp.sqrt(x)),)),
    "tanh": Operation(np.tanh, (lambda g, x: g * xp.conj(1 - xp.tanh(x) ** 2),)),
    "where": Operation(np.where, (None, lambda g, c, x, y: xp.where(c, g, 0), lambda g, c, x, y: xp.where(c, 0, g))),
    "astype": Operation(lambda x, dtype: x.astype(dtype), (lambda g, x, dtype: g,)),
    "copy": Operation(np.copy, (lambda g, x: g,)),
    # reductions
    "sum": Operation(_sum, (_spread,)),
    "mean": Operation(np.mean, (_mean,)),
    "max": Operation(np.max, (_max,)),
    # shape
    "broadcast_to": Operation(np.broadcast_to, (lambda g, x, shape: g,), view=True),
    "expand_dims": Operation(np.expand_dims, (lambda g, x, axis=0: xp.reshape(g, x.shape),), view=True),
    "flip": Operation(lambda x, axis=None: np.flip(x, axis).copy(), (lambda g, x, axis=None: xp.flip(g, axis=axis),)),
    "matrix_transpose": Operation(np.matrix_transpose, (lambda g, x: xp.matrix_transpose(g),), view=True),
    "permute_dims": Operation(
        np.permute_dims,
        (lambda g, x, axes: xp.permute_dims(g, tuple(np.argsort(np.mod(axes, x.ndim)).tolist())),),
        view=True,
    ),
    "reshape": Operation(np.reshape, (lambda g, x, shape: xp.reshape(g, x.shape),), view=True),
    "concat": Operation(lambda *xs, axis=0: np.concat(xs, axis), EachArgument(_part)),
    "stack": Operation(
        lambda *xs, axis=0: np.stack(xs, axis),
        EachArgument(lambda g, position, *xs, axis=0: g[_at(axis, g.ndim, position)]),
    ),
    # indexing
    "getitem": Operation(lambda x, key: x[key], (lambda g, x, key: xp.scatter(g, x.shape, key),), view=True),
    "scatter": Operation(_scatter, (lambda g, x, shape, key: g[key],)),
    "take": Operation(
        lambda x, indices, axis=0: np.take(x, indices, axis),
        (lambda g, x, indices, axis=0: xp.scatter(g, x.shape, _at(axis, x.ndim, indices)),),
    ),
    "take_along_axis": Operation(
        lambda x, indices, axis=-1: x[_along(x.shape, indices, axis)],
        (lambda g, x, indices, axis=-1: xp.scatter(g, x.shape, _along(x.shape, xp.to_numpy(indices), axis)),),
    ),
    # the history of a base, of which a part was replaced through a view
    "patch": Operation(
        np.where, (lambda g, base, new, part, view: xp.where(part, 0, g), lambda g, base, new, part, view: view(g))
    ),
    # not differentiable
    "arange": Operation(lambda *args, device=None, **kwargs: np.arange(*args, **kwargs)),
    "argmax": Operation(np.argmax),
    "argsort": Operation(_argsort),
    "ones_like": Operation(_like(np.ones)),
    "zeros": Operation(lambda shape, dtype=float, device=None: np.zeros(shape, dtype)),
    "zeros_like": Operation(_like(np.zeros)),
    "equal": Operation(np.equal),
    "not_equal": Operation(np.not_equal),
    "less": Operation(np.less),
    "less_equal": Operation(np.less_equal),
    "greater": Operation(np.greater),
    "greater_equal": Operation(np.greater_equal),
}

operations.update(OPERATIONS)
xp.__dict__.update({name: partial(call, name) for name in OPERATIONS})
xp.__dict__.update({name: np.dtype(name) for name in DTYPES})
xp.concat = lambda arrays, axis=0: call("concat", *arrays, axis=axis)
xp.stack = lambda arrays, axis=0: call("stack", *arrays, axis=axis)
xp.to_numpy = plain
xp.from_numpy = lambda array, like: Tensor(np.asarray(array))
