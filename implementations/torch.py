"""PyTorch and anything that installs itself as ``torch``."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import torch
from packaging.specifiers import SpecifierSet
from packaging.version import Version
from torch.autograd import function as ag

from autograd_conformance.implementations import protocol
from autograd_conformance.implementations.protocol import Description, Environment, Pullback, ScriptText, Tensors
from autograd_conformance.implementations.torch_deviations import DEVIATIONS
from autograd_conformance.implementations.torch_script import SCRIPT

# A fork's own suffix (2.13.0+mine, 2.13.0.dev1) does not change what it is expected to keep.
RELEASE = Version(Version(torch.__version__).base_version)


def array_namespace() -> ModuleType:
    """``torch`` under the array API's names, where torch has others."""
    xp = ModuleType("torch_array_namespace", "torch under the names of the array API")
    xp.__dict__.update({name: getattr(torch, name) for name in dir(torch) if not name.startswith("_")})
    xp.__dict__.update(
        copy=torch.clone,
        expand_dims=lambda x, axis: torch.unsqueeze(x, axis),
        flip=lambda x, axis: torch.flip(x, (axis,) if isinstance(axis, int) else axis),
        from_numpy=lambda a, like: torch.from_numpy(np.array(a, order="C")).to(like.device),
        matrix_transpose=lambda x: x.mT,
        max=torch.amax,
        permute_dims=torch.permute,
        sparse_matmul=_sparse_matmul,
        take=lambda x, indices, axis: torch.index_select(x, axis, indices),
        take_along_axis=lambda x, indices, axis: torch.take_along_dim(x, indices, axis),
        to_numpy=lambda x: x.detach().cpu().numpy(),
    )
    return xp


@cache
def _start_lazy_device() -> None:
    # A second start is an error, and the first one warns that it replaces kernels.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        importlib.import_module("torch._lazy.ts_backend").init()


def _sparse_matmul(indices: Any, values: Any, shape: tuple[int, int], b: Any) -> Any:
    return torch.sparse_coo_tensor(indices, values, shape, check_invariants=True) @ b


def _tuple(outputs: Any) -> Tensors:
    return outputs if isinstance(outputs, tuple) else (outputs,)


def _addresses(tensor: Any) -> Any:
    """The address of every byte that holds an element of the tensor."""
    steps = [np.arange(n) * step * tensor.element_size() for n, step in zip(tensor.shape, tensor.stride(), strict=True)]
    found = np.asarray(tensor.data_ptr())
    for step in (*steps, np.arange(tensor.element_size())):
        found = np.add.outer(found, step)
    return found.ravel()


def _connected(outputs: Tensors, cotangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The outputs that a backward pass can start from, with their cotangents."""
    pairs = [(y, g) for y, g in zip(outputs, cotangents, strict=True) if g is not None and y.requires_grad]
    return [y for y, _ in pairs], [g for _, g in pairs]


class TorchImplementation(protocol.Implementation):
    """Custom Functions as classes derived from `torch.autograd.Function`, called through ``apply``."""

    name = "torch"
    capabilities = frozenset(protocol.CAPABILITIES)
    deviations = tuple(d for d in DEVIATIONS if RELEASE in SpecifierSet(d.releases, prereleases=True))
    dtypes = (
        "float64", "float32", "float16", "bfloat16", "complex128", "complex64",
        "int64", "int32", "int16", "int8", "uint8", "bool",
    )  # fmt: skip
    xp = array_namespace()
    ag = ag
    dialect = "torch"
    script: ScriptText | None = SCRIPT

    def environment(self) -> Environment:
        return Environment(torch.__version__, str(torch.__file__))

    def predates(self, release: str) -> bool:
        return RELEASE.release < Version(release).release

    def devices(self) -> tuple[str, ...]:
        # Not mps: it has no float64, in which much of the suite computes.
        accelerators = (("cuda", torch.cuda), ("xpu", getattr(torch, "xpu", None)))
        return ("cpu", *(name for name, module in accelerators if module is not None and module.is_available()))

    def simulated_devices(self) -> tuple[str, ...]:
        return ("lazy",)

    def abstract_devices(self) -> tuple[str, ...]:
        return ("meta",)

    def lacking(self, device: str) -> frozenset[str]:
        return {"lazy": frozenset({"sparse"}), "meta": frozenset({"sparse", "numpy"})}.get(device, frozenset())

    def start_device(self, device: str) -> None:
        if device == "lazy":
            _start_lazy_device()

    def limit_threads(self) -> None:
        torch.set_num_threads(1)

    def synchronize(self, device: str) -> None:
        if device == "cuda":
            torch.cuda.synchronize()

    def array(self, values: Any, dtype: str, device: str) -> Any:
        return torch.tensor(values, dtype=getattr(torch, dtype), device=device)

    def numpy(self, tensor: Any) -> Any:
        tensor = tensor.detach().cpu().resolve_conj().resolve_neg()
        if tensor.is_complex():
            tensor = tensor.to(torch.complex128)
        elif tensor.is_floating_point():
            tensor = tensor.double()
        return tensor.numpy().copy()

    def describe(self, tensor: Any) -> Description:
        return Description(tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."), tensor.device.type)

    def is_tensor(self, value: Any) -> bool:
        return isinstance(value, torch.Tensor)

    def vjp(
        self, f: Callable[..., Any], primals: Sequence[Any], *, track: Sequence[bool] | None = None
    ) -> tuple[Tensors, Pullback]:
        tracked = [True] * len(primals) if track is None else list(track)
        # A primal that already has a history stays in the enclosing graph; any other becomes a leaf of a new one.
        leaves = [x if x.requires_grad else x.detach().requires_grad_(t) for x, t in zip(primals, tracked, strict=True)]
        with torch.enable_grad():
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
                torch.autograd.grad(
                    starts, inputs, given, retain_graph=True, create_graph=differentiable, allow_unused=True
                )
            )
            return tuple(next(found) if w else None for w in wanted)

        return outputs, pullback

    def requires_grad(self, tensor: Any) -> bool:
        return bool(tensor.requires_grad)

    def node(self, tensor: Any) -> Any:
        return tensor.grad_fn

    def no_grad(self) -> AbstractContextManager[Any]:
        return torch.no_grad()

    def version(self, tensor: Any) -> int:
        return int(tensor._version)

    def shares_memory(self, a: Any, b: Any) -> bool:
        if 0 in (a.numel(), b.numel()) or a.untyped_storage().data_ptr() != b.untyped_storage().data_ptr():
            return False
        return bool(np.isin(_addresses(a), _addresses(b)).any())

    def fill_(self, tensor: Any, value: float) -> None:
        with torch.no_grad():
            tensor.fill_(value)

    def strides(self, tensor: Any) -> tuple[int, ...]:
        return tuple(tensor.stride())

    def backward(
        self, f: Callable[..., Any], primals: Sequence[Any], cotangents: Sequence[Any], *, track: Sequence[bool],
        initial: Sequence[Any] | None = None, differentiable: bool = False,
    ) -> Tensors:  # fmt: skip
        leaves = [x.detach().requires_grad_(t) for x, t in zip(primals, track, strict=True)]
        for leaf, grad in zip(leaves, initial or (None,) * len(leaves), strict=True):
            leaf.grad = grad
        starts, given = _connected(_tuple(f(*leaves)), cotangents)
        torch.autograd.backward(starts, given, create_graph=differentiable)
        return tuple(leaf.grad for leaf in leaves)

    def jvp(self, f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Tensors, Tensors]:
        forward_ad = torch.autograd.forward_ad
        with forward_ad.dual_level():
            duals = [x if t is None else forward_ad.make_dual(x, t) for x, t in zip(primals, tangents, strict=True)]
            unpacked = [forward_ad.unpack_dual(y) for y in _tuple(f(*duals))]
        return tuple(y.primal for y in unpacked), tuple(y.tangent for y in unpacked)

    def vmap(self, f: Callable[..., Any], in_axes: Sequence[int | None]) -> Callable[..., Any]:
        mapped: Callable[..., Any] = torch.func.vmap(f, in_dims=tuple(in_axes))
        return mapped

    def batched_vjp(
        self, f: Callable[..., Any], primals: Sequence[Any], cotangents: Sequence[Any], *, track: Sequence[bool]
    ) -> Tensors:
        leaves = [x.detach().requires_grad_(t) for x, t in zip(primals, track, strict=True)]
        starts, given = _connected(_tuple(f(*leaves)), cotangents)
        inputs = [x for x, t in zip(leaves, track, strict=True) if t]
        found = iter(torch.autograd.grad(starts, inputs, given, allow_unused=True, is_grads_batched=True))
        return tuple(next(found) if t else None for t in track)

    def compile(self, f: Callable[..., Any]) -> Callable[..., Any]:
        torch._dynamo.reset()
        compiled: Callable[..., Any] = torch.compile(f, backend="aot_eager", dynamic=False)
        return compiled

    def autocast(self, device: str, dtype: str) -> AbstractContextManager[Any]:
        return torch.autocast(device, dtype=getattr(torch, dtype))

    def offload(self) -> AbstractContextManager[Any]:
        hooks = torch.autograd.graph.saved_tensors_hooks
        return hooks(lambda x: (x.device, x.detach().cpu().clone()), lambda packed: packed[1].to(packed[0]))

    def checkpoint(self, f: Callable[..., Any]) -> Callable[..., Any]:
        from torch.utils.checkpoint import checkpoint

        return lambda *primals: checkpoint(f, *primals, use_reentrant=False)
