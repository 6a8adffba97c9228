"""Faults of boxed_grads_call and clear_saved_tensors_on_access."""

from __future__ import annotations

from unittest.mock import patch

import torch
from torch.autograd.function import BackwardCFunction

from autograd_conformance.selftests import plants
from autograd_conformance.selftests.planted_clauses.definitions import Fix
from autograd_conformance.selftests.planted_clauses.once_differentiable import barred
from autograd_conformance.selftests.planting import fault

FLAGS = ("boxed_grads_call", "clear_saved_tensors_on_access")


def _around_boxed(method):
    """The engine's call of a boxed backward is ``method(original, ctx, grads)``."""
    return plants.wrapped(BackwardCFunction, "apply_boxed", method)


def _keeps(which):
    """Such of the gradients are kept while backward runs."""

    def backward(original, ctx, grads):
        held = list(which(grads))
        found = original(ctx, grads)
        held.clear()
        return found

    return _around_boxed(backward)


def _puts_none_last(original, ctx, grads):
    grads.sort(key=lambda g: g is None)
    return original(ctx, grads)


def _by_truth(which):
    """The flags for which ``which(value, args)`` holds count by their truth."""

    def apply(original, cls, *args, **kwargs):
        values = {flag: getattr(cls, flag, False) for flag in FLAGS}
        changed = {flag: bool(value) for flag, value in values.items() if which(value, args)}
        with patch.multiple(cls, create=True, **changed) if changed else patch.object(cls, "unused", 0, create=True):
            return original(cls, *args, **kwargs)

    return plants.around_apply(apply)


def _cleared(ctx):
    return getattr(ctx._forward_cls, "clear_saved_tensors_on_access", False) is True


def _holds(which):
    """A node keeps such of its cleared saved tensors."""

    def read(ctx, saved):
        if _cleared(ctx):
            ctx.held = [t for t in saved if which(ctx, t)]
        return saved

    return plants.ctx_attribute("saved_tensors", read)


def _remembering(allowed):
    """Copies of cleared saved tensors come back where ``allowed(ctx)`` holds; ``ctx.passes`` counts the backwards."""

    def read(original, ctx):
        copies = getattr(ctx, "copies", None)
        if copies is not None and allowed(ctx):
            return copies
        saved = original(ctx)
        if _cleared(ctx):
            ctx.copies = tuple(t.detach().clone() for t in saved)
            ctx.read_in = getattr(ctx, "passes", 0)
        return saved

    def backward(original, ctx, *cotangents):
        ctx.passes, ctx.running = getattr(ctx, "passes", 0) + 1, True
        try:
            return original(ctx, *cotangents)
        finally:
            ctx.running = False

    return lambda: plants.all_of(plants.ctx_property("saved_tensors", read), plants.around_backward(backward))


def _is_running(ctx):
    return getattr(ctx, "running", False)


def _ran(ctx):
    """Whether the backward ran before."""
    again, ctx.ran = getattr(ctx, "ran", False), True
    return again


def _zeros_for_errors(original, ctx, *cotangents):
    """A pass that reads cleared saved tensors again gives zeros, if an earlier pass read them."""
    zeros = plants.rescued(lambda _, *given: tuple(map(torch.zeros_like, given)))
    return (zeros if _ran(ctx) and _cleared(ctx) else plants.gives(lambda found: found))(original, ctx, *cotangents)


FAULTS = (
    fault(
        "BOX-01",
        _around_boxed(lambda original, ctx, grads: original(ctx, tuple(grads))),
        "tuple",
        neighbours=("BOX-02",),
    ),
    fault("BOX-01: undefined gradients move to the end of the list", _around_boxed(_puts_none_last)),
    fault(
        "BOX-01: a second pass gets a tuple",
        _around_boxed(lambda original, ctx, grads: original(ctx, tuple(grads) if _ran(ctx) else grads)),
        "tuple",
    ),
    fault("BOX-02", _keeps(lambda grads: grads)),
    fault("BOX-02: only the first gradient is freed", _keeps(lambda grads: grads[1:])),
    fault("BOX-03", _by_truth(lambda value, _: not isinstance(value, bool))),
    fault("BOX-03: a flag of None counts as False", _by_truth(lambda value, _: value is None)),
    fault(
        "BOX-03: flags are looked at in recorded calls alone",
        _by_truth(lambda _, args: not any(map(plants.tracked, args))),
    ),
    fault("CLEAR-01", _holds(lambda *_: True)),
    fault("CLEAR-01: saved outputs are kept", _holds(lambda ctx, t: t.grad_fn is ctx)),
    fault(
        "CLEAR-02",
        _remembering(lambda ctx: ctx.read_in == getattr(ctx, "passes", 0) or ctx.read_in == 0),
        neighbours=("CLEAR-03",),
    ),
    fault("CLEAR-02: a second reading from grad_fn is allowed", _remembering(lambda ctx: not _is_running(ctx))),
    fault(
        "CLEAR-02: a second reading under create_graph is allowed",
        _remembering(lambda ctx: _is_running(ctx) and torch.is_grad_enabled() and ctx.read_in == ctx.passes),
    ),
    fault("CLEAR-03", _remembering(lambda ctx: 0 < ctx.read_in < ctx.passes)),
    fault("CLEAR-03: a second pass gives zeros", plants.around_backward(_zeros_for_errors)),
)

FIXES = (Fix("BOX-04", barred),)
