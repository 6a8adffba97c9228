"""Faults of boxed_grads_call and clear_saved_tensors_on_access."""

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
    ctx_attribute,
    replaced,
)
from autograd_conformance.selftests.planted_clauses.once_differentiable import barred
from autograd_conformance.selftests.planting import Fault

FLAGS = ("boxed_grads_call", "clear_saved_tensors_on_access")


def _around_boxed(method: Callable[..., Any]) -> AbstractContextManager[Any]:
    """The engine's call of a boxed backward is ``method(original, ctx, grads)``."""

    def change(original: Any) -> Any:
        return lambda ctx, grads: method(original, ctx, grads)

    return replaced(BackwardCFunction, "apply_boxed", change)


def _tuples(original: Any, ctx: Any, grads: Any) -> Any:
    return original(ctx, tuple(grads))


def _keeps_them(original: Any, ctx: Any, grads: Any) -> Any:
    held = list(grads)
    found = original(ctx, grads)
    held.clear()
    return found


def _keeps_the_last(original: Any, ctx: Any, grads: Any) -> Any:
    held = list(grads[1:])
    found = original(ctx, grads)
    held.clear()
    return found


def _puts_none_last(original: Any, ctx: Any, grads: Any) -> Any:
    grads.sort(key=lambda g: g is None)
    return original(ctx, grads)


def _by_truth(which: Callable[..., bool]) -> AbstractContextManager[Any]:
    """The flags for which ``which(value, args)`` holds count by their truth."""

    def apply(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
        values = {flag: getattr(cls, flag, False) for flag in FLAGS}
        changed = {flag: bool(value) for flag, value in values.items() if which(value, args)}
        with patch.multiple(cls, create=True, **changed) if changed else patch.object(cls, "unused", 0, create=True):
            return original(cls, *args, **kwargs)

    return around_apply(apply)


def _unrecorded(_: Any, args: Any) -> bool:
    return not any(isinstance(x, torch.Tensor) and x.requires_grad for x in args)


def _cleared(ctx: Any) -> bool:
    return getattr(ctx._forward_cls, "clear_saved_tensors_on_access", False) is True


def _holds(ctx: Any, saved: Any) -> Any:
    if _cleared(ctx):
        ctx.held = saved
    return saved


def _holds_outputs(ctx: Any, saved: Any) -> Any:
    if _cleared(ctx):
        ctx.held = [t for t in saved if t.grad_fn is ctx]
    return saved


@contextmanager
def _remembering(allowed: Callable[[Any], bool]) -> Iterator[None]:
    """Copies of cleared saved tensors come back where ``allowed(ctx)`` holds; ``ctx.passes`` counts the backwards."""
    inherited = next(vars(kind)["saved_tensors"] for kind in BackwardCFunction.__mro__ if "saved_tensors" in vars(kind))

    def read(ctx: Any) -> Any:
        copies = getattr(ctx, "copies", None)
        if copies is not None and allowed(ctx):
            return copies
        saved = inherited.__get__(ctx, type(ctx))
        if _cleared(ctx):
            ctx.copies = tuple(t.detach().clone() for t in saved)
            ctx.read_in = getattr(ctx, "passes", 0)
        return saved

    def backward(original: Any, ctx: Any, *cotangents: Any) -> Any:
        ctx.passes, ctx.running = getattr(ctx, "passes", 0) + 1, True
        try:
            return original(ctx, *cotangents)
        finally:
            ctx.running = False

    with patch.object(BackwardCFunction, "saved_tensors", property(read), create=True), around_backward(backward):
        yield


def _in_the_same_pass(ctx: Any) -> bool:
    return ctx.read_in == getattr(ctx, "passes", 0) or ctx.read_in == 0


def _outside_backward(ctx: Any) -> bool:
    return not getattr(ctx, "running", False)


def _in_a_later_pass(ctx: Any) -> bool:
    return 0 < ctx.read_in < ctx.passes


def _zeros_for_errors(original: Any, ctx: Any, *cotangents: Any) -> Any:
    """A pass that reads cleared saved tensors again gives zeros, if an earlier pass read them."""
    again, ctx.ran = getattr(ctx, "ran", False), True
    try:
        return original(ctx, *cotangents)
    except RuntimeError:
        if not (again and _cleared(ctx)):
            raise
        return tuple(torch.zeros_like(g) for g in cotangents)


def _tuples_later(original: Any, ctx: Any, grads: Any) -> Any:
    again, ctx.ran = getattr(ctx, "ran", False), True
    return original(ctx, tuple(grads) if again else grads)


def _when_recorded(ctx: Any) -> bool:
    return getattr(ctx, "running", False) and torch.is_grad_enabled() and ctx.read_in == ctx.passes


FAULTS = (
    Fault("BOX-01", lambda: _around_boxed(_tuples), says=("tuple",), neighbours=("BOX-02",)),
    Fault("BOX-01", lambda: _around_boxed(_puts_none_last), words="undefined gradients move to the end of the list"),
    Fault("BOX-01", lambda: _around_boxed(_tuples_later), says=("tuple",), words="a second pass gets a tuple"),
    Fault("BOX-02", lambda: _around_boxed(_keeps_them)),
    Fault("BOX-02", lambda: _around_boxed(_keeps_the_last), words="only the first gradient is freed"),
    Fault("BOX-03", lambda: _by_truth(lambda value, _: not isinstance(value, bool))),
    Fault("BOX-03", lambda: _by_truth(lambda value, _: value is None), words="a flag of None counts as False"),
    Fault("BOX-03", lambda: _by_truth(_unrecorded), words="flags are looked at in recorded calls alone"),
    Fault("CLEAR-01", lambda: ctx_attribute("saved_tensors", _holds)),
    Fault("CLEAR-01", lambda: ctx_attribute("saved_tensors", _holds_outputs), words="saved outputs are kept"),
    Fault("CLEAR-02", lambda: _remembering(_in_the_same_pass), neighbours=("CLEAR-03",)),
    Fault("CLEAR-02", lambda: _remembering(_outside_backward), words="a second reading from grad_fn is allowed"),
    Fault("CLEAR-02", lambda: _remembering(_when_recorded), words="a second reading under create_graph is allowed"),
    Fault("CLEAR-03", lambda: _remembering(_in_a_later_pass)),
    Fault("CLEAR-03", lambda: around_backward(_zeros_for_errors), words="a second pass gives zeros"),
)

FIXES = (Fix("BOX-04", barred),)
