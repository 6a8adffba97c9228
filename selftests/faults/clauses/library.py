"""Faults of operators of torch.library and of the old base classes."""

from __future__ import annotations

import torch
from torch._library import utils
from torch.autograd.function import InplaceFunction

from autograd_conformance.selftests.faults import plants
from autograd_conformance.selftests.faults.clauses.definitions import Fix
from autograd_conformance.selftests.faults.planting import fault


def _is_operator(ctx):
    return type(ctx).__name__.startswith("GeneratedBackwardFor_")


def _last_gets_none(ctx, cotangents):
    return (*cotangents[:-1], None) if _is_operator(ctx) and not cotangents[-1].any() else cotangents


def _flag_too_many(ctx, cotangents):
    """torch itself leaves out the last flag of an operator."""
    if _is_operator(ctx):
        ctx.needs_input_grad = (*ctx.needs_input_grad, False)
    return cotangents


_REFUSED_AT_ONCE = plants.where(
    lambda cls, *_: cls.__name__.startswith("GeneratedBackwardFor_autograd_conformance_no_formula"),
    plants.raising("no_formula: no formula was registered, see register_autograd"),
)

FAULTS = (
    fault(
        "LIB-01",
        plants.wrapped(utils, "fill_defaults", plants.gives(lambda filled: (filled[0], {}))),
        "keyword_only_inputs",
    ),
    fault(
        "LIB-01: arguments left out stay out",
        plants.put(utils, "fill_defaults", lambda _, args, kwargs: (args, kwargs)),
        "in setup_context",
    ),
    fault("LIB-01: backward gets None for an unused output", plants.cotangents(_last_gets_none), "cotangents"),
    fault("LIB-01: in backward there is a flag too many", plants.cotangents(_flag_too_many), "in backward"),
    fault("LIB-02", plants.around_backward(plants.rescued(lambda _, g, *__: (torch.zeros_like(g), None))), "no error"),
    fault("LIB-02: a call without a formula is refused at once", plants.around_apply(_REFUSED_AT_ONCE)),
    fault(
        "LIB-02: an operator that changes an input can have a formula",
        plants.put(utils, "is_functional_schema", lambda *_, **__: True),
        "no error",
    ),
    fault(
        "LIB-02: an operator may return an alias",
        plants.put(utils, "_c_check_aliasing_constraint", lambda *_, **__: None),
    ),
    fault(
        "LEGACY-01",
        plants.around_apply(
            plants.where(lambda cls, *_: issubclass(cls, InplaceFunction), plants.gives(plants.detached))
        ),
    ),
    fault(
        "LEGACY-01: NestedIOFunction is no Function",
        plants.put(torch.autograd.function, "NestedIOFunction", type("NestedIOFunction", (), {})),
    ),
)

FIXES = (
    # An operator with three inputs, of which the last may have been left out, has one flag for each.
    Fix(
        "LIB-01",
        plants.ctx_attribute(
            "needs_input_grad", lambda ctx, flags: (*flags[:2], False) if _is_operator(ctx) else flags
        ),
        variant="needs_input_grad",
    ),
)
