"""Faults of operators of torch.library and of the old base classes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch._library import utils
from torch.autograd.function import InplaceFunction

from autograd_conformance.selftests.planted_clauses.definitions import Fix
from autograd_conformance.selftests.planted_clauses.intercept import (
    around_apply,
    around_backward,
    ctx_attribute,
    replaced,
)
from autograd_conformance.selftests.planting import Fault


def _filling(change: Callable[[Any, Any], Any]) -> AbstractContextManager[Any]:
    """What setup_context of an operator is given is ``change(positional, keyword-only)`` of the filled arguments."""

    def filling(original: Any) -> Any:
        return lambda schema, args, kwargs: change(*original(schema, args, kwargs))

    return replaced(utils, "fill_defaults", filling)


def _fills_nothing(_: Any) -> Any:
    return lambda _, args, kwargs: (args, kwargs)


def _is_operator(ctx: Any) -> bool:
    return type(ctx).__name__.startswith("GeneratedBackwardFor_")


def _last_gets_none(original: Any, ctx: Any, *cotangents: Any) -> Any:
    swapped = _is_operator(ctx) and not cotangents[-1].any()
    return original(ctx, *cotangents[:-1], None) if swapped else original(ctx, *cotangents)


def _flag_too_many(original: Any, ctx: Any, *cotangents: Any) -> Any:
    """torch itself leaves out the last flag of an operator."""
    if _is_operator(ctx):
        ctx.needs_input_grad = (*ctx.needs_input_grad, False)
    return original(ctx, *cotangents)


def _zeros_without_formula(original: Any, ctx: Any, *cotangents: Any) -> Any:
    try:
        return original(ctx, *cotangents)
    except RuntimeError:
        return torch.zeros_like(cotangents[0]), None


def _refused_at_once(original: Any, cls: Any, *args: Any) -> Any:
    if cls.__name__.startswith("GeneratedBackwardFor_autograd_conformance_no_formula"):
        raise RuntimeError("no_formula: no formula was registered, see register_autograd")
    return original(cls, *args)


def _detached(original: Any, cls: Any, *args: Any) -> Any:
    outputs = original(cls, *args)
    if not issubclass(cls, InplaceFunction):
        return outputs
    return tuple(y.detach() if isinstance(y, torch.Tensor) else y for y in outputs)


def _one_flag_for_each_input(ctx: Any, flags: Any) -> Any:
    """The flags of an operator with three inputs, of which the last may have been left out."""
    return (*flags[:2], False) if _is_operator(ctx) else flags


FAULTS = (
    Fault("LIB-01", lambda: _filling(lambda args, _: (args, {})), says=("keyword_only_inputs",)),
    Fault(
        "LIB-01",
        lambda: replaced(utils, "fill_defaults", _fills_nothing),
        says=("in setup_context",),
        words="arguments left out stay out",
    ),
    Fault(
        "LIB-01",
        lambda: around_backward(_last_gets_none),
        says=("cotangents",),
        words="backward gets None for an unused output",
    ),
    Fault(
        "LIB-01",
        lambda: around_backward(_flag_too_many),
        says=("in backward",),
        words="in backward there is a flag too many",
    ),
    Fault("LIB-02", lambda: around_backward(_zeros_without_formula), says=("no error",)),
    Fault("LIB-02", lambda: around_apply(_refused_at_once), words="a call without a formula is refused at once"),
    Fault(
        "LIB-02",
        lambda: replaced(utils, "is_functional_schema", lambda _: lambda *_, **__: True),
        says=("no error",),
        words="an operator that changes an input can have a formula",
    ),
    Fault(
        "LIB-02",
        lambda: replaced(utils, "_c_check_aliasing_constraint", lambda _: lambda *_, **__: None),
        words="an operator may return an alias",
    ),
    Fault("LEGACY-01", lambda: around_apply(_detached)),
    Fault(
        "LEGACY-01",
        lambda: replaced(torch.autograd.function, "NestedIOFunction", lambda _: type("NestedIOFunction", (), {})),
        words="NestedIOFunction is no Function",
    ),
)

FIXES = (
    Fix("LIB-01", lambda: ctx_attribute("needs_input_grad", _one_flag_for_each_input), variant="needs_input_grad"),
)
