"""Faults of setup_context."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch.autograd import Function

from autograd_conformance.selftests.planted_clauses.definitions import Fix
from autograd_conformance.selftests.planted_clauses.intercept import (
    around_apply,
    around_backward,
    ctx_attribute,
    ctx_method,
)
from autograd_conformance.selftests.planting import Fault


def _separate(cls: Any) -> bool:
    return cls.setup_context is not Function.setup_context


def _around_setup(method: Callable[..., Any]) -> AbstractContextManager[Any]:
    """A Function's setup_context is ``method(original, ctx, inputs, output)``."""

    def apply(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
        if not _separate(cls):
            return original(cls, *args, **kwargs)
        mine = cls.setup_context
        with patch.object(cls, "setup_context", staticmethod(lambda *given: method(mine, *given))):
            return original(cls, *args, **kwargs)

    return around_apply(apply)


def _copies_inputs(original: Any, ctx: Any, inputs: Any, output: Any) -> Any:
    copies = (x.clone() if isinstance(x, torch.Tensor) and not x.requires_grad else x for x in inputs)
    return original(ctx, tuple(copies), output)


def _passes_a_list(original: Any, ctx: Any, inputs: Any, output: Any) -> Any:
    return original(ctx, list(inputs), output)


def _twice(original: Any, ctx: Any, inputs: Any, output: Any) -> Any:
    original(ctx, inputs, output)
    return original(ctx, inputs, output)


def _unwraps_one(original: Any, ctx: Any, inputs: Any, output: Any) -> Any:
    single = isinstance(output, tuple) and len(output) == 1
    return original(ctx, inputs, output[0] if single else output)


def _lists_outputs(original: Any, ctx: Any, inputs: Any, output: Any) -> Any:
    return original(ctx, inputs, list(output) if isinstance(output, tuple) else output)


def _records(original: Any, *given: Any) -> Any:
    with torch.enable_grad():
        return original(*given)


@contextmanager
def _heeds_what_it_returns() -> Iterator[None]:
    returned: list[Any] = []

    def setup(original: Any, *given: Any) -> Any:
        returned[:] = [original(*given)]
        return returned[0]

    def apply(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
        returned[:] = []
        result = original(cls, *args, **kwargs)
        return returned[0] if returned and returned[0] is not None else result

    with _around_setup(setup), around_apply(apply):
        yield


def _needs_a_leaf(original: Any, ctx: Any, inputs: Any, output: Any) -> Any:
    if any(isinstance(x, torch.Tensor) and x.requires_grad for x in inputs):
        return original(ctx, inputs, output)
    return None


@contextmanager
def _needs_grad_mode() -> Iterator[None]:
    modes = []

    def apply(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
        modes.append(torch.is_grad_enabled())
        return original(cls, *args, **kwargs)

    def setup(original: Any, *given: Any) -> Any:
        return original(*given) if modes[-1] else None

    with _around_setup(setup), around_apply(apply):
        yield


def _drops_cotangents_of_saved(original: Any, ctx: Any, *cotangents: Any) -> Any:
    own = {t.output_nr for t in ctx.saved_tensors if t is not None and t.grad_fn is ctx}
    return original(ctx, *(torch.zeros_like(g) if n in own else g for n, g in enumerate(cotangents)))


def _detaches_own(ctx: Any, saved: Any) -> Any:
    return tuple(t.detach() if t is not None and t.grad_fn is ctx else t for t in saved)


def _detaches_in_separate(ctx: Any, saved: Any) -> Any:
    return tuple(t if t is None else t.detach() for t in saved) if _separate(ctx._forward_cls) else saved


def _as_is(inputs: Any, output: Any) -> list[Any]:
    outputs = output if isinstance(output, tuple) else (output,)
    return [x for x in inputs if isinstance(x, torch.Tensor) and any(x is y for y in outputs)]


def _saves_views(original: Any, ctx: Any, inputs: Any, output: Any) -> None:
    original(ctx, inputs, output)
    returned = _as_is(inputs, output)
    for name in ("to_save", "saved_for_forward"):
        pending = getattr(ctx, name) or ()
        setattr(ctx, name, tuple(t.view_as(t) if any(t is x for x in returned) else t for t in pending))


def _refuses_all_returned(original: Any, ctx: Any, inputs: Any, output: Any) -> None:
    original(ctx, inputs, output)
    if _as_is(inputs, output):
        raise RuntimeError("an input was returned as it is next to a setup_context")


def _materializes_in_separate(original: Any, ctx: Any, value: Any) -> None:
    original(ctx, value or _separate(ctx._forward_cls))


def _binds_keywords(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Bind keyword-only arguments before apply, which then sees a forward without them."""
    mine = cls.forward
    kinds = {name: p.kind for name, p in inspect.signature(mine).parameters.items()} if _separate(cls) else {}
    if inspect.Parameter.KEYWORD_ONLY not in kinds.values():
        return original(cls, *args, **kwargs)
    bound = inspect.signature(mine).bind(*args, **kwargs)
    bound.apply_defaults()
    with patch.object(cls, "forward", staticmethod(lambda *given: mine(*given, **bound.kwargs))):
        return original(cls, *bound.args)


FAULTS = (
    Fault("SETUP-01", lambda: _around_setup(_copies_inputs), neighbours=("SETUP-06",)),
    Fault("SETUP-01", lambda: _around_setup(_passes_a_list), says=("list",), words="a list of inputs"),
    Fault("SETUP-01", lambda: _around_setup(_twice), words="setup_context runs twice", neighbours=("SETUP-04",)),
    Fault("SETUP-02", lambda: _around_setup(_unwraps_one), says=("Tensor",), neighbours=("SETUP-03", "SETUP-07")),
    Fault("SETUP-02", lambda: _around_setup(_lists_outputs), says=("list",), words="a list of outputs"),
    Fault("SETUP-03", lambda: _around_setup(_records)),
    Fault("SETUP-03", _heeds_what_it_returns, words="what setup_context returns is the output"),
    Fault("SETUP-04", lambda: _around_setup(_needs_a_leaf)),
    Fault("SETUP-04", _needs_grad_mode, words="setup_context is skipped under no_grad"),
    Fault("SETUP-05", lambda: around_backward(_drops_cotangents_of_saved)),
    Fault("SETUP-05", lambda: ctx_attribute("saved_tensors", _detaches_own), words="saved outputs come back detached"),
    Fault("SETUP-06", lambda: _around_setup(_saves_views)),
    Fault("SETUP-06", lambda: _around_setup(_refuses_all_returned), words="returning an input as it is raises"),
    Fault("SETUP-07", lambda: ctx_attribute("saved_tensors", _detaches_in_separate), neighbours=("SETUP-05",)),
    Fault(
        "SETUP-07",
        lambda: ctx_method("set_materialize_grads", _materializes_in_separate),
        words="set_materialize_grads has no effect in setup_context",
    ),
)

FIXES = (Fix("SETUP-08", lambda: around_apply(_binds_keywords)),)
