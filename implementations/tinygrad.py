"""tinygrad: custom Functions as functions with `tinygrad.function(grad_fxn=...)`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

# Its own interpreter, unless the user has chosen a device: tensors of a few elements are not worth compiling for.
os.environ.setdefault("DEV", "PYTHON")
import tinygrad
from tinygrad import Tensor, dtypes

from autograd_conformance.implementations import adapting
from autograd_conformance.implementations.adapting.lowering import Context, Lowered, autograd_namespace
from autograd_conformance.implementations.protocol import BackwardPass, Description, Mask, Tensors

# Not float16: the device PYTHON flushes its small numbers to zero, other devices do not.
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


def _gradients(outputs: Any, inputs: Any, cotangents: Any, differentiable: bool) -> Any:
    if len(outputs) == 1:
        return outputs[0].gradient(*inputs, gradient=cotangents[0])
    return sum((y * g).sum() for y, g in zip(outputs, cotangents, strict=True)).gradient(*inputs)


class TinygradImplementation(adapting.NumPyImplementation):
    """Custom Functions as functions with `tinygrad.function(grad_fxn=...)`."""

    name = "tinygrad"
    # None of this is documented; its own tests rely on it.
    capabilities = frozenset({"double_backward", "none_gradients"})
    dtypes = _NAMES
    dialect = "tinygrad"
    refusals = (*adapting.NumPyImplementation.refusals, AssertionError)
    supported = ">=0.14"
    package = tinygrad
    # Constants are made without a buffer: a buffer allocated inside a function would become an input of it.
    xp = adapting.namespace(
        Tensor,
        **_DTYPES,
        arange=lambda n, device: Tensor.arange(n),
        argsort=lambda x, axis: x.sort(axis)[1],
        broadcast_to=Tensor.expand,
        concat=lambda xs, axis: xs[0].cat(*xs[1:], dim=axis),
        conj=lambda x: x,
        copy=Tensor.contiguous,
        expand_dims=lambda x, axis: x.unsqueeze(axis),
        imag=lambda x: x * 0,
        max=lambda x, axis=None, keepdims=False: x.max(axis, keepdim=keepdims),
        mean=lambda x, axis=None, keepdims=False: x.mean(axis, keepdim=keepdims),
        matrix_transpose=lambda x: x.transpose(-1, -2),
        ones_like=lambda x: x.const_like(1),
        permute_dims=Tensor.permute,
        real=lambda x: x,
        stack=lambda xs, axis=0: xs[0].stack(*xs[1:], dim=axis),
        sum=lambda x, axis=None, keepdims=False: x.sum(axis, keepdim=keepdims),
        take=lambda x, indices, axis: x[(slice(None),) * (axis % x.ndim) + (indices,)],
        take_along_axis=lambda x, indices, axis: x.gather(axis % x.ndim, indices),
        zeros=lambda shape, dtype, device: Tensor(0, dtype=dtype).expand(shape),
        zeros_like=lambda x: x.const_like(0),
    )
    ag = autograd_namespace(_apply, _is_tensor)
    is_tensor = staticmethod(_is_tensor)
    zeros_for_none = True
    shapes_per_rank = 1
    share_of_examples = 0.4

    def array(self, values: Any, dtype: str, device: str) -> Any:
        # A 0-d array would become a constant, which cannot be an input of a function.
        flat = Tensor(np.asarray(values).astype(dtype).ravel(), dtype=_DTYPES[dtype])
        return flat.realize().reshape(np.shape(values))

    def as_numpy(self, tensor: Any) -> Any:
        return tensor.numpy()

    def describe(self, tensor: Any) -> Description:
        names = {dtype: name for name, dtype in _DTYPES.items()}
        return Description(tuple(tensor.shape), names.get(tensor.dtype, str(tensor.dtype)), "cpu")

    def differentiate(self, f: Callable[..., Tensors], primals: Tensors, tracked: Mask) -> tuple[Tensors, BackwardPass]:
        outputs = f(*primals)
        return outputs, adapting.by_outputs(_gradients, outputs, primals)
