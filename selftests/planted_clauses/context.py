"""Faults of ctx: which object it is, what is stored on it, and its own attributes."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch.autograd.function import BackwardCFunction

from autograd_conformance.selftests.planted_clauses.intercept import (
    around_apply,
    around_backward,
    ctx_method,
    replaced,
)
from autograd_conformance.selftests.planting import Fault


def _attribute(name: str, read: Callable[[Any], Any], write: Callable[[Any, Any], None] | None = None) -> Any:
    inherited = getattr(BackwardCFunction, name)
    changed = property(read, write or inherited.__set__, inherited.__delete__)
    return patch.object(BackwardCFunction, name, changed, create=True)


def _reading(name: str, value: Callable[[Any, Any], Any]) -> Any:
    """Reading ``ctx.name`` gives ``value(ctx, what it is)``."""
    inherited = getattr(BackwardCFunction, name)
    return _attribute(name, lambda ctx: value(ctx, inherited.__get__(ctx)))


def _around_setattr(change: Callable[[Callable[[Any], None], str, Any], None]) -> AbstractContextManager[Any]:
    """An assignment to an attribute of ctx is ``change(assign, name, value)``."""

    def assigned(ctx: Any, name: str, value: Any) -> None:
        change(lambda v: object.__setattr__(ctx, name, v), name, value)

    return patch.object(BackwardCFunction, "__setattr__", assigned, create=True)


def _calls_backward_with(other: Callable[[Any], Any]) -> AbstractContextManager[Any]:
    return around_backward(lambda _, ctx, *cotangents: ctx._forward_cls.backward(other(ctx), *cotangents))


class _Wrapper:
    def __init__(self, ctx: Any) -> None:
        self.__dict__["ctx"] = ctx

    def __getattr__(self, name: str) -> Any:
        return getattr(self.ctx, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.ctx, name, value)


class _Bare(_Wrapper):
    def __getattr__(self, name: str) -> Any:
        # The body of a generated Function needs its own attribute.
        if name in self.ctx.__dict__ and name != "count":
            raise AttributeError(name)
        return getattr(self.ctx, name)


def _forgets(original: Any, ctx: Any, *cotangents: Any) -> Any:
    found = original(ctx, *cotangents)
    # The body of a generated Function needs its own attribute in the next pass.
    for name in ctx.__dict__.keys() - {"count"}:
        delattr(ctx, name)
    return found


def _forgets_what_backward_stores(original: Any, ctx: Any, *cotangents: Any) -> Any:
    before = dict(ctx.__dict__)
    found = original(ctx, *cotangents)
    ctx.__dict__.clear()
    ctx.__dict__.update(before)
    return found


def _first_call_counts(name: str, attribute: str) -> AbstractContextManager[Any]:
    def method(original: Any, ctx: Any, *tensors: Any) -> None:
        if getattr(ctx, attribute) is None:
            original(ctx, *tensors)

    return ctx_method(name, method)


def _adds_up(name: str, attribute: str) -> AbstractContextManager[Any]:
    return ctx_method(name, lambda original, ctx, *tensors: original(ctx, *(getattr(ctx, attribute) or ()), *tensors))


def _assignable_saved_tensors() -> AbstractContextManager[Any]:
    inherited = BackwardCFunction.saved_tensors

    def read(ctx: Any) -> Any:
        return ctx.__dict__["saved"] if "saved" in ctx.__dict__ else inherited.__get__(ctx)  # type: ignore[attr-defined]

    return _attribute("saved_tensors", read, lambda ctx, value: ctx.__dict__.update(saved=value))


def _lenient_materialize_grads() -> AbstractContextManager[Any]:
    inherited = BackwardCFunction.materialize_grads  # type: ignore[attr-defined]
    return _attribute("materialize_grads", inherited.__get__, lambda ctx, value: inherited.__set__(ctx, bool(value)))


def _ignores_hooks_of_forward(original: Any, ctx: Any, hook: Any) -> Any:
    handle = original(ctx, hook)
    if not torch.is_grad_enabled():
        handle.remove()
    return handle


def _nothing_once_freed() -> AbstractContextManager[Any]:
    inherited = BackwardCFunction.saved_tensors

    def read(ctx: Any) -> Any:
        try:
            return inherited.__get__(ctx)  # type: ignore[attr-defined]
        except RuntimeError:
            return ()

    return _attribute("saved_tensors", read)


@contextmanager
def _keeps_to_save() -> Iterator[None]:
    kept: list[Any] = [None]

    def save(original: Any, ctx: Any, *tensors: Any) -> None:
        kept[0] = tensors
        original(ctx, *tensors)

    def apply(original: Any, cls: Any, *args: Any) -> Any:
        outputs = original(cls, *args)
        for y in outputs:
            if getattr(y, "grad_fn", None) is not None:
                y.grad_fn.to_save = kept[0]
        return outputs

    with ctx_method("save_for_backward", save), around_apply(apply):
        yield


def _takes_lists(assign: Any, name: str, value: Any) -> None:
    pending = name in ("to_save", "dirty_tensors", "non_differentiable")
    assign(tuple(value) if pending and isinstance(value, list) else value)


def _silent_mark_shared_storage(original: Any, ctx: Any, *pairs: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        original(ctx, *pairs)


def _keeps_the_pairs(original: Any, ctx: Any, *pairs: Any) -> None:
    original(ctx, *pairs)
    ctx.shared_pairs = pairs


def _notes_retain_variables(original: Any, ctx: Any, *cotangents: Any) -> Any:
    ctx.retain_variables = False
    return original(ctx, *cotangents)


FAULTS = (
    Fault("CTX-01", lambda: _calls_backward_with(_Bare), says=("missing",), neighbours=("CTX-02", "CTX-03", "CTX-05")),
    Fault(
        "CTX-01",
        lambda: replaced(
            BackwardCFunction,
            "apply_jvp",
            lambda _: lambda ctx, *tangents: ctx._forward_cls.jvp(_Wrapper(ctx), *tangents),
        ),
        says=("ctx of jvp",),
        words="jvp gets a wrapper around ctx",
    ),
    Fault(
        "CTX-01",
        lambda: _around_setattr(lambda assign, _, value: assign(copy.copy(value))),
        neighbours=("CTX-05", "CTX-07"),
        words="ctx keeps copies of what is stored on it",
    ),
    Fault("CTX-02", lambda: _calls_backward_with(_Wrapper), neighbours=("CTX-01",)),
    Fault("CTX-03", lambda: around_backward(_forgets), says=("missing",), neighbours=("CTX-05",)),
    Fault(
        "CTX-03",
        lambda: around_backward(_forgets_what_backward_stores),
        words="what backward stores on ctx is lost",
    ),
    Fault("CTX-04", lambda: _adds_up("save_for_backward", "to_save")),
    Fault(
        "CTX-04",
        lambda: _adds_up("mark_non_differentiable", "non_differentiable"),
        words="marks of several calls add up",
    ),
    Fault("CTX-04", lambda: _first_call_counts("mark_dirty", "dirty_tensors"), words="the first mark_dirty counts"),
    Fault(
        "CTX-04",
        lambda: _first_call_counts("save_for_forward", "saved_for_forward"),
        words="the first save_for_forward counts",
    ),
    Fault("CTX-05", _assignable_saved_tensors),
    Fault("CTX-05", _lenient_materialize_grads, says=("bool",), words="materialize_grads takes the truth of any value"),
    Fault(
        "CTX-05",
        lambda: _reading("metadata", lambda _, it: dict(it)),
        says=("metadata",),
        words="metadata is a new dict each time",
    ),
    Fault(
        "CTX-05",
        lambda: _reading("next_functions", lambda _, it: tuple(edge for edge in it if edge[0])),
        says=("next_functions",),
        words="next_functions leaves out what needs no gradient",
    ),
    Fault(
        "CTX-05",
        lambda: _reading("requires_grad", lambda *_: torch.is_grad_enabled()),
        says=("requires_grad",),
        words="requires_grad follows the mode",
    ),
    Fault(
        "CTX-05",
        lambda: ctx_method("register_hook", _ignores_hooks_of_forward),
        says=("hooks",),
        words="hooks registered in forward are lost",
    ),
    Fault(
        "CTX-05",
        lambda: _around_setattr(lambda assign, name, value: None if name == "apply" else assign(value)),
        words="ctx.apply cannot be replaced",
    ),
    Fault(
        "CTX-05",
        lambda: _around_setattr(lambda assign, name, value: None if name == "needs_input_grad" else assign(value)),
        says=("needs_input_grad",),
        words="needs_input_grad cannot be replaced",
    ),
    Fault("CTX-06", lambda: _reading("saved_tensors", lambda ctx, it: it or ctx.to_save or ())),
    Fault("CTX-06", _nothing_once_freed, words="saved_tensors of a freed node is empty"),
    Fault(
        "CTX-06",
        lambda: _reading("saved_tensors", lambda _, it: tuple(None if x is None else x.detach() for x in it)),
        neighbours=("CTX-08",),
        words="saved inputs come back as other tensors",
    ),
    Fault("CTX-07", _keeps_to_save),
    Fault(
        "CTX-07",
        lambda: _reading("dirty_tensors", lambda *_: None),
        neighbours=("CTX-05",),
        words="ctx.dirty_tensors reads None even in forward",
    ),
    Fault(
        "CTX-07",
        lambda: _around_setattr(_takes_lists),
        words="a list can be assigned as well",
    ),
    Fault("CTX-08", lambda: _attribute("saved_variables", lambda ctx: ctx.saved_tensors)),
    Fault(
        "CTX-08",
        lambda: _reading("saved_variables", lambda _, it: tuple(x for x in it if x is not None)),
        words="ctx.saved_variables leaves out None",
    ),
    Fault("CTX-09", lambda: ctx_method("mark_shared_storage", _silent_mark_shared_storage)),
    Fault("CTX-09", lambda: ctx_method("mark_shared_storage", _keeps_the_pairs), words="the pairs are kept on ctx"),
    Fault(
        "CTX-10",
        lambda: patch.object(BackwardCFunction, "_do_backward", BackwardCFunction.apply, create=True),
        says=("_do_backward",),
    ),
    Fault("CTX-10", lambda: around_backward(_notes_retain_variables), words="backward notes retain_variables"),
)
