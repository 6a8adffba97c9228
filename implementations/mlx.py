"""MLX: custom Functions as functions with `mx.custom_function` rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

import mlx.core as mx
import numpy as np

from autograd_conformance.implementations import protocol
from autograd_conformance.implementations.lowering import Lowered, as_tuple, autograd_namespace
from autograd_conformance.implementations.mlx_deviations import DEVIATIONS
from autograd_conformance.implementations.protocol import Description, Environment, Pullback, Tensors

# The array API's name for where an array is; an MLX array is in unified memory and has none.
mx.array.device = None


def _is_tensor(value: Any) -> bool:
    return isinstance(value, mx.array)


def _apply(lowered: Lowered) -> Any:
    """A call of a custom function. A rule gets primals and outputs: what else its ctx holds is computed anew."""
    needed = [True] * len(lowered.tensors)

    def forward(*tensors: Any) -> Tensors:
        return lowered.forward(tensors, needed)[0]

    def backward(primals: Any, cotangents: Any, outputs: Any) -> Tensors:
        primals = as_tuple(primals)
        computed, ctx = lowered.forward(primals, needed)
        given = {id(y): z for y, z in zip(computed, outputs, strict=True)}
        ctx.saved_tensors = tuple(given.get(id(x), x) for x in ctx.saved_tensors)
        found = lowered.backward(ctx, cotangents)
        # A rule returns the structure of its primals, in which there is no None.
        return tuple(mx.zeros_like(primals[i]) if g is None else g for i, g in enumerate(found))

    def jvp(primals: Any, tangents: Any) -> Tensors:
        outputs, ctx = lowered.forward(as_tuple(primals), needed)
        found = lowered.jvp(ctx, as_tuple(tangents))
        return tuple(mx.zeros_like(y) if t is None else t for y, t in zip(outputs, found, strict=True))

    def vmap(inputs: Any, axes: Any) -> tuple[Tensors, Tensors]:
        args, in_dims = list(lowered.args), [None] * len(lowered.args)
        for slot, x, axis in zip(lowered.slots, as_tuple(inputs), as_tuple(axes), strict=True):
            args[slot], in_dims[slot] = x, axis
        size = next(x.shape[axis] for x, axis in zip(args, in_dims, strict=True) if axis is not None)
        outputs, out_dims = lowered.cls.vmap(SimpleNamespace(batch_size=size), tuple(in_dims), *args)
        return as_tuple(outputs), as_tuple(out_dims)

    function = mx.custom_function(forward)
    function.vjp(backward)
    for name, rule in (("jvp", jvp), ("vmap", vmap)):
        if hasattr(lowered.cls, name):
            getattr(function, name)(rule)
    return lowered.returned(function(*lowered.tensors))


def array_namespace() -> ModuleType:
    """``mlx.core`` under the names of the array API."""
    xp = ModuleType("mlx_array_namespace")
    xp.__dict__.update({name: getattr(mx, name) for name in dir(mx) if not name.startswith("_")})
    xp.__dict__.update(
        arange=lambda n, device: mx.arange(n),
        copy=mx.array,
        from_numpy=lambda a, like: mx.array(a, getattr(mx, a.dtype.name)),
        to_numpy=np.array,
        zeros=lambda shape, dtype, device: mx.zeros(shape, dtype),
    )
    return xp


class MlxImplementation(protocol.Implementation):
    """Custom Functions as functions with `mx.custom_function` rules."""

    name = "mlx"
    capabilities = frozenset({
        "tuples", "double_backward", "jvp", "vmap", "batched_cotangents", "compile", "checkpoint", "numpy",
    })  # fmt: skip
    deviations = DEVIATIONS
    dtypes = (
        "float64", "float32", "float16", "bfloat16", "complex64", "int64", "int32", "int16", "int8", "uint8", "bool",
    )  # fmt: skip
    xp = array_namespace()
    ag = autograd_namespace(_apply, _is_tensor)
    dialect = "mlx"
    supported = ">=0.32"
    zeros_for_none = True

    def environment(self) -> Environment:
        return Environment(mx.__version__, str(mx.__file__))

    def array(self, values: Any, dtype: str, device: str) -> Any:
        made = mx.bool_ if dtype == "bool" else getattr(mx, dtype)
        # Not of an empty NumPy array, of which 0.32.4 reads flags that were never set: a sum of it may not end.
        return mx.array(np.array(values), made) if np.size(values) else mx.zeros(np.shape(values), made)

    def numpy(self, tensor: Any) -> Any:
        wide = {mx.complex64: np.complex128}.get(tensor.dtype)
        if mx.issubdtype(tensor.dtype, mx.floating):
            return np.array(tensor.astype(mx.float64))
        return np.array(tensor, wide)

    def describe(self, tensor: Any) -> Description:
        return Description(tuple(tensor.shape), str(tensor.dtype).removeprefix("mlx.core."), "cpu")

    def is_tensor(self, value: Any) -> bool:
        return _is_tensor(value)

    def vjp(
        self, f: Callable[..., Any], primals: Sequence[Any], *, track: Sequence[bool] | None = None
    ) -> tuple[Tensors, Pullback]:
        tracked = [True] * len(primals) if track is None else track

        def pullback(
            cotangents: Sequence[Any], wrt: Sequence[bool] | None = None, differentiable: bool = False
        ) -> Tensors:
            moving = [t and w for t, w in zip(tracked, tracked if wrt is None else wrt, strict=True)]

            def used(*tensors: Any) -> list[Any]:
                given = iter(tensors)
                outputs = as_tuple(f(*(next(given) if m else x for x, m in zip(primals, moving, strict=True))))
                return [y for y, g in zip(outputs, cotangents, strict=True) if g is not None]

            of = [x for x, m in zip(primals, moving, strict=True) if m]
            found = iter(mx.vjp(used, of, [g for g in cotangents if g is not None])[1])
            return tuple(next(found) if m else None for m in moving)

        return as_tuple(f(*primals)), pullback

    def jvp(self, f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Tensors, Tensors]:
        # A primal that does not move has the tangent zero: there is one for each.
        given = [mx.zeros_like(x) if t is None else t for x, t in zip(primals, tangents, strict=True)]
        outputs, moved = mx.jvp(lambda *tensors: as_tuple(f(*tensors)), list(primals), given)
        return tuple(outputs), tuple(moved)

    def vmap(self, f: Callable[..., Any], in_axes: Sequence[int | None]) -> Callable[..., Any]:
        batched: Callable[..., Any] = mx.vmap(f, tuple(in_axes))
        return batched

    def batched_vjp(
        self, f: Callable[..., Any], primals: Sequence[Any], cotangents: Sequence[Any], *, track: Sequence[bool]
    ) -> Tensors:
        pullback, used = self.vjp(f, primals, track=track)[1], [g is not None for g in cotangents]

        def of_used(*given: Any) -> Tensors:
            rest = iter(given)
            return tuple(g for g in pullback([next(rest) if u else None for u in used]) if g is not None)

        found = iter(mx.vmap(of_used)(*(g for g in cotangents if g is not None)))
        return tuple(next(found) if t else None for t in track)

    def compile(self, f: Callable[..., Any]) -> Callable[..., Any]:
        compiled: Callable[..., Any] = mx.compile(f)
        return compiled

    def checkpoint(self, f: Callable[..., Any]) -> Callable[..., Any]:
        recomputed: Callable[..., Any] = mx.checkpoint(f)
        return recomputed
