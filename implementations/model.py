"""The suite's own model of the contract, in NumPy: with it the suite checks itself without a framework."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from importlib import metadata
from types import SimpleNamespace
from typing import Any

import numpy as np

from autograd_conformance.implementations import adapting
from autograd_conformance.implementations.protocol import Description, Environment, Tensors
from autograd_conformance.reference import model
from autograd_conformance.reference.model_namespace import DTYPES, xp
from autograd_conformance.reference.model_tensors import Tensor, mode, switched


class ModelImplementation(adapting.RecordingImplementation, adapting.NumPyImplementation):
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

    def as_numpy(self, tensor: Any) -> Any:
        return tensor.data

    def describe(self, tensor: Any) -> Description:
        return Description(tensor.shape, str(tensor.dtype), tensor.device)

    def is_tensor(self, value: Any) -> bool:
        return isinstance(value, Tensor)

    def leaf(self, x: Any, track: bool) -> Any:
        return x.detach().requires_grad_(track)

    def recording(self) -> AbstractContextManager[Any]:
        return switched(recording=True)

    def grad(self, outputs: Any, inputs: Any, cotangents: Any, differentiable: bool) -> Any:
        return model.grad(
            outputs, inputs, cotangents, retain_graph=True, create_graph=differentiable, allow_unused=True
        )

    def accumulate(self, outputs: Any, cotangents: Any, differentiable: bool) -> None:
        model.backward(outputs, cotangents, create_graph=differentiable)

    def requires_grad(self, tensor: Any) -> bool:
        return bool(tensor.requires_grad)

    def node(self, tensor: Any) -> Any:
        return tensor.grad_fn

    def no_grad(self) -> AbstractContextManager[Any]:
        return switched(recording=False, tangents=mode.tangents)

    def version(self, tensor: Any) -> int:
        return int(tensor.storage.version)

    def fill_(self, tensor: Any, value: Any) -> None:
        tensor.data[...] = value
        tensor.storage.version += 1

    def jvp(self, f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Tensors, Tensors]:
        return model.jvp(f, primals, tangents)
