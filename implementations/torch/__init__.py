"""PyTorch and anything that installs itself as ``torch``."""

from __future__ import annotations

import importlib
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from functools import cache, wraps
from importlib.machinery import EXTENSION_SUFFIXES
from typing import Any

import numpy as np
import torch
from packaging.specifiers import SpecifierSet
from packaging.version import Version
from torch.autograd import function as ag

from autograd_conformance.implementations import adapting
from autograd_conformance.implementations.deviations import by_release, release_of
from autograd_conformance.implementations.deviations.torch import DEVIATIONS
from autograd_conformance.implementations.protocol import (
    CAPABILITIES,
    DTYPES,
    Description,
    Environment,
    Mask,
    ScriptText,
    Tensors,
    as_tuple,
)
from autograd_conformance.implementations.torch import devices, memory, plain, settings
from autograd_conformance.implementations.torch.script import KEYWORDS, SCRIPT

# torch imports this, and sympy with it, for the first gradient: done here, once for all processes that are forked.
with suppress(ImportError):
    importlib.import_module("torch.fx.experimental.symbolic_shapes")


def _release() -> Version:
    """The release. The suffix of a fork (2.13.0+mine, 2.13.0-nv24) does not change what it has to keep."""
    found = re.match(r"\d+(\.\d+)*", release_of(torch.__version__))
    # A version without a number is taken for a new one.
    return Version(found[0] if found else "999")


RELEASE = _release()

# Other packages are imported as torch, too: by their own name, or without native code. What they lack is named where it
# is used.
_IS_TORCH = torch.__name__ == "torch" and str(getattr(getattr(torch, "_C", None), "__file__", "")).endswith(
    tuple(EXTENSION_SUFFIXES)
)
_memory: Any = memory if _IS_TORCH else plain


@cache
def _start_lazy_device() -> None:
    # A second start is an error, and the first one warns that it replaces kernels.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        importlib.import_module("torch._lazy.ts_backend").init()


def applies(releases: str) -> bool:
    """Whether this release is one of those that a specifier names."""
    return RELEASE in SpecifierSet(releases, prereleases=True)


def _documented(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of torch, which is called by the keywords that torch documents. Others need not take NumPy's."""

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        return function(*args, **{KEYWORDS.get(name, name): value for name, value in options.items()})

    return call


def _schemas(function: Any) -> list[Any]:
    """The arguments of each overload of an operator, as its schema has them."""
    function = getattr(function, "_opoverload", function)
    named = getattr(function, "overloads", None)
    overloads = [function] if named is None else [getattr(function, name) for name in named()]
    return [each._schema.arguments for each in overloads if hasattr(each, "_schema")]


def _sparse_matmul(indices: Any, values: Any, shape: tuple[int, int], b: Any) -> Any:
    return torch.sparse_coo_tensor(indices, values, shape, check_invariants=True) @ b


class TorchImplementation(adapting.RecordingImplementation):
    """Custom Functions as classes derived from `torch.autograd.Function`, called through ``apply``."""

    name = "torch"
    capabilities = frozenset(CAPABILITIES)
    deviations = tuple(d for d in DEVIATIONS if _IS_TORCH and applies(d.cause.releases))
    dtypes = DTYPES
    package = torch
    xp = adapting.namespace(
        torch,
        argmax=_documented(torch.argmax),
        argsort=_documented(torch.argsort),
        concat=_documented(torch.concat),
        copy=lambda x: x.clone(),
        expand_dims=lambda x, axis: torch.unsqueeze(x, axis),
        flip=lambda x, axis: torch.flip(x, (axis,) if isinstance(axis, int) else axis),
        from_numpy=lambda a, like: torch.from_numpy(np.array(a, order="C")).to(like.device),
        matrix_transpose=lambda x: x.mT,
        max=_documented(torch.amax),
        mean=_documented(torch.mean),
        permute_dims=torch.permute,
        sparse_matmul=_sparse_matmul,
        stack=_documented(torch.stack),
        sum=_documented(torch.sum),
        take=lambda x, indices, axis: torch.index_select(x, axis, indices),
        take_along_axis=lambda x, indices, axis: torch.take_along_dim(x, indices, axis),
        to_numpy=lambda x: x.detach().cpu().numpy(),
    )
    ag: Any = ag
    dialect = "torch"
    script: ScriptText | None = SCRIPT
    drop_in = "" if _IS_TORCH else "torch"

    def __init__(self) -> None:
        self.settings = settings.readable(settings.SETTINGS)
        self.random_states = settings.readable(settings.RANDOM_STATES)

    def environment(self) -> Environment:
        found = super().environment()
        return found if _IS_TORCH else replace(found, version=f"{found.version.partition('+')[0]}+{torch.__name__}")

    def checked(self) -> tuple[str, ...]:
        # What sits on top of torch has releases of its own.
        if not _IS_TORCH or self.package is not torch:
            return ()
        # Also those on which none of them is listed.
        return by_release(version for each in DEVIATIONS for version in each.cause.checked)

    def predates(self, release: str) -> bool:
        return _IS_TORCH and RELEASE.release < Version(release).release

    def devices(self) -> tuple[str, ...]:
        return ("cpu", *devices.accelerators())

    def simulated_devices(self) -> tuple[str, ...]:
        return ("lazy",) if _IS_TORCH else ()

    def abstract_devices(self) -> tuple[str, ...]:
        return ("meta",) if _IS_TORCH else ()

    def lacking(self, device: str) -> frozenset[str]:
        return {"lazy": frozenset({"sparse"}), "meta": frozenset({"sparse", "numpy"})}.get(device, frozenset())

    def start_device(self, device: str) -> None:
        if device == "lazy":
            _start_lazy_device()

    def operators_of(self, package: str) -> Mapping[str, tuple[Any, Callable[..., Any]]]:
        known = getattr(importlib.import_module("torch._library.custom_ops"), "OPDEFS", {})
        named = {name: (each, each._init_fn) for name, each in list(known.items()) if each._backward_fn is not None}
        return {
            name: (each, written)
            for name, (each, written) in named.items()
            if f"{written.__module__}.".startswith(f"{package}.")
        }

    def limit_threads(self) -> None:
        if hasattr(torch, "set_num_threads"):
            torch.set_num_threads(1)

    def synchronize(self, device: str) -> None:
        # Simulated and abstract devices have nothing to wait for.
        wait = getattr(getattr(torch, device, None), "synchronize", None)
        if wait is not None:
            wait()

    def redispatched(self, action: Callable[[], Any]) -> frozenset[str]:
        with torch.autograd.profiler.profile() as profile:
            action()
        pairs = [(event, event.cpu_parent) for event in profile.function_events if event.cpu_parent is not None]
        return frozenset(parent.name for event, parent in pairs if event.name in (parent.name, "aten::_to_cpu"))

    def reseed(self, seed: int = 0) -> None:
        settings.reseed(seed)

    def new_memory(self, fill: bool) -> AbstractContextManager[Any]:
        return settings.new_memory(fill)

    def array(self, values: Any, dtype: str, device: str) -> Any:
        return torch.tensor(values, dtype=getattr(torch, dtype), device=device)

    def numpy(self, tensor: Any) -> Any:
        return _memory.read(tensor)

    def unusual(self, tensor: Any) -> str:
        return _memory.kind(tensor)

    def operator(self, name: str) -> tuple[Callable[..., Any], str] | None:
        space, _, rest = name.partition("::")
        thing: Any = getattr(torch, "ops", None)
        # A name is an operator, which chooses an overload by what it gets, or with a dot one overload.
        for part in (space, *rest.split(".")):
            thing = getattr(thing, part, None)
        return (thing, f"torch.ops.{space}.{rest}") if callable(thing) else None

    def operators(self) -> Sequence[str]:
        listed = getattr(getattr(torch, "_C", None), "_dispatch_get_all_op_names", tuple)
        return tuple(listed())

    def parameters_of(self, function: Any, count: int) -> Sequence[str]:
        for arguments in _schemas(function):
            placed = [each for each in arguments if not each.kwarg_only]
            if len(placed) >= count >= sum(not each.has_default_value() for each in placed):
                return [each.name for each in placed[:count]]
        return ()

    def keywords_of(self, function: Any) -> Sequence[str]:
        found = _schemas(function)
        # Of several overloads the call chooses one.
        return [each.name for each in found[0] if each.kwarg_only] if len(found) == 1 else []

    def foretells(self, function: Any) -> bool:
        known = getattr(importlib.import_module("torch._library.custom_ops"), "OPDEFS", {})
        overload = getattr(function, "_schema", None)
        name = getattr(function, "_qualified_op_name", "") or str(getattr(overload, "name", ""))
        found = known.get(name, function)
        if getattr(found, "_abstract_fn", None) is not None:
            return True
        # What torch.library.define has defined, and register_fake completed.
        entries = getattr(importlib.import_module("torch._library.simple_registry"), "singleton", None)
        entry = getattr(entries, "_data", {}).get(name)
        return getattr(getattr(entry, "fake_impl", None), "kernel", None) is not None

    def foretold(self, f: Callable[..., Any], primals: Sequence[Any]) -> Sequence[Any]:
        with importlib.import_module("torch._subclasses.fake_tensor").FakeTensorMode() as mode:
            return as_tuple(f(*map(mode.from_tensor, primals)))

    def held_dtypes(self, function: Any) -> frozenset[str]:
        owner = getattr(function, "__self__", function)
        if isinstance(owner, type) or not hasattr(owner, "named_parameters"):
            return frozenset()
        held = [*owner.parameters(), *owner.buffers()]
        return frozenset(self.describe(x).dtype for x in held if x.is_floating_point() or x.is_complex())

    def describe(self, tensor: Any) -> Description:
        return super().describe(tensor)._replace(device=tensor.device.type)

    def is_tensor(self, value: Any) -> bool:
        return isinstance(value, torch.Tensor)

    def leaf(self, x: Any, track: bool) -> Any:
        return x.detach().requires_grad_(track)

    def recording(self) -> AbstractContextManager[Any]:
        return torch.enable_grad()

    def grad(self, outputs: Any, inputs: Any, cotangents: Any, differentiable: bool) -> Tensors:
        return torch.autograd.grad(
            outputs, inputs, cotangents, retain_graph=True, create_graph=differentiable, allow_unused=True
        )

    def accumulate(self, outputs: Any, cotangents: Any, differentiable: bool) -> None:
        torch.autograd.backward(outputs, cotangents, create_graph=differentiable)

    def requires_grad(self, tensor: Any) -> bool:
        return bool(tensor.requires_grad)

    def node(self, tensor: Any) -> Any:
        return tensor.grad_fn

    def no_grad(self) -> AbstractContextManager[Any]:
        return torch.no_grad()

    def version(self, tensor: Any) -> int:
        return int(tensor._version)

    def shares_memory(self, a: Any, b: Any) -> bool:
        return _memory.shared(a, b)

    def fill_(self, tensor: Any, value: Any) -> None:
        _memory.fill(tensor, value)

    def strides(self, tensor: Any) -> tuple[int, ...]:
        return () if _memory.kind(tensor) else tuple(tensor.stride())

    def jvp(self, f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Tensors, Tensors]:
        forward_ad = torch.autograd.forward_ad
        with forward_ad.dual_level():
            duals = [x if t is None else forward_ad.make_dual(x, t) for x, t in zip(primals, tangents, strict=True)]
            unpacked = [forward_ad.unpack_dual(y) for y in as_tuple(f(*duals))]
        return tuple(y.primal for y in unpacked), tuple(y.tangent for y in unpacked)

    def vmap(self, f: Callable[..., Any], in_axes: Sequence[int | None]) -> Callable[..., Any]:
        return torch.func.vmap(f, in_dims=tuple(in_axes))

    def batched_vjp(
        self, f: Callable[..., Any], primals: Sequence[Any], cotangents: Sequence[Any], *, track: Mask
    ) -> Tensors:
        leaves = list(map(self.leaf, primals, track))
        outputs = as_tuple(f(*leaves))
        starts, given = adapting.used(outputs, self.starting(outputs, cotangents))
        inputs = adapting.chosen(leaves, track)
        found = torch.autograd.grad(starts, inputs, given, allow_unused=True, is_grads_batched=True)
        return adapting.placed(track, found)

    def compile(self, f: Callable[..., Any]) -> Callable[..., Any]:
        torch._dynamo.reset()
        return torch.compile(f, backend="aot_eager", dynamic=False)

    def autocast(self, device: str, dtype: str) -> AbstractContextManager[Any]:
        return torch.autocast(device, dtype=getattr(torch, dtype))

    def offload(self) -> AbstractContextManager[Any]:
        hooks = torch.autograd.graph.saved_tensors_hooks
        return hooks(lambda x: (x.device, x.detach().cpu().clone()), lambda packed: packed[1].to(packed[0]))

    def checkpoint(self, f: Callable[..., Any]) -> Callable[..., Any]:
        from torch.utils.checkpoint import checkpoint

        return lambda *primals: checkpoint(f, *primals, use_reentrant=False)
