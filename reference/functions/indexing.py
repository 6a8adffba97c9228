"""Documented Functions that select, reorder or gather elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from autograd_conformance.reference.definitions import REAL, Array, Function, Output, Shape, Shapes, Static


def axes(shapes: Shapes) -> Sequence[int]:
    """Every way to name an axis of the first tensor."""
    rank = len(shapes[0])
    return (*range(rank), *range(-rank, 0))


def to_front(xp: Any, x: Any, axis: int) -> Any:
    """The array with ``axis`` moved to the front."""
    return xp.permute_dims(x, (axis, *(other for other in range(x.ndim) if other != axis)))


def numpy_values(xp: Any, x: Any) -> Any:
    """A NumPy copy. Copied by the implementation, because NumPy cannot see a lazily conjugated or negated tensor."""
    return xp.to_numpy(xp.copy(x))


def sort_body(xp: Any, ag: Any) -> Any:
    class Sort(ag.Function):
        @staticmethod
        def forward(ctx, x, axis):
            indices = xp.argsort(x, axis=axis)
            ctx.mark_non_differentiable(indices)
            ctx.save_for_backward(indices)
            ctx.axis = axis
            return xp.take_along_axis(x, indices, axis=axis), indices

        @staticmethod
        @ag.once_differentiable
        def backward(ctx, g, _):
            (indices,) = ctx.saved_tensors
            inverse = xp.argsort(indices, axis=ctx.axis)
            return xp.take_along_axis(g, inverse, axis=ctx.axis), None

    return Sort


def ranks(x: Any, axis: int) -> Any:
    """The place of each element in the sorted order; no two are equal."""
    return np.argsort(np.argsort(x, axis=axis), axis=axis)


SORT = Function(
    name="Sort",
    body=sort_body,
    arguments=(Array(name="x", dims="*s", values="distinct"), Static(name="axis", choices=axes)),
    outputs=(Output(name="values"), Output(name="indices", differentiable=False)),
    forward=lambda x, axis: (np.sort(x, axis=axis), np.argsort(x, axis=axis)),
    vjp=lambda cotangents, x, axis: (np.take_along_axis(cotangents[0], ranks(x, axis), axis=axis), None),
    sizes={"*s": (1, 5)},
    dtypes=REAL,
    double="once",
    document="FunctionCtx.mark_non_differentiable docstring, Func",
    exercises="marks an integer output non-differentiable in the combined form",
)


def numpy_take_body(xp: Any, ag: Any) -> Any:
    class NumpyTake(ag.Function):
        @staticmethod
        def forward(x, ind, ind_inv, dim):  # noqa: ARG004 - ind_inv is for backward
            return xp.from_numpy(np.take_along_axis(numpy_values(xp, x), numpy_values(xp, ind), axis=dim), x)

        @staticmethod
        def setup_context(ctx, inputs, output):  # noqa: ARG004
            _, ind, ind_inv, dim = inputs
            ctx.save_for_backward(ind, ind_inv)
            ctx.save_for_forward(ind, ind_inv)
            ctx.dim = dim

        @staticmethod
        def backward(ctx, g):
            ind, ind_inv = ctx.saved_tensors
            return NumpyTake.apply(g, ind_inv, ind, ctx.dim), None, None, None

        @staticmethod
        def jvp(ctx, x_tangent, *_):
            ind, ind_inv = ctx.saved_tensors
            return NumpyTake.apply(x_tangent, ind, ind_inv, ctx.dim)

        @staticmethod
        def vmap(info, in_dims, x, ind, ind_inv, dim):
            def batched(part, axis):
                if axis is None:
                    return xp.broadcast_to(part, (info.batch_size, *part.shape))
                return to_front(xp, part, axis)

            parts = [batched(part, axis) for part, axis in zip((x, ind, ind_inv), in_dims, strict=False)]
            rank = parts[0].ndim - 1
            return NumpyTake.apply(*parts, (dim if dim >= 0 else dim + rank) + 1), 0

    return NumpyTake


def _permutation(rng: Any, shape: Shape, earlier: Mapping[str, Any]) -> Any:
    return np.argsort(rng.random(shape), axis=earlier["dim"])


def _inverse(_: Any, __: Shape, earlier: Mapping[str, Any]) -> Any:
    return np.argsort(earlier["ind"], axis=earlier["dim"])


def _hits(ind: Any, dim: int) -> Any:
    """For each position of x, where ``ind`` asks for it. ``ind`` holds every position once."""
    return np.argsort(ind, axis=dim)


NUMPY_TAKE = Function(
    name="NumpyTake",
    body=numpy_take_body,
    arguments=(
        Array(name="x", dims="*s"),
        Array(name="ind", dims="*s", dtype="int64", make=_permutation),
        Array(name="ind_inv", dims="*s", dtype="int64", make=_inverse),
        Static(name="dim", choices=axes),
    ),
    forward=lambda x, ind, ind_inv, dim: (np.take_along_axis(x, ind, axis=dim),),  # noqa: ARG005
    vjp=lambda cotangents, x, ind, ind_inv, dim: (  # noqa: ARG005
        np.take_along_axis(cotangents[0], _hits(ind, dim), axis=dim),
        None,
        None,
        None,
    ),
    jvp=lambda tangents, x, ind, ind_inv, dim: (np.take_along_axis(tangents[0], ind, axis=dim),),  # noqa: ARG005
    sizes={"*s": (1, 5)},
    dtypes=("float64", "float32", "float16", "complex128", "complex64"),
    batching=True,
    needs=frozenset({"numpy"}),
    document="Extending torch.func with autograd.Function, NumpyTake",
    exercises="calls itself in backward, takes integer tensors, has a vmap rule with unbatched arguments",
)


def numpy_sort_body(xp: Any, ag: Any) -> Any:
    NumpyTake = numpy_take_body(xp, ag)  # noqa: N806 - a class

    class NumpySort(ag.Function):
        @staticmethod
        def forward(x, dim):
            values = numpy_values(xp, x)
            ind = np.argsort(values, axis=dim)
            ind_inv = np.argsort(ind, axis=dim)
            result = np.take_along_axis(values, ind, axis=dim)
            return xp.from_numpy(result, x), xp.from_numpy(ind, x), xp.from_numpy(ind_inv, x)

        @staticmethod
        def setup_context(ctx, inputs, output):
            _, ctx.dim = inputs
            _, ind, ind_inv = output
            ctx.mark_non_differentiable(ind, ind_inv)
            ctx.save_for_backward(ind, ind_inv)
            ctx.save_for_forward(ind, ind_inv)

        @staticmethod
        def backward(ctx, g, *_):
            ind, ind_inv = ctx.saved_tensors
            return NumpyTake.apply(g, ind_inv, ind, ctx.dim), None

        @staticmethod
        def jvp(ctx, x_tangent, _):
            ind, ind_inv = ctx.saved_tensors
            return NumpyTake.apply(x_tangent, ind, ind_inv, ctx.dim), None, None

        @staticmethod
        def vmap(info, in_dims, x, dim):  # noqa: ARG004
            x = to_front(xp, x, in_dims[0])
            return NumpySort.apply(x, (dim if dim >= 0 else dim + x.ndim - 1) + 1), (0, 0, 0)

    return NumpySort


NUMPY_SORT = Function(
    name="NumpySort",
    body=numpy_sort_body,
    arguments=(Array(name="x", dims="*s", values="distinct"), Static(name="dim", choices=axes)),
    outputs=(
        Output(name="result"),
        Output(name="ind", differentiable=False),
        Output(name="ind_inv", differentiable=False),
    ),
    forward=lambda x, dim: (np.sort(x, axis=dim), np.argsort(x, axis=dim), ranks(x, dim)),
    vjp=lambda cotangents, x, dim: (np.take_along_axis(cotangents[0], ranks(x, dim), axis=dim), None),
    jvp=lambda tangents, x, dim: (np.take_along_axis(tangents[0], np.argsort(x, axis=dim), axis=dim), None, None),
    sizes={"*s": (1, 5)},
    dtypes=("float64", "float32", "float16"),
    batching=True,
    needs=frozenset({"numpy"}),
    document="Extending torch.func with autograd.Function, NumpySort",
    exercises="NumPy inside forward, auxiliary outputs saved in setup_context, another Function called in backward",
)


def global_max_pool_body(xp: Any, ag: Any) -> Any:
    class GlobalMaxPool(ag.Function):
        @staticmethod
        def forward(ctx, x):
            n, c, h, w = x.shape
            flat = xp.reshape(x, (n, c, h * w))
            indices = xp.argmax(flat, axis=-1)
            ctx.mark_non_differentiable(indices)
            ctx.save_for_backward(indices)
            ctx.shape = x.shape
            return xp.take_along_axis(flat, indices[..., None], axis=-1)[..., 0], indices

        @staticmethod
        def backward(ctx, g, _):
            (indices,) = ctx.saved_tensors
            _, _, h, w = ctx.shape
            chosen = indices[..., None] == xp.arange(h * w, device=g.device)
            zero = xp.zeros((), dtype=g.dtype, device=g.device)
            return xp.reshape(xp.where(chosen, g[..., None], zero), ctx.shape)

    return GlobalMaxPool


def _pool(x: Any) -> tuple[Any, Any]:
    flat = x.reshape(*x.shape[:2], x.shape[2] * x.shape[3])
    return np.max(flat, axis=-1), np.argmax(flat, axis=-1)


def _pool_vjp(cotangents: Any, x: Any) -> tuple[Any]:
    largest = np.max(np.max(x, axis=-1, keepdims=True), axis=-2, keepdims=True)
    return (np.where(x == largest, cotangents[0][..., None, None], np.zeros(())),)


GLOBAL_MAX_POOL = Function(
    name="GlobalMaxPool",
    body=global_max_pool_body,
    arguments=(Array(name="x", dims="n c h w", values="distinct"),),
    outputs=(Output(name="maxima"), Output(name="indices", differentiable=False)),
    forward=_pool,
    vjp=_pool_vjp,
    sizes={"n": (1, 2, 3, 0), "c": (1, 2, 3, 0), "h": (1, 2, 3, 5), "w": (1, 2, 3, 4)},
    dtypes=REAL,
    document="no documentation; pooling layers of packages, after the FunctionCtx.mark_non_differentiable docstring",
    exercises="a doubly differentiable output next to a non-differentiable one, over a reduction",
)


def special_spmm_body(xp: Any, ag: Any) -> Any:
    class SpecialSpmm(ag.Function):
        @staticmethod
        def forward(ctx, indices, values, shape, b):
            ctx.save_for_backward(indices, values, b)
            ctx.shape = shape
            return xp.sparse_matmul(indices, values, shape, b)

        @staticmethod
        def backward(ctx, g):
            indices, values, b = ctx.saved_tensors
            grad_values = grad_b = None
            if ctx.needs_input_grad[1]:
                right = xp.take(b, indices[1], axis=0)
                grad_values = xp.sum(xp.take(g, indices[0], axis=0) * xp.conj(right), axis=-1)
            if ctx.needs_input_grad[3]:
                m, n = ctx.shape
                grad_b = SpecialSpmm.apply(xp.flip(indices, axis=0), xp.conj(values), (n, m), g)
            return None, grad_values, None, grad_b

    return SpecialSpmm


def _spmm_shapes(shapes: Shapes) -> Sequence[Shape]:
    (_, entries), _, (n, _) = shapes
    return [(m, n) for m in (1, 2, 3, 5, 0) if m > 0 or entries == 0]


def _positions(rng: Any, shape: Shape, earlier: Mapping[str, Any]) -> Any:
    m, n = earlier["shape"]
    return np.stack([rng.integers(0, max(m, 1), shape[1]), rng.integers(0, n, shape[1])])


def _one_hot(positions: Any, length: int) -> Any:
    """A matrix that adds up the rows which have the same position."""
    return (np.arange(length)[:, None] == positions).astype(np.float64)


def _spmm(indices: Any, values: Any, shape: Shape, b: Any) -> tuple[Any]:
    return (_one_hot(indices[0], shape[0]) @ (values[:, None] * b[indices[1]]),)


def _spmm_vjp(cotangents: Any, indices: Any, values: Any, shape: Shape, b: Any) -> tuple[Any, ...]:
    g = cotangents[0][indices[0]]
    grad_values = (g * np.conj(b[indices[1]])).sum(axis=-1)
    return None, grad_values, None, _one_hot(indices[1], shape[1]) @ (np.conj(values)[:, None] * g)


SPECIAL_SPMM = Function(
    name="SpecialSpmm",
    body=special_spmm_body,
    arguments=(
        Array(name="indices", dims="2 e", dtype="int64", make=_positions),
        Array(name="values", dims="e"),
        Static(name="shape", choices=_spmm_shapes),
        Array(name="b", dims="n k"),
    ),
    forward=_spmm,
    vjp=_spmm_vjp,
    # An entry needs a column to stand in.
    sizes={"n": (1, 2, 3, 4), "k": (1, 2, 3, 0)},
    needs=frozenset({"sparse"}),
    document="pyGAT, layers.py, SpecialSpmmFunction (copied into many graph packages)",
    exercises="sparse operand with repeated positions, differentiable arguments between others",
)
