"""Faults of once_differentiable, boxed_grads_call and clear_saved_tensors_on_access."""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

import torch
from torch.autograd import Function
from torch.autograd.function import BackwardCFunction

from autograd_conformance.selftests.faults import plants
from autograd_conformance.selftests.faults.clauses.definitions import Fix
from autograd_conformance.selftests.faults.planting import fault
from autograd_conformance.selftests.faults.plants import detached, tupled

SAYS = "trying to differentiate twice a function that was marked with @once_differentiable"


def _declared(wrapper):
    """A backward declared once-differentiable is ``wrapper(original, backward, ctx, *cotangents)``.

    ``original`` is torch's own decorator.
    """

    def declare(original, backward):
        return functools.wraps(backward)(functools.partial(wrapper, original, backward))

    return plants.wrapped(torch.autograd.function, "once_differentiable", declare)


def _moving(cotangents):
    return any(g is not None and g.requires_grad for g in cotangents)


def _refuses_the_first_alone(original, backward, ctx, *cotangents):
    with torch.no_grad():
        found = tupled(backward(ctx, *cotangents))
    return (*tupled(original(lambda *_: found)(ctx, *cotangents))[:1], *found[1:])


def _zeros_for_none(when):
    """Zeros take the place of None where ``when(cotangents)``."""

    def backward(original, backward, ctx, *cotangents):
        found = original(backward)(ctx, *cotangents)
        pairs = zip(tupled(found), ctx.needs_input_grad, strict=True)
        if not when(cotangents):
            return found
        return tuple(torch.zeros_like(cotangents[0]) if g is None and need else g for g, need in pairs)

    return _declared(backward)


class _Barrier(Function):
    """Passes the first ``count`` of its arguments on, and cannot be differentiated with respect to any of them."""

    @staticmethod
    def forward(ctx, count, *args):
        return tuple(g if g is None else g.clone() for g in args[:count])

    @staticmethod
    def backward(ctx, *cotangents):
        raise RuntimeError(SAYS)


def _with_a_barrier(_, backward, ctx, *cotangents):
    given = tuple(cotangents[0]) if isinstance(cotangents[0], list) else cotangents
    with torch.no_grad():
        found = backward(ctx, *cotangents)
    if not torch.is_grad_enabled():
        return found
    closed = _Barrier.apply(len(tupled(found)), *tupled(found), *given, *ctx.call)
    return closed if isinstance(found, tuple) else closed[0]


def barred() -> AbstractContextManager[Any]:
    """What a once-differentiable backward returns depends on all that its call was given, and refuses a derivative."""

    def note(node, cls, args, _):
        if cls is not _Barrier:
            node.call = plants.tensors_of(args)

    return plants.all_of(plants.noting_calls(note), _declared(_with_a_barrier))


def _refuses_nesting(original, backward, *given):
    nested = torch._C._functorch.maybe_current_level() not in (None, 1)
    return (plants.raising(SAYS) if nested else original(backward))(*given)


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
        "ONCE-02",
        plants.wrapped(
            torch._C._functions, "DelayedError", lambda error, _, count: error(b"this derivative does not exist", count)
        ),
        "a message that names",
        neighbours=("ONCE-07",),
    ),
    fault("ONCE-02: only the first gradient refuses", _declared(_refuses_the_first_alone), neighbours=("ONCE-07",)),
    fault(
        "ONCE-03", plants.around_grad(plants.rescued(lambda _, inputs, *__: tuple(torch.zeros_like(x) for x in inputs)))
    ),
    fault("ONCE-06", _zeros_for_none(lambda _: True)),
    fault(
        "ONCE-06: zeros for None under create_graph alone",
        _zeros_for_none(lambda cotangents: _moving(cotangents) and torch.is_grad_enabled()),
    ),
    fault(
        "ONCE-07",
        _declared(lambda original, backward, ctx, *given: original(backward)(ctx, *detached(given))),
        neighbours=("ONCE-02",),
    ),
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

FIXES = (
    Fix("ONCE-08", _declared(lambda _, backward, *given: backward(*given)), variant="cotangent"),
    Fix("ONCE-03", barred),
    Fix("ONCE-04", barred),
    Fix("ONCE-05", _declared(_refuses_nesting)),
    Fix("ONCE-07", barred, variant="grad"),
    Fix("ONCE-07", barred, variant="inputs"),
    Fix("BOX-04", barred),
)
