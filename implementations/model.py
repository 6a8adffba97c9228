"""The suite's own model of the contract, in NumPy: the suite checks itself with it, and needs no framework for that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from importlib import metadata
from types import SimpleNamespace
from typing import Any

import numpy as np

from autograd_conformance.implementations import protocol
from autograd_conformance.implementations.protocol import Description, Environment, Pullback, Tensors
from autograd_conformance.reference import model
from autograd_conformance.reference.model_namespace import DTYPES, Tensor, mode, switched, xp


def _tuple(outputs: Any) -> Tensors:
    return outputs if isinstance(outputs, tuple) else (outputs,)


def _connected(outputs: Tensors, cotangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The outputs that a backward pass can start from, with their cotangents."""
    pairs = [(y, g) for y, g in zip(outputs, cotangents, strict=True) if g is not None and y.requires_grad]
    return [y for y, _ in pairs], [g for _, g in pairs]


class ModelImplementation(protocol.Implementation):
    """Custom Functions as classes derived from `reference.model.Function`, called through ``apply``."""

    name = "model"
    capabilities = frozenset({
        "context", "classes", "keywords", "objects", "tuples", "gradient_count", "gradient_checks", "gradient_fitting",
        "none_gradients", "cotangent_checks",
        "needs_input_grad", "materialize", "nondifferentiable", "inplace", "once_differentiable", "double_backward",
        "requires_grad", "accumulate", "saved_check", "jvp", "threads", "memory", "views", "sparse", "numpy",
    })  # fmt: skip
    dtypes = DTYPES
    xp = xp
    ag = SimpleNamespace(Function=model.Function, once_differentiable=model.once_differentiable)

    def environment(self) -> Environment:
        try:
            version = metadata.version("autograd-conformance")
        except metadata.PackageNotFoundError:
            version = "0"
        return Environment(version, model.__file__)

    def array(self, values: Any, dtype: str, device: str) -> Any:
        return Tensor(np.array(values, dtype, order="C"))

    def numpy(self, tensor: Any) -> Any:
        wide = {"f": np.float64, "c": np.complex128}
        return np.array(tensor.data, wide.get(tensor.dtype.kind))

    def describe(self, tensor: Any) -> Description:
        return Description(tensor.shape, str(tensor.dtype), tensor.device)

    def is_tensor(self, value: Any) -> bool:
        return isinstance(value, Tensor)

    def vjp(
        self, f: Callable[..., Any], primals: Sequence[Any], *, track: Sequence[bool] | None = None
    ) -> tuple[Tensors, Pullback]:
        tracked = [True] * len(primals) if track is None else list(track)
        # A primal that already has a history stays in the enclosing graph; any other becomes a leaf of a new one.
        leaves = [x if x.requires_grad else x.detach().requires_grad_(t) for x, t in zip(primals, tracked, strict=True)]
        with switched(recording=True):
            outputs = _tuple(f(*leaves))

        def pullback(
            cotangents: Sequence[Any], wrt: Sequence[bool] | None = None, differentiable: bool = False
        ) -> Tensors:
            wanted = tracked if wrt is None else wrt
            inputs = [x for x, w in zip(leaves, wanted, strict=True) if w]
            starts, given = _connected(outputs, cotangents)
            if not starts or not inputs:
                return (None,) * len(leaves)
            found = iter(
                model.grad(starts, inputs, given, retain_graph=True, create_graph=differentiable, allow_unused=True)
            )
            return tuple(next(found) if w else None for w in wanted)

        return outputs, pullback

    def requires_grad(self, tensor: Any) -> bool:
        return bool(tensor.requires_grad)

    def node(self, tensor: Any) -> Any:
        return tensor.grad_fn

    def no_grad(self) -> AbstractContextManager[Any]:
        return switched(recording=False, tangents=mode.tangents)

    def version(self, tensor: Any) -> int:
        return int(tensor.storage.version)

    def shares_memory(self, a: Any, b: Any) -> bool:
        return bool(np.shares_memory(a.data, b.data))

    def fill_(self, tensor: Any, value: float) -> None:
        tensor.data[...] = value
        tensor.storage.version += 1

    def strides(self, tensor: Any) -> tuple[int, ...]:
        return tuple(step // tensor.dtype.itemsize for step in tensor.data.strides)

    def backward(
        self, f: Callable[..., Any], primals: Sequence[Any], cotangents: Sequence[Any], *, track: Sequence[bool],
        initial: Sequence[Any] | None = None, differentiable: bool = False,
    ) -> Tensors:  # fmt: skip
        leaves = [x.detach().requires_grad_(t) for x, t in zip(primals, track, strict=True)]
        for leaf, grad in zip(leaves, initial or (None,) * len(leaves), strict=True):
            leaf.grad = grad
        starts, given = _connected(_tuple(f(*leaves)), cotangents)
        model.backward(starts, given, create_graph=differentiable)
        return tuple(leaf.grad for leaf in leaves)

    def jvp(self, f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Tensors, Tensors]:
        return model.jvp(f, primals, tangents)
