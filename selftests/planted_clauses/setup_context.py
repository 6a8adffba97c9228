"""Faults of setup_context."""

from __future__ import annotations

import inspect
from unittest.mock import patch

import torch

from autograd_conformance.selftests import plants
from autograd_conformance.selftests.planted_clauses.definitions import Fix
from autograd_conformance.selftests.planted_clauses.saving import own_detached, reading
from autograd_conformance.selftests.planting import fault
from autograd_conformance.selftests.plants import among, separate, tracked, tupled


def _setup(method):
    """A Function's setup_context is ``method(original, ctx, inputs, output)``."""
    return plants.around_static("setup_context", method)


def _given(change):
    """A Function's setup_context gets ``change(inputs, output)``."""
    return _setup(lambda original, ctx, inputs, output: original(ctx, *change(inputs, output)))


def _copies_inputs(inputs, output):
    copies = tuple(x.clone() if isinstance(x, torch.Tensor) and not x.requires_grad else x for x in inputs)
    return copies, output


def _unwraps_one(inputs, output):
    return inputs, output[0] if isinstance(output, tuple) and len(output) == 1 else output


def _twice(original, ctx, inputs, output):
    original(ctx, inputs, output)
    return original(ctx, inputs, output)


def _heeds_what_it_returns():
    returned = []

    def setup(original, *given):
        returned[:] = [original(*given)]
        return returned[0]

    def apply(original, cls, *args, **kwargs):
        returned[:] = []
        found = original(cls, *args, **kwargs)
        return returned[0] if returned and returned[0] is not None else found

    return plants.all_of(_setup(setup), plants.around_apply(apply))


def _needs_grad_mode():
    modes = []

    def note(args):
        modes.append(torch.is_grad_enabled())
        return args

    skipped = plants.where(lambda *_: not modes[-1], lambda *_: None)
    return plants.all_of(_setup(skipped), plants.called_with(note))


def _drops_cotangents_of_saved(ctx, cotangents):
    own = {t.output_nr for t in ctx.saved_tensors if t is not None and t.grad_fn is ctx}
    return (torch.zeros_like(g) if n in own else g for n, g in enumerate(cotangents))


def _returned(inputs, output):
    return [x for x in plants.tensors_of(inputs) if among(tupled(output), x)]


def _saves_views(original, ctx, inputs, output):
    original(ctx, inputs, output)
    returned = _returned(inputs, output)
    for name in ("to_save", "saved_for_forward"):
        pending = getattr(ctx, name) or ()
        setattr(ctx, name, tuple(t.view_as(t) if among(returned, t) else t for t in pending))


def _refuses_all_returned(original, ctx, inputs, output):
    original(ctx, inputs, output)
    if _returned(inputs, output):
        raise RuntimeError("an input was returned as it is next to a setup_context")


def _binds_keywords(original, cls, *args, **kwargs):
    """Bind keyword-only arguments before apply, which then sees a forward without them."""
    mine = cls.forward
    kinds = {name: p.kind for name, p in inspect.signature(mine).parameters.items()} if separate(cls) else {}
    if inspect.Parameter.KEYWORD_ONLY not in kinds.values():
        return original(cls, *args, **kwargs)
    bound = inspect.signature(mine).bind(*args, **kwargs)
    bound.apply_defaults()
    with patch.object(cls, "forward", staticmethod(lambda *given: mine(*given, **bound.kwargs))):
        return original(cls, *bound.args)


FAULTS = (
    fault("SETUP-01", _given(_copies_inputs), neighbours=("SETUP-06",)),
    fault("SETUP-01: a list of inputs", _given(lambda inputs, output: (list(inputs), output)), "list"),
    fault("SETUP-01: setup_context runs twice", _setup(_twice), neighbours=("SETUP-04",)),
    fault("SETUP-02", _given(_unwraps_one), "Tensor", neighbours=("SETUP-03", "SETUP-07")),
    fault(
        "SETUP-02: a list of outputs",
        _given(lambda inputs, output: (inputs, list(output) if isinstance(output, tuple) else output)),
        "list",
    ),
    fault("SETUP-03", _setup(plants.under(torch.enable_grad))),
    fault("SETUP-03: what setup_context returns is the output", _heeds_what_it_returns),
    fault("SETUP-04", _setup(plants.where(lambda _, inputs, __: not any(map(tracked, inputs)), lambda *_: None))),
    fault("SETUP-04: setup_context is skipped under no_grad", _needs_grad_mode),
    fault("SETUP-05", plants.cotangents(_drops_cotangents_of_saved)),
    fault("SETUP-05: saved outputs come back detached", reading(own_detached)),
    fault("SETUP-06", _setup(_saves_views)),
    fault("SETUP-06: returning an input as it is raises", _setup(_refuses_all_returned)),
    fault(
        "SETUP-07", reading(lambda ctx, x: x.detach() if separate(ctx._forward_cls) else x), neighbours=("SETUP-05",)
    ),
    fault(
        "SETUP-07: set_materialize_grads has no effect in setup_context",
        plants.ctx_method(
            "set_materialize_grads", lambda original, ctx, value: original(ctx, value or separate(ctx._forward_cls))
        ),
    ),
)

FIXES = (Fix("SETUP-08", plants.around_apply(_binds_keywords)),)
