"""tinygrad: custom Functions as functions with `tinygrad.function(grad_fxn=...)`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib import metadata
from types import SimpleNamespace
from typing import Any

import numpy as np

# Its own interpreter, where the user has not chosen a device: tensors of a few elements are not worth compiling for.
os.environ.setdefault("DEV", "PYTHON")
import tinygrad
from tinygrad import Tensor, dtypes

from autograd_conformance.implementations import protocol
from autograd_conformance.implementations.lowering import Context, Lowered, as_tuple, autograd_namespace
from autograd_conformance.implementations.protocol import Description, Environment, Pullback, Tensors

# Not float16, of which the device PYTHON flushes small numbers to zero and others do not.
_NAMES = ("float64", "float32", "int64", "int32", "int16", "int8", "uint8", "bool")
_DTYPES = {name: getattr(dtypes, name) for name in _NAMES}


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor)


def _apply(lowered: Lowered) -> Any:
    held: list[Context] = []
    inputs = [x.uop for x in lowered.tensors]

    def backward(*given: Any, call: Any = None) -> Tensors:
        cotangents = given if call is not None else given[:-1]
        found = lowered.backward(held[0], [Tensor(g) for g in cotangents])
        # A tensor that was given twice is one input of the call, with one gradient.
        total: dict[Any, Any] = {}
        for x, g in zip(inputs, found, strict=True):
            before = total.get(x)
            total[x] = before if g is None else g if before is None else before + g
        return tuple(None if g is None else g.uop for g in total.values())

    @tinygrad.function(grad_fxn=backward)
    def function(*tensors: Any) -> Tensors:
        outputs, ctx = lowered.forward(tensors, [True] * len(tensors))
        held.append(ctx)
        return outputs

    return lowered.returned(function(*lowered.tensors))


def _along_all(x: Any, indices: Any, axis: int) -> Any:
    return x.gather(axis % x.ndim, indices)


# A constant is made of no buffer: one that is allocated within a function would be an input of it.
array_namespace = SimpleNamespace(
    **_DTYPES,
    **{
        name: getattr(Tensor, name)
        for name in ("abs", "cos", "cosh", "exp", "matmul", "reshape", "sign", "sin", "sinh", "sqrt")
    },
    arange=lambda n, device: Tensor.arange(n),
    argmax=lambda x, axis: x.argmax(axis),
    argsort=lambda x, axis: x.sort(axis)[1],
    broadcast_to=lambda x, shape: x.expand(shape),
    concat=lambda xs, axis: xs[0].cat(*xs[1:], dim=axis),
    conj=lambda x: x,
    copy=lambda x: x.contiguous(),
    expand_dims=lambda x, axis: x.unsqueeze(axis),
    flip=lambda x, axis: x.flip(axis),
    imag=lambda x: x * 0,
    max=lambda x, axis=None, keepdims=False: x.max(axis, keepdim=keepdims),
    mean=lambda x, axis=None, keepdims=False: x.mean(axis, keepdim=keepdims),
    matrix_transpose=lambda x: x.transpose(-1, -2),
    ones_like=lambda x: x.const_like(1),
    permute_dims=lambda x, axes: x.permute(axes),
    real=lambda x: x,
    sparse_matmul=None,
    stack=lambda xs, axis=0: xs[0].stack(*xs[1:], dim=axis),
    sum=lambda x, axis=None, keepdims=False: x.sum(axis, keepdim=keepdims),
    take=lambda x, indices, axis: x[(slice(None),) * (axis % x.ndim) + (indices,)],
    take_along_axis=_along_all,
    tanh=lambda x: x.tanh(),
    where=lambda condition, x, y: condition.where(x, y),
    zeros=lambda shape, dtype, device: Tensor(0, dtype=dtype).expand(shape),
    zeros_like=lambda x: x.const_like(0),
)


class TinygradImplementation(protocol.Implementation):
    """Custom Functions as functions with `tinygrad.function(grad_fxn=...)`."""

    name = "tinygrad"
    # None of it is documented: these are what its own tests rely on.
    capabilities = frozenset({"double_backward", "none_gradients"})
    dtypes = _NAMES
    dialect = "tinygrad"
    refusals = (*protocol.Implementation.refusals, AssertionError)
    supported = ">=0.14"
    xp = array_namespace
    ag = autograd_namespace(_apply, _is_tensor)
    zeros_for_none = True
    shapes_per_rank = 1
    share_of_examples = 0.4

    def environment(self) -> Environment:
        return Environment(metadata.version("tinygrad"), str(tinygrad.__file__))

    def array(self, values: Any, dtype: str, device: str) -> Any:
        # A 0-d array would become a constant, which is no input of a function.
        flat = Tensor(np.asarray(values).astype(dtype).ravel(), dtype=_DTYPES[dtype])
        return flat.realize().reshape(np.shape(values))

    def numpy(self, tensor: Any) -> Any:
        return np.array((tensor.cast(dtypes.float64) if tensor.is_floating_point() else tensor).numpy())

    def describe(self, tensor: Any) -> Description:
        names = {dtype: name for name, dtype in _DTYPES.items()}
        return Description(tuple(tensor.shape), names.get(tensor.dtype, str(tensor.dtype)), "cpu")

    def is_tensor(self, value: Any) -> bool:
        return _is_tensor(value)

    def vjp(
        self, f: Callable[..., Any], primals: Sequence[Any], *, track: Sequence[bool] | None = None
    ) -> tuple[Tensors, Pullback]:
        tracked = [True] * len(primals) if track is None else list(track)
        outputs = as_tuple(f(*primals))

        def pullback(
            cotangents: Sequence[Any], wrt: Sequence[bool] | None = None, differentiable: bool = False
        ) -> Tensors:
            wanted = tracked if wrt is None else wrt
            inputs = [x for x, w in zip(primals, wanted, strict=True) if w]
            used = [(y, g) for y, g in zip(outputs, cotangents, strict=True) if g is not None]
            if not used or not inputs:
                return (None,) * len(primals)
            end, start = used[0] if len(used) == 1 else (sum((y * g).sum() for y, g in used), None)
            found = iter(end.gradient(*inputs, gradient=start))
            return tuple(next(found) if w else None for w in wanted)

        return outputs, pullback
