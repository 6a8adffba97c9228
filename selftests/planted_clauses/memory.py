"""Faults of what keeps tensors alive."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch.autograd.function import BackwardCFunction

from autograd_conformance.selftests.planted_clauses.intercept import around_backward, ctx_method, replaced
from autograd_conformance.selftests.planting import Fault


@contextmanager
def _weak_attributes() -> Iterator[None]:
    """Outputs, intermediates and inputs that are set on ctx are not kept alive by it."""
    read = BackwardCFunction.__getattribute__

    def write(ctx: Any, name: str, value: Any) -> None:
        object.__setattr__(ctx, name, weakref.ref(value) if isinstance(value, torch.Tensor) else value)

    def strong(ctx: Any, name: str) -> Any:
        value = read(ctx, name)
        return value() if isinstance(value, weakref.ref) else value

    with (
        patch.object(BackwardCFunction, "__setattr__", write, create=True),
        patch.object(BackwardCFunction, "__getattribute__", strong, create=True),
    ):
        yield


# What a fault that leaks for ever holds on to, until it is removed.
_leaked: list[Any] = []


@contextmanager
def _immortal_attributes() -> Iterator[None]:
    """Tensors that are set on ctx are never freed, not even by the garbage collector."""

    def write(ctx: Any, name: str, value: Any) -> None:
        _leaked.extend([value] if isinstance(value, torch.Tensor) else [])
        object.__setattr__(ctx, name, value)

    try:
        with patch.object(BackwardCFunction, "__setattr__", write, create=True):
            yield
    finally:
        _leaked.clear()


def _keeps_what_it_saves(save: Any, ctx: Any, *tensors: Any) -> None:
    ctx._kept = tensors
    save(ctx, *tensors)


def dropping(which: Callable[[Any, Any], bool]) -> AbstractContextManager[Any]:
    """After its backward a node drops the tensor attributes ``which(ctx, tensor)``."""

    def run(original: Any, ctx: Any, *cotangents: Any) -> Any:
        result = original(ctx, *cotangents)
        for name, value in list(vars(ctx).items()):
            if isinstance(value, torch.Tensor) and which(ctx, value):
                delattr(ctx, name)
        return result

    return around_backward(run)


@contextmanager
def _kept_until_the_end() -> Iterator[None]:
    """What nodes have read from saved_tensors lives until the backward pass is over."""
    kept: list[Any] = []

    def run(original: Any, ctx: Any, *cotangents: Any) -> Any:
        kept.append(ctx.saved_tensors)
        return original(ctx, *cotangents)

    def releasing(original: Any) -> Any:
        def differentiate(*args: Any, **options: Any) -> Any:
            try:
                return original(*args, **options)
            finally:
                kept.clear()

        return differentiate

    with ExitStack() as stack:
        for name in ("grad", "backward"):
            stack.enter_context(replaced(torch.autograd, name, releasing))
        stack.enter_context(around_backward(run))
        yield


@contextmanager
def _one_node_behind() -> Iterator[None]:
    """Saved tensors are released when the next node is done, not their own."""
    kept: list[Any] = []

    def run(original: Any, ctx: Any, *cotangents: Any) -> Any:
        mine = ctx.saved_tensors
        result = original(ctx, *cotangents)
        kept[:] = [mine]
        return result

    try:
        with around_backward(run):
            yield
    finally:
        kept.clear()


def _silently(original: Any) -> Any:
    def backward(*args: Any, **options: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return original(*args, **options)

    return backward


def _also_warning(original: Any) -> Any:
    def grad(*args: Any, create_graph: bool = False, **options: Any) -> Any:
        if create_graph:
            warnings.warn("grad() with create_graph=True makes a reference cycle", stacklevel=2)
        return original(*args, create_graph=create_graph, **options)

    return grad


FAULTS = (
    Fault("MEM-01", _weak_attributes, neighbours=("MEM-03", "MEM-05")),
    Fault(
        "MEM-01",
        _immortal_attributes,
        neighbours=("MEM-03", "MEM-05"),
        words="the cycle is never collected",
    ),
    Fault("MEM-02", lambda: ctx_method("save_for_backward", _keeps_what_it_saves), neighbours=("MEM-04",)),
    Fault("MEM-03", lambda: dropping(lambda ctx, tensor: tensor.grad_fn is ctx)),
    Fault("MEM-04", _kept_until_the_end),
    Fault("MEM-04", _one_node_behind, neighbours=("MEM-02",), words="released one node later"),
    Fault("MEM-05", lambda: dropping(lambda ctx, tensor: tensor.grad_fn is not ctx), neighbours=("MEM-03",)),
    Fault("MEM-06", lambda: replaced(torch.autograd, "backward", _silently)),
    Fault("MEM-06", lambda: replaced(torch.autograd, "grad", _also_warning), words="grad warns too"),
)
