"""Printed Functions that reorder, gather, convolve or work in place, and are wrong as printed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from autograd_conformance.reference.definitions import REAL, Array, Function, Static
from autograd_conformance.reference.functions.convolution import (
    FUSED_CONV_BN,
    SCIPY_CONV2D,
    batch_norm,
    batch_norm_vjp,
    correlate,
    correlate_backward,
    normalize,
    normalize_backward,
    scipy_conv2d_backward,
    scipy_conv2d_forward,
)
from autograd_conformance.reference.functions.exhibit import Exhibit
from autograd_conformance.reference.functions.exhibits_formulas import TWO_MATMULS
from autograd_conformance.reference.functions.indexing import (
    NUMPY_SORT,
    NUMPY_TAKE,
    SORT,
    SPECIAL_SPMM,
    numpy_sort_body,
    numpy_take_body,
    numpy_values,
    to_front,
)
from autograd_conformance.reference.functions.inplace import INPLACE


def sort_first_axis_body(xp: Any, ag: Any) -> Any:
    class SortFirstAxis(ag.Function):
        @staticmethod
        def forward(ctx, x, axis):
            indices = xp.argsort(x, axis=axis)
            ctx.mark_non_differentiable(indices)
            ctx.save_for_backward(x, indices)
            return xp.take_along_axis(x, indices, axis=axis), indices

        @staticmethod
        @ag.once_differentiable
        def backward(ctx, g, _):
            x, indices = ctx.saved_tensors
            grad = xp.zeros_like(x)
            grad.index_add_(0, indices, g)
            return grad, None

    return SortFirstAxis


SORT_FIRST_AXIS = Exhibit(
    function=replace(SORT, name="SortFirstAxis", body=sort_first_axis_body),
    caught_by=("VJP-REF",),
    fault="backward scatters along the first axis with a 1-D index, so it fails for every input of rank two or more",
)


def special_spmm_square_body(xp: Any, ag: Any) -> Any:
    class SpecialSpmmSquare(ag.Function):
        @staticmethod
        def forward(ctx, indices, values, shape, b):
            ctx.save_for_backward(indices, values, b)
            ctx.shape = shape
            return xp.sparse_matmul(indices, values, shape, b)

        @staticmethod
        def backward(ctx, g):
            indices, values, b = ctx.saved_tensors
            m, n = ctx.shape
            grad_values = grad_b = None
            if ctx.needs_input_grad[1]:
                dense = xp.reshape(xp.matmul(g, xp.conj(xp.matrix_transpose(b))), (m * n,))
                grad_values = xp.take(dense, indices[0] * m + indices[1], axis=0)
            if ctx.needs_input_grad[3]:
                grad_b = xp.sparse_matmul(xp.flip(indices, axis=0), xp.conj(values), (n, m), g)
            return None, grad_values, None, grad_b

    return SpecialSpmmSquare


SPECIAL_SPMM_SQUARE = Exhibit(
    # On a device an index out of bounds ends the process.
    function=replace(SPECIAL_SPMM, name="SpecialSpmmSquare", body=special_spmm_square_body, devices=("cpu",)),
    caught_by=("VJP-REF",),
    fault="the flat index of an entry is row * shape[0] + column, which is right only for square matrices",
)


def special_spmm_coalesced_body(xp: Any, ag: Any) -> Any:
    import torch

    class SpecialSpmmCoalesced(ag.Function):
        @staticmethod
        def forward(ctx, indices, values, shape, b):
            a = torch.sparse_coo_tensor(indices, values, shape, check_invariants=True).coalesce()
            ctx.save_for_backward(a, b)
            return a @ b

        @staticmethod
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            rows, columns = a.indices()
            grad_values = grad_b = None
            if ctx.needs_input_grad[1]:
                grad_values = xp.sum(xp.take(g, rows, axis=0) * xp.conj(xp.take(b, columns, axis=0)), axis=-1)
            if ctx.needs_input_grad[3]:
                grad_b = a.transpose(0, 1).conj_physical() @ g
            return None, grad_values, None, grad_b

    return SpecialSpmmCoalesced


SPECIAL_SPMM_COALESCED = Exhibit(
    function=replace(SPECIAL_SPMM, name="SpecialSpmmCoalesced", body=special_spmm_coalesced_body),
    caught_by=("VJP-REF",),
    fault="coalescing sorts and merges the entries, so the gradient of values comes in another order, and too short "
    "where a position is repeated",
)


def numpy_take_batch_axis_body(xp: Any, ag: Any) -> Any:
    class NumpyTakeBatchAxis(numpy_take_body(xp, ag)):
        @staticmethod
        def backward(ctx, g):
            ind, ind_inv = ctx.saved_tensors
            return NumpyTakeBatchAxis.apply(g, ind_inv, ind, ctx.dim), None, None, None

        @staticmethod
        def vmap(info, in_dims, x, ind, ind_inv, dim):
            x_bdim, ind_bdim, ind_inv_bdim, _ = in_dims
            logical_dim = x.ndim if x_bdim is None else x_bdim - 1
            dim = dim if dim >= 0 else dim + logical_dim

            def batched(part, axis):
                if axis is None:
                    return xp.broadcast_to(part, (info.batch_size, *part.shape))
                return to_front(xp, part, axis)

            parts = batched(x, x_bdim), batched(ind, ind_bdim), batched(ind_inv, ind_inv_bdim)
            return NumpyTakeBatchAxis.apply(*parts, dim + 1), 0

    return NumpyTakeBatchAxis


NUMPY_TAKE_BATCH_AXIS = Exhibit(
    function=replace(NUMPY_TAKE, name="NumpyTakeBatchAxis", body=numpy_take_batch_axis_body),
    caught_by=("BATCH-VMAP",),
    fault="the vmap rule wraps a negative dim by the position of the batch axis instead of by the number of dimensions",
)


def numpy_sort_unsorted_body(xp: Any, ag: Any) -> Any:
    class NumpySortUnsorted(numpy_sort_body(xp, ag)):
        @staticmethod
        def forward(x, dim):
            values = numpy_values(xp, x)
            ind = np.argsort(values, axis=dim)
            ind_inv = np.argsort(ind, axis=dim)
            return xp.from_numpy(values, x), xp.from_numpy(ind, x), xp.from_numpy(ind_inv, x)

        @staticmethod
        def vmap(info, in_dims, x, dim):  # noqa: ARG004
            x = to_front(xp, x, in_dims[0])
            return NumpySortUnsorted.apply(x, (dim if dim >= 0 else dim + x.ndim - 1) + 1), (0, 0, 0)

    return NumpySortUnsorted


NUMPY_SORT_UNSORTED = Exhibit(
    function=replace(NUMPY_SORT, name="NumpySortUnsorted", body=numpy_sort_unsorted_body),
    caught_by=("FWD-VALUE",),
    fault="returns its input as it is where the sorted values belong",
)


def batch_norm_body(xp: Any, ag: Any) -> Any:
    class BatchNorm(ag.Function):
        @staticmethod
        def forward(ctx, x, eps=1e-3):
            ctx.save_for_backward(x)
            y, ctx.mean, ctx.deviation = normalize(xp, x, eps)
            ctx.eps = eps
            return y

        @staticmethod
        @ag.once_differentiable
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return normalize_backward(xp, g, x, ctx.mean, ctx.deviation, ctx.eps)

    return BatchNorm


BATCH_NORM_EPS = Exhibit(
    function=Function(
        name="BatchNormEps",
        body=batch_norm_body,
        arguments=(
            Array(name="x", dims="n c h w", values="distinct"),
            Static(name="eps", choices=lambda _: (1e-3, 0.125), default=1e-3),
        ),
        forward=lambda x, eps: (batch_norm(x, eps),),
        vjp=lambda cotangents, x, eps: (batch_norm_vjp(cotangents[0], x, eps), None),
        sizes={"n": (2, 3), "c": (1, 2, 3), "h": (1, 2, 3), "w": (1, 2, 3)},
        dtypes=REAL,
        double="once",
        document="Fusing Convolution and Batch Norm tutorial, BatchNorm",
        exercises="a defaulted argument that is passed",
    ),
    caught_by=("VJP-REF",),
    fault="returns one gradient for two arguments, which is accepted only while eps is left out",
)


def fused_conv_bn_undeclared_body(xp: Any, ag: Any) -> Any:
    class FusedConvBNUndeclared(ag.Function):
        @staticmethod
        def forward(ctx, x, weight, eps=1e-3):
            ctx.save_for_backward(x, weight)
            y, ctx.mean, ctx.deviation = normalize(xp, correlate(xp, x, weight), eps)
            ctx.eps = eps
            return y

        @staticmethod
        def backward(ctx, g):
            x, weight = ctx.saved_tensors
            y = correlate(xp, x, weight)
            g = normalize_backward(xp, g, y, ctx.mean, ctx.deviation, ctx.eps)
            return *correlate_backward(xp, g, x, weight), None, None, None, None, None

    return FusedConvBNUndeclared


FUSED_CONV_BN_UNDECLARED = Exhibit(
    function=replace(
        FUSED_CONV_BN, name="FusedConvBNUndeclared", body=fused_conv_bn_undeclared_body, double="supported"
    ),
    caught_by=("DBL-CORRECT",),
    fault="backward uses the mean and the deviation kept on ctx as constants, so second derivatives are silently wrong",
)


def scipy_conv2d_undeclared_body(xp: Any, ag: Any) -> Any:
    class ScipyConv2dUndeclared(ag.Function):
        @staticmethod
        def forward(ctx, x, weight, bias):
            return scipy_conv2d_forward(xp, ctx, x, weight, bias)

        @staticmethod
        def backward(ctx, g):
            return scipy_conv2d_backward(xp, ctx, g)

    return ScipyConv2dUndeclared


SCIPY_CONV2D_UNDECLARED = Exhibit(
    function=replace(SCIPY_CONV2D, name="ScipyConv2dUndeclared", body=scipy_conv2d_undeclared_body, double="supported"),
    caught_by=("DBL-CORRECT",),
    fault="backward leaves the graph through NumPy and is not declared once-differentiable: second derivatives vanish",
)


def two_matmuls_cleared_body(xp: Any, ag: Any) -> Any:
    class TwoMatmuls(ag.Function):
        clear_saved_tensors_on_access = True

        @staticmethod
        def forward(ctx, x, w1, w2):
            hidden = xp.matmul(x, w1)
            ctx.save_for_backward(x, hidden, w1, w2)
            return xp.matmul(hidden, w2)

        @staticmethod
        def backward(ctx, g):
            x, hidden, w1, w2 = ctx.saved_tensors
            grad_hidden = xp.matmul(g, xp.matrix_transpose(w2))
            return (
                xp.matmul(grad_hidden, xp.matrix_transpose(w1)),
                xp.matmul(xp.matrix_transpose(x), grad_hidden),
                xp.matmul(xp.matrix_transpose(hidden), g),
            )

    return TwoMatmuls


TWO_MATMULS_CLEARED = Exhibit(
    function=replace(
        TWO_MATMULS.function,
        name="TwoMatmulsCleared",
        body=two_matmuls_cleared_body,
        sizes={"n": (1, 2, 3, 0), "a": (1, 2, 3), "b": (1, 2, 4), "c": (1, 2, 0)},
        dtypes=REAL,
        exercises="gives its saved tensors up at the first backward",
    ),
    caught_by=("VJP-REPEAT", "DBL-CORRECT"),
    fault="allows a single backward, and saves an intermediate without history, but declares neither",
)


def inplace_unmarked_body(xp: Any, ag: Any) -> Any:
    class InplaceUnmarked(ag.Function):
        @staticmethod
        def forward(ctx, x):  # noqa: ARG004
            values = xp.to_numpy(x)
            values += 1
            return x

        @staticmethod
        @ag.once_differentiable
        def backward(ctx, g):  # noqa: ARG004
            return g

    return InplaceUnmarked


INPLACE_UNMARKED = Exhibit(
    function=replace(INPLACE, name="InplaceUnmarked", body=inplace_unmarked_body),
    caught_by=("FWD-PURE",),
    fault="changes its input without mark_dirty, so neither the version counter nor the input's history knows of it",
)


def bad_fft_body(xp: Any, ag: Any) -> Any:
    class BadFFT(ag.Function):
        @staticmethod
        def forward(ctx, x):  # noqa: ARG004
            values = numpy_values(xp, x)
            return xp.from_numpy(np.abs(np.fft.rfft2(values)).astype(values.dtype), x)

        @staticmethod
        def backward(ctx, g):  # noqa: ARG004
            values = numpy_values(xp, g)
            return xp.from_numpy(np.fft.irfft2(values).astype(values.dtype), g)

    return BadFFT


def _fourier(rows: int, columns: int) -> Any:
    return np.exp(-2j * np.pi * np.outer(np.arange(rows), np.arange(columns)) / rows)


def _spectrum(x: Any) -> Any:
    h, w = x.shape
    return _fourier(h, h) @ x @ _fourier(w, w // 2 + 1)


def _bad_fft_vjp(cotangents: Any, x: Any) -> tuple[Any]:
    h, w = x.shape
    z = _spectrum(x)
    size = np.abs(z)
    phase = z / np.where(size > 0, size, np.ones_like(size))
    return ((_fourier(h, h) @ (cotangents[0] * phase.conj()) @ _fourier(w, w // 2 + 1).T).real,)


BAD_FFT = Exhibit(
    function=Function(
        name="BadFFT",
        body=bad_fft_body,
        arguments=(Array(name="x", dims="h w"),),
        forward=lambda x: (np.abs(_spectrum(x)),),
        vjp=_bad_fft_vjp,
        sizes={"h": (1, 2, 3), "w": (2, 3, 4, 6)},
        dtypes=("float64", "float32"),
        needs=frozenset({"numpy"}),
        document="Creating Extensions Using NumPy and SciPy tutorial, BadFFTFunction",
        exercises="a backward that is the inverse of the forward, not its derivative",
    ),
    caught_by=("VJP-REF", "VJP-FD", "DBL-CORRECT"),
    fault="applies the inverse transform in backward, and gives a gradient of another width for an odd one",
)
