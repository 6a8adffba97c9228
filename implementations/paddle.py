"""PaddlePaddle: custom Functions as classes derived from `paddle.autograd.PyLayer`."""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import SimpleNamespace
from typing import Any

import numpy as np

from autograd_conformance.implementations import adapting
from autograd_conformance.implementations.deviations.paddle import DEVIATIONS
from autograd_conformance.implementations.protocol import as_tuple

# Paddle logs errors before it raises them, and its import warns that no compiler cache is installed.
os.environ.setdefault("GLOG_minloglevel", "3")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import paddle
    from paddle.autograd import py_layer
    from paddle.distributed.fleet.utils import recompute


class Context(py_layer.PyLayerBackward):
    """The ctx of a PyLayer, with the names that bodies use."""

    @property
    def saved_tensors(self) -> Any:
        return self.saved_tensor() or ()

    def save_for_forward(self, *tensors: Any) -> None:
        """Does nothing: there is no forward mode."""

    def backward(self, *cotangents: Any) -> Any:
        """From one cotangent for each tensor in the outputs to one gradient for each tensor in the arguments."""
        given = iter(cotangents)
        found = as_tuple(super().backward(*(next(given) if each else None for each in self.returned)))
        # A tensor for an input that stops gradients is refused: see PADDLE-LAYER-06.
        mine = [found[i] if self.needs_input_grad[i] else None for i in self.slots if i < len(found)]
        return (*mine, *found[self.count :])


def _forward(cls: Any, ctx: Any, *args: Any, **named: Any) -> Any:
    combined = not hasattr(cls, "setup_context")
    signature = inspect.signature(cls.forward)
    bound = signature.bind(*([ctx] if combined else []), *args, **named)
    bound.apply_defaults()
    inputs = bound.args[combined:]
    # The positions of the tensors among the arguments, in the order in which they were given.
    names = list(signature.parameters)[combined:]
    given = [*enumerate(args), *((names.index(name), value) for name, value in named.items() if name in names)]
    ctx.slots, ctx.count = [i for i, value in given if paddle.is_tensor(value)], len(inputs)
    ctx.needs_input_grad = tuple(paddle.is_tensor(x) and not x.stop_gradient for x in inputs)
    outputs = cls.forward(*bound.args, **bound.kwargs)
    if not combined:
        cls.setup_context(ctx, inputs, outputs)
    ctx.returned = [paddle.is_tensor(y) for y in as_tuple(outputs)]
    return outputs


class Function:
    """The base class of bodies; each of them is lowered to a PyLayer."""

    layer: Any

    def __init_subclass__(cls) -> None:
        methods = {"forward": staticmethod(lambda ctx, *args, **named: _forward(cls, ctx, *args, **named))}
        cls.layer = type(py_layer.PyLayer)(cls.__name__, (py_layer.PyLayer,), methods)
        cls.layer._backward_function = type(cls.__name__, (Context,), {"_forward_cls": cls})

    @classmethod
    def apply(cls, *args: Any, **named: Any) -> Any:
        return cls.layer.apply(*args, **named)


def _tensor(value: Any, *others: Any) -> Any:
    """The value as a tensor; a number gets the dtype of the others."""
    if paddle.is_tensor(value):
        return value
    return paddle.to_tensor(value, dtype=next((x.dtype for x in others if paddle.is_tensor(x)), None))


class PaddleImplementation(adapting.RecordingImplementation, adapting.NumPyImplementation):
    """Custom Functions as classes derived from `paddle.autograd.PyLayer`, called through ``apply``."""

    name = "paddle"
    capabilities = frozenset({
        "context", "keywords", "objects", "tuples", "gradient_count", "needs_input_grad", "materialize",
        "nondifferentiable", "double_backward", "requires_grad", "accumulate", "saved_hooks",
        "checkpoint", "numpy", "views",
    })  # fmt: skip
    deviations = DEVIATIONS
    emulated = frozenset({"needs_input_grad"})
    # The CPU has no half precision; exp of complex128 has single precision, see PADDLE-TYPE-02.
    dtypes = ("float64", "float32", "complex64", "int64", "int32", "int16", "int8", "uint8", "bool")
    package = paddle
    xp = adapting.namespace(
        paddle,
        argsort=lambda x, axis=-1, descending=False, stable=True: paddle.argsort(x, axis, descending, stable),
        argmax=lambda x, axis=None, keepdims=False: paddle.argmax(x, axis, keepdims),
        max=lambda x, axis=None, keepdims=False: paddle.amax(x, axis, keepdims),
        mean=lambda x, axis=None, keepdims=False: paddle.mean(x, axis, keepdims),
        sum=lambda x, axis=None, keepdims=False: paddle.sum(x, axis, keepdim=keepdims),
        copy=paddle.clone,
        expand_dims=paddle.unsqueeze,
        from_numpy=lambda a, like: paddle.to_tensor(np.array(a, order="C"), place=like.place),
        permute_dims=paddle.transpose,
        sparse_matmul=lambda indices, values, shape, b: paddle.sparse.matmul(
            paddle.sparse.sparse_coo_tensor(indices, values, shape), b
        ),
        take=lambda x, indices, axis: paddle.index_select(x, indices, axis),
        to_numpy=lambda x: x.detach().numpy(),
        where=lambda condition, x, y: paddle.where(condition, *(_tensor(v, x, y) for v in (x, y))),
    )
    ag = SimpleNamespace(Function=Function, once_differentiable=py_layer.once_differentiable)
    dialect = "paddle"
    # Its InvalidArgument is a ValueError, and an exception of Python code in backward becomes an OSError.
    refusals = (*adapting.NumPyImplementation.refusals, OSError, SystemError, AssertionError)
    supported = ">=3.3"

    def limit_threads(self) -> None:
        paddle.base.core.set_num_threads(1)

    def array(self, values: Any, dtype: str, device: str) -> Any:
        return paddle.to_tensor(np.asarray(values), dtype=dtype, place=device)

    def as_numpy(self, tensor: Any) -> Any:
        return np.from_dlpack(tensor.detach())

    def is_tensor(self, value: Any) -> bool:
        return bool(paddle.is_tensor(value))

    def leaf(self, x: Any, track: bool) -> Any:
        leaf = x.detach()
        leaf.stop_gradient = not track
        return leaf

    def recording(self) -> AbstractContextManager[Any]:
        return paddle.enable_grad()

    def grad(self, outputs: Any, inputs: Any, cotangents: Any, differentiable: bool) -> Any:
        return paddle.grad(outputs, inputs, cotangents, True, differentiable, allow_unused=True)

    def accumulate(self, outputs: Any, cotangents: Any, differentiable: bool) -> None:
        if outputs:
            paddle.autograd.backward(outputs, cotangents)

    def requires_grad(self, tensor: Any) -> bool:
        return not tensor.stop_gradient

    def node(self, tensor: Any) -> Any:
        # Constants and leaves have a grad_fn too.
        return None if tensor.stop_gradient or tensor.is_leaf else tensor.grad_fn

    def no_grad(self) -> AbstractContextManager[Any]:
        return paddle.no_grad()

    def version(self, tensor: Any) -> int:
        return int(tensor.inplace_version)

    def fill_(self, tensor: Any, value: Any) -> None:
        with paddle.no_grad():
            tensor.fill_(value)

    def offload(self) -> AbstractContextManager[Any]:
        return paddle.autograd.saved_tensors_hooks(
            lambda x: None if x is None else x.numpy(),
            lambda packed: None if packed is None else paddle.to_tensor(packed),
        )

    def checkpoint(self, f: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *primals: recompute(f, *primals)
