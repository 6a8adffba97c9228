"""MLX: custom Functions as functions with `mx.custom_function` rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mlx.core as mx
import numpy as np

from autograd_conformance.implementations import adapting
from autograd_conformance.implementations.adapting import chosen, of_moving, placed
from autograd_conformance.implementations.adapting.lowering import Lowered, autograd_namespace
from autograd_conformance.implementations.deviations.mlx import DEVIATIONS
from autograd_conformance.implementations.protocol import DTYPES, BackwardPass, Mask, Tensors, as_tuple

# The array API's name for the place of an array. An MLX array is in unified memory and has no device.
mx.array.device = None


def _is_tensor(value: Any) -> bool:
    return isinstance(value, mx.array)


def _has_gradient(array: Any) -> bool:
    return bool(mx.issubdtype(array.dtype, mx.inexact))


def _apply(lowered: Lowered) -> Any:
    """A call of a custom function. A rule gets primals and outputs, and recomputes whatever else its ctx holds."""
    needed = [True] * len(lowered.tensors)

    def forward(*tensors: Any) -> Tensors:
        return lowered.forward(tensors, needed)[0]

    def backward(primals: Any, cotangents: Any, outputs: Any) -> Tensors:
        primals = as_tuple(primals)
        computed, ctx = lowered.forward(primals, needed)
        found = lowered.backward(ctx.rebound(computed, outputs), cotangents)
        # An integer has no gradient: a rule writes zeros where a body writes None.
        given = zip(found, primals, strict=False)
        return (
            *(mx.zeros_like(x) if g is None and not _has_gradient(x) else g for g, x in given),
            *found[len(primals) :],
        )

    def jvp(primals: Any, tangents: Any) -> Tensors:
        outputs, ctx = lowered.forward(as_tuple(primals), needed)
        found = lowered.jvp(ctx, as_tuple(tangents))
        return tuple(mx.zeros_like(y) if t is None else t for y, t in zip(outputs, found, strict=True))

    def vmap(inputs: Any, axes: Any) -> tuple[Tensors, Tensors]:
        return lowered.vmap(as_tuple(inputs), as_tuple(axes))

    function = mx.custom_function(forward)
    function.vjp(backward)
    for name, rule in (("jvp", jvp), ("vmap", vmap)):
        if hasattr(lowered.cls, name):
            getattr(function, name)(rule)
    return lowered.returned(function(*lowered.tensors))


class MlxImplementation(adapting.BatchingImplementation, adapting.NumPyImplementation):
    """Custom Functions as functions with `mx.custom_function` rules."""

    name = "mlx"
    capabilities = frozenset({
        "tuples", "double_backward", "jvp", "vmap", "batched_cotangents", "compile", "checkpoint", "numpy",
    })  # fmt: skip
    deviations = DEVIATIONS
    dtypes = tuple(dtype for dtype in DTYPES if dtype != "complex128")
    package = mx
    xp = adapting.namespace(
        mx,
        arange=lambda n, device: mx.arange(n),
        copy=mx.array,
        from_numpy=lambda a, like: mx.array(a, getattr(mx, a.dtype.name)),
        to_numpy=np.array,
        zeros=lambda shape, dtype, device: mx.zeros(shape, dtype),
    )
    ag = autograd_namespace(_apply, _is_tensor)
    is_tensor = staticmethod(_is_tensor)
    dialect = "mlx"
    supported = ">=0.32"
    zeros_for_none = True

    def array(self, values: Any, dtype: str, device: str) -> Any:
        made = mx.bool_ if dtype == "bool" else getattr(mx, dtype)
        # Not from an empty NumPy array: 0.32.4 reads flags of it that were never set, and its sum may not end.
        return mx.array(np.array(values), made) if np.size(values) else mx.zeros(np.shape(values), made)

    def as_numpy(self, tensor: Any) -> Any:
        # NumPy has no bfloat16.
        return np.array(tensor.astype(mx.float64) if mx.issubdtype(tensor.dtype, mx.floating) else tensor)

    def differentiate(self, f: Callable[..., Tensors], primals: Tensors, tracked: Mask) -> tuple[Tensors, BackwardPass]:
        def gradients(cotangents: Sequence[Any], wanted: Mask, differentiable: bool) -> Tensors:
            used = [g is not None for g in cotangents]
            of_wanted, points = of_moving(lambda *given: chosen(f(*given), used), primals, wanted)
            return placed(wanted, mx.vjp(of_wanted, list(points), chosen(cotangents, used))[1])

        return f(*primals), gradients

    def jvp(self, f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Tensors, Tensors]:
        # mx.jvp needs a tangent for each primal: one that does not move has the tangent zero.
        given = [mx.zeros_like(x) if t is None else t for x, t in zip(primals, tangents, strict=True)]
        outputs, moved = mx.jvp(lambda *tensors: as_tuple(f(*tensors)), list(primals), given)
        return tuple(outputs), tuple(moved)

    def vmap(self, f: Callable[..., Any], in_axes: Sequence[int | None]) -> Callable[..., Any]:
        return mx.vmap(f, tuple(in_axes))

    def compile(self, f: Callable[..., Any]) -> Callable[..., Any]:
        return mx.compile(f)

    def checkpoint(self, f: Callable[..., Any]) -> Callable[..., Any]:
        return mx.checkpoint(f)
