"""MindSpore: custom Functions as classes derived from `mindspore._Function`, in PyNative mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from types import SimpleNamespace
from typing import Any

import mindspore
import numpy as np
from mindspore import Tensor, ops

from autograd_conformance.implementations import adapting
from autograd_conformance.implementations.deviations.mindspore import DEVIATIONS
from autograd_conformance.implementations.protocol import BackwardPass, Description, Mask, Tensors

_DTYPES = ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool")

# Operations run one after another: to hand one to another thread takes a hundred times as long as to run it.
mindspore.runtime.launch_blocking()


class Function(mindspore._Function):
    """The base class of a custom Function."""

    def save_for_forward(self, *tensors: Any) -> None:
        """Does nothing: there is no forward mode."""


class MindSporeImplementation(adapting.NumPyImplementation):
    """Custom Functions as classes derived from `mindspore._Function`, called through ``apply``."""

    name = "mindspore"
    # The documentation of _Function says that its interface is that of torch, in PyNative mode.
    capabilities = frozenset({
        "context", "classes", "objects", "tuples", "gradient_count", "gradient_checks", "none_gradients",
        "needs_input_grad", "materialize", "double_backward", "saved_hooks", "checkpoint", "numpy",
    })  # fmt: skip
    dtypes = _DTYPES
    deviations = DEVIATIONS
    dialect = "mindspore"
    supported = ">=2.10"
    # A sum over no elements is not zero, but what the memory held before.
    empty = False
    zeros_for_none = True
    package = mindspore
    xp = adapting.namespace(
        ops,
        **{name: getattr(mindspore, name) for name in _DTYPES if name != "bool"},
        arange=lambda n, device=None: ops.arange(n),
        argmax=lambda x, axis=None, keepdims=False: ops.argmax(x, axis, keepdims),
        argsort=lambda x, axis=-1, descending=False, stable=True: ops.sort(x, axis, descending)[1].long(),
        concat=lambda arrays, axis=0: ops.concat(arrays, axis),
        conj=lambda x: x,
        copy=lambda x: x.copy(),
        flip=lambda x, axis: ops.flip(x, (axis,) if isinstance(axis, int) else axis),
        from_numpy=lambda a, like: Tensor(np.array(a)),
        matrix_transpose=lambda x: ops.swapaxes(x, -1, -2),
        max=lambda x, axis=None, keepdims=False: ops.amax(x, axis, keepdims),
        mean=lambda x, axis=None, keepdims=False: ops.mean(x, axis, keepdims),
        permute_dims=ops.permute,
        stack=lambda arrays, axis=0: ops.stack(arrays, axis),
        sum=lambda x, axis=None, keepdims=False: ops.sum(x, axis, keepdims),
        take=lambda x, indices, axis: ops.gather(x, indices, axis),
        take_along_axis=lambda x, indices, axis=-1: ops.gather_elements(x, axis, indices),
        to_numpy=lambda x: x.asnumpy(),
        zeros=lambda shape, dtype, device=None: ops.zeros(shape, dtype),
    )
    ag = SimpleNamespace(Function=Function, once_differentiable=lambda backward: backward)

    def array(self, values: Any, dtype: str, device: str) -> Any:
        return Tensor(np.array(values), getattr(mindspore, dtype))

    def as_numpy(self, tensor: Any) -> Any:
        return tensor.asnumpy()

    def describe(self, tensor: Any) -> Description:
        return Description(tuple(tensor.shape), str(tensor.dtype).lower(), tensor.device.lower())

    def is_tensor(self, value: Any) -> bool:
        return isinstance(value, Tensor)

    def differentiate(self, f: Callable[..., Tensors], primals: Tensors, tracked: Mask) -> tuple[Tensors, BackwardPass]:
        outputs = f(*primals)
        of_tracked, moving = adapting.of_moving(f, primals, tracked)

        def gradients(cotangents: Sequence[Any], wanted: Mask, differentiable: bool) -> Tensors:
            # A pass starts from floating outputs; for other outputs vjp refuses a vector that has another dtype.
            used = [i for i, g in enumerate(cotangents) if g is not None and outputs[i].is_floating_point()]
            if not used or not moving:
                return (None,) * len(primals)
            _, pull = mindspore.vjp(lambda *moving: itemgetter(*used)(of_tracked(*moving)), *moving)
            return adapting.placed(tracked, pull(*(cotangents[i] for i in used)))

        return outputs, gradients

    def offload(self) -> Any:
        return mindspore.saved_tensors_hooks(lambda x: x.asnumpy(), Tensor)

    def checkpoint(self, f: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *primals: mindspore.recompute(f, *primals, use_reentrant=False)
