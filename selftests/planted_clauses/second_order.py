"""Faults of derivatives of derivatives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch.autograd.function import BackwardCFunction

from autograd_conformance.selftests.planted_clauses.definitions import Fix
from autograd_conformance.selftests.planted_clauses.intercept import (
    around_apply,
    around_backward,
    around_method,
    ctx_attribute,
    replaced,
)
from autograd_conformance.selftests.planting import Fault


@contextmanager
def _heeds_the_caller() -> Iterator[None]:
    modes = [True]

    def grad(original: Any) -> Any:
        def noting(*args: Any, **options: Any) -> Any:
            modes.append(torch.is_grad_enabled())
            try:
                return original(*args, **options)
            finally:
                modes.pop()

        return noting

    def backward(original: Any, ctx: Any, *cotangents: Any) -> Any:
        with torch.set_grad_enabled(modes[-1] and torch.is_grad_enabled()):
            return original(ctx, *cotangents)

    with replaced(torch.autograd, "grad", grad), around_backward(backward):
        yield


def _records_always(original: Any, ctx: Any, *cotangents: Any) -> Any:
    with torch.enable_grad():
        return original(ctx, *cotangents)


@contextmanager
def _off_in_backward() -> Iterator[None]:
    accumulates = [False]

    def engine(original: Any) -> Any:
        def entered(*args: Any, accumulate_grad: bool, **options: Any) -> Any:
            accumulates.append(accumulate_grad)
            try:
                return original(*args, accumulate_grad=accumulate_grad, **options)
            finally:
                accumulates.pop()

        return entered

    def run(original: Any, ctx: Any, *cotangents: Any) -> Any:
        with torch.set_grad_enabled(torch.is_grad_enabled() and not accumulates[-1]):
            return original(ctx, *cotangents)

    with replaced(torch.autograd, "_engine_run_backward", engine), around_backward(run):
        yield


def _detaches_outputs_of_separate(ctx: Any, saved: Any) -> Any:
    separate = ctx._forward_cls.setup_context is not torch.autograd.Function.setup_context
    return _detaches_outputs(ctx, saved) if separate else saved


def _detaches_outputs(ctx: Any, saved: Any) -> Any:
    return tuple(t.detach() if t is not None and t.grad_fn is ctx else t for t in saved)


def _detached_cotangents(original: Any, ctx: Any, *cotangents: Any) -> Any:
    return original(ctx, *(g if g is None else g.detach() for g in cotangents))


def _records_forward(original: Any, *args: Any) -> Any:
    with torch.enable_grad():
        return original(*args)


def _refuses_intermediates() -> AbstractContextManager[Any]:
    def read(ctx: Any, saved: Any) -> Any:
        if any(t is not None and t.grad_fn is not ctx and not t.requires_grad for t in saved):
            raise RuntimeError("a saved tensor is neither an input nor an output")
        return saved

    return ctx_attribute("saved_tensors", read)


def _first_cotangent_alone(original: Any, ctx: Any, *cotangents: Any) -> Any:
    if not torch.is_grad_enabled():
        return original(ctx, *cotangents)
    rest = (g if g is None else torch.zeros_like(g) for g in cotangents[1:])
    return original(ctx, *cotangents[:1], *rest)


def _constant_further_cotangents(original: Any, ctx: Any, *cotangents: Any) -> Any:
    return original(ctx, *cotangents[:1], *(g if g is None else g.detach() for g in cotangents[1:]))


@contextmanager
def _within_backward(change: Callable[..., Any]) -> Iterator[None]:
    """``F.apply(*args)`` is ``change(original, F, *args)`` if a backward calls it."""
    depth = []

    def backward(original: Any, ctx: Any, *cotangents: Any) -> Any:
        depth.append(ctx)
        try:
            return original(ctx, *cotangents)
        finally:
            depth.pop()

    def apply(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
        return change(original, cls, *args, **kwargs) if depth else original(cls, *args, **kwargs)

    with around_backward(backward), around_apply(apply):
        yield


def _unrecorded(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
    with torch.no_grad():
        return original(cls, *args, **kwargs)


def _of_constants(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Only the first argument keeps its history."""
    rest = (x.detach() if isinstance(x, torch.Tensor) else x for x in args[1:])
    return original(cls, *args[:1], *rest, **kwargs)


def _all_require_grad(original: Any, ctx: Any, *cotangents: Any) -> Any:
    found = original(ctx, *cotangents)
    gradients = found if isinstance(found, tuple) else (found,)
    if torch.is_grad_enabled():
        gradients = tuple(g if g is None or g.requires_grad else g.detach().requires_grad_() for g in gradients)
    return gradients


def _none_requires_grad(original: Any, ctx: Any, *cotangents: Any) -> Any:
    """A backward one of whose gradients has no history gives no gradient a history."""
    found = original(ctx, *cotangents)
    gradients = found if isinstance(found, tuple) else (found,)
    if all(g is None or g.requires_grad for g in gradients):
        return found
    return tuple(g if g is None else g.detach() for g in gradients)


def _without_history(ctx: Any, name: str, value: Any) -> None:
    object.__setattr__(ctx, name, value.detach() if isinstance(value, torch.Tensor) else value)


FAULTS = (
    Fault("DBL-01", _heeds_the_caller),
    Fault("DBL-01", lambda: around_backward(_records_always), words="grad mode is always on in backward"),
    Fault("DBL-02", lambda: ctx_attribute("saved_tensors", _detaches_outputs), neighbours=("DBL-04",)),
    Fault("DBL-01", _off_in_backward, words="backward with create_graph runs with grad mode off"),
    Fault(
        "DBL-02",
        lambda: ctx_attribute("saved_tensors", _detaches_outputs_of_separate),
        neighbours=("DBL-04",),
        words="an output saved in setup_context has no history",
    ),
    Fault(
        "DBL-02",
        lambda: around_backward(_detached_cotangents),
        neighbours=("DBL-04", "DBL-05"),
        words="cotangents arrive without a history",
    ),
    Fault("DBL-03", lambda: around_method("forward", _records_forward), neighbours=("DBL-05",)),
    Fault("DBL-03", _refuses_intermediates, neighbours=("DBL-06",), words="saving an intermediate raises"),
    Fault("DBL-04", lambda: around_backward(_first_cotangent_alone), neighbours=("DBL-07",)),
    Fault(
        "DBL-04",
        lambda: around_backward(_constant_further_cotangents),
        words="further cotangents arrive without a history",
    ),
    Fault("DBL-05", lambda: around_method("forward", _records_forward), neighbours=("DBL-03",)),
    Fault("DBL-06", lambda: _within_backward(_unrecorded)),
    Fault(
        "DBL-06",
        lambda: _within_backward(_of_constants),
        words="a Function called within a backward sees the saved tensors as constants",
    ),
    Fault("DBL-07", lambda: around_backward(_all_require_grad), neighbours=("DBL-01", "DBL-03")),
    Fault(
        "DBL-07",
        lambda: around_backward(_none_requires_grad),
        neighbours=("DBL-01",),
        words="one gradient without a history takes it from all",
    ),
)

FIXES = (Fix("DBL-05", lambda: patch.object(BackwardCFunction, "__setattr__", _without_history)),)
