"""PaddlePaddle: custom Functions as classes derived from `paddle.autograd.PyLayer`."""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from autograd_conformance.implementations import protocol
from autograd_conformance.implementations.lowering import as_tuple
from autograd_conformance.implementations.paddle_deviations import DEVIATIONS
from autograd_conformance.implementations.protocol import Description, Environment, Pullback, Tensors

# Errors are logged before they are raised, and the import warns that no compiler cache is installed.
os.environ.setdefault("GLOG_minloglevel", "3")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import paddle
    from paddle.autograd import py_layer
    from paddle.distributed.fleet.utils import recompute


class Context(py_layer.PyLayerBackward):
    """The ctx of a PyLayer under the names that bodies use."""

    @property
    def saved_tensors(self) -> Any:
        return self.saved_tensor() or ()

    def save_for_forward(self, *tensors: Any) -> None:
        """Nothing: there is no forward mode."""

    def backward(self, *cotangents: Any) -> Any:
        """From a cotangent per tensor among the outputs to a gradient per tensor among the arguments."""
        given = iter(cotangents)
        found = as_tuple(super().backward(*(next(given) if each else None for each in self.returned)))
        mine = [found[i] if self.needs_input_grad[i] else None for i in self.slots if i < len(found)]
        return (*mine, *found[self.count :])


def _forward(cls: Any, ctx: Any, *args: Any, **named: Any) -> Any:
    combined = not hasattr(cls, "setup_context")
    signature = inspect.signature(cls.forward)
    bound = signature.bind(*([ctx] if combined else []), *args, **named)
    bound.apply_defaults()
    inputs = bound.args[combined:]
    # The tensors in the order in which they were given, each at its place among the arguments.
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
    """The base class of bodies, each of which is lowered to a PyLayer."""

    layer: Any

    def __init_subclass__(cls) -> None:
        methods = {"forward": staticmethod(lambda ctx, *args, **named: _forward(cls, ctx, *args, **named))}
        cls.layer = type(py_layer.PyLayer)(cls.__name__, (py_layer.PyLayer,), methods)
        cls.layer._backward_function = type(cls.__name__, (Context,), {"_forward_cls": cls})

    @classmethod
    def apply(cls, *args: Any, **named: Any) -> Any:
        return cls.layer.apply(*args, **named)


def array_namespace() -> ModuleType:
    """``paddle`` under the names of the array API."""
    xp = ModuleType("paddle_array_namespace")
    xp.__dict__.update(vars(paddle))
    xp.__dict__.update(
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
    return xp


def _tensor(value: Any, *others: Any) -> Any:
    """The value, a number as a tensor of the others' dtype."""
    if paddle.is_tensor(value):
        return value
    return paddle.to_tensor(value, dtype=next((x.dtype for x in others if paddle.is_tensor(x)), None))


def _connected(outputs: Tensors, cotangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The outputs that a backward pass can start from, each once, as Paddle wants them, and their cotangents."""
    found: dict[int, tuple[Any, Any]] = {}
    for y, g in zip(outputs, cotangents, strict=True):
        if g is not None and not y.stop_gradient:
            found[id(y)] = y, found[id(y)][1] + g if id(y) in found else g
    return [y for y, _ in found.values()], [g for _, g in found.values()]


def _memory(tensor: Any) -> Any:
    """A NumPy array on the tensor's own memory."""
    return np.from_dlpack(tensor.detach())


def _packed(x: Any) -> Any:
    return None if x is None else x.numpy()


def _unpacked(packed: Any) -> Any:
    return None if packed is None else paddle.to_tensor(packed)


def _leaf(x: Any, track: bool) -> Any:
    leaf = x.detach()
    leaf.stop_gradient = not track
    return leaf


class PaddleImplementation(protocol.Implementation):
    """Custom Functions as classes derived from `paddle.autograd.PyLayer`, called through ``apply``."""

    name = "paddle"
    capabilities = frozenset({
        "context", "keywords", "objects", "tuples", "gradient_count", "needs_input_grad", "materialize",
        "nondifferentiable", "double_backward", "requires_grad", "accumulate", "saved_hooks",
        "checkpoint", "numpy", "views",
    })  # fmt: skip
    deviations = DEVIATIONS
    emulated = frozenset({"needs_input_grad"})
    # Half precision is not for the CPU; of complex128 exp has single precision, see PADDLE-TYPE-02.
    dtypes = ("float64", "float32", "complex64", "int64", "int32", "int16", "int8", "uint8", "bool")
    xp = array_namespace()
    ag = SimpleNamespace(Function=Function, once_differentiable=py_layer.once_differentiable)
    dialect = "paddle"
    # What it calls InvalidArgument is a ValueError, and what Python code raised in backward comes out as an OSError.
    refusals = (*protocol.Implementation.refusals, OSError, SystemError, AssertionError)
    supported = ">=3.3"

    def environment(self) -> Environment:
        return Environment(paddle.version.full_version, str(paddle.__file__))

    def limit_threads(self) -> None:
        paddle.base.core.set_num_threads(1)

    def array(self, values: Any, dtype: str, device: str) -> Any:
        return paddle.to_tensor(np.asarray(values), dtype=dtype, place=device)

    def numpy(self, tensor: Any) -> Any:
        wide = {"f": np.float64, "c": np.complex128}
        array = tensor.detach().numpy()
        return np.array(array, wide.get(array.dtype.kind))

    def describe(self, tensor: Any) -> Description:
        return Description(tuple(tensor.shape), str(tensor.dtype).removeprefix("paddle."), "cpu")

    def is_tensor(self, value: Any) -> bool:
        return bool(paddle.is_tensor(value))

    def vjp(
        self, f: Callable[..., Any], primals: Sequence[Any], *, track: Sequence[bool] | None = None
    ) -> tuple[Tensors, Pullback]:
        tracked = [True] * len(primals) if track is None else list(track)
        # A primal that already has a history stays in the enclosing graph; any other becomes a leaf of a new one.
        leaves = [_leaf(x, t) if x.stop_gradient else x for x, t in zip(primals, tracked, strict=True)]
        with paddle.enable_grad():
            outputs = as_tuple(f(*leaves))

        def pullback(
            cotangents: Sequence[Any], wrt: Sequence[bool] | None = None, differentiable: bool = False
        ) -> Tensors:
            wanted = tracked if wrt is None else wrt
            inputs = [x for x, w in zip(leaves, wanted, strict=True) if w]
            starts, given = _connected(outputs, cotangents)
            if not starts or not inputs:
                return (None,) * len(leaves)
            found = iter(paddle.grad(starts, inputs, given, True, differentiable, allow_unused=True))
            return tuple(next(found) if w else None for w in wanted)

        return outputs, pullback

    def requires_grad(self, tensor: Any) -> bool:
        return not tensor.stop_gradient

    def node(self, tensor: Any) -> Any:
        # Constants and leaves have a grad_fn as well.
        return None if tensor.stop_gradient or tensor.is_leaf else tensor.grad_fn

    def no_grad(self) -> AbstractContextManager[Any]:
        return paddle.no_grad()

    def version(self, tensor: Any) -> int:
        return int(tensor.inplace_version)

    def shares_memory(self, a: Any, b: Any) -> bool:
        return bool(np.shares_memory(_memory(a), _memory(b)))

    def fill_(self, tensor: Any, value: float) -> None:
        with paddle.no_grad():
            tensor.fill_(value)

    def strides(self, tensor: Any) -> tuple[int, ...]:
        array = _memory(tensor)
        return tuple(step // array.itemsize for step in array.strides)

    def backward(
        self, f: Callable[..., Any], primals: Sequence[Any], cotangents: Sequence[Any], *, track: Sequence[bool],
        initial: Sequence[Any] | None = None, differentiable: bool = False,
    ) -> Tensors:  # fmt: skip
        leaves = [_leaf(x, t) for x, t in zip(primals, track, strict=True)]
        for leaf, grad in zip(leaves, initial or (None,) * len(leaves), strict=True):
            leaf.grad = grad
        starts, given = _connected(as_tuple(f(*leaves)), cotangents)
        if starts:
            paddle.autograd.backward(starts, given)
        return tuple(leaf.grad for leaf in leaves)

    def offload(self) -> AbstractContextManager[Any]:
        return paddle.autograd.saved_tensors_hooks(_packed, _unpacked)

    def checkpoint(self, f: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *primals: recompute(f, *primals)
