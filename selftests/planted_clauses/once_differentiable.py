"""Faults of once_differentiable."""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch.autograd import Function

from autograd_conformance.selftests import plants
from autograd_conformance.selftests.planted_clauses.definitions import Fix
from autograd_conformance.selftests.planting import fault
from autograd_conformance.selftests.plants import detached, tupled

SAYS = "trying to differentiate twice a function that was marked with @once_differentiable"


def _declared(wrapper):
    """A backward declared once-differentiable is ``wrapper(original, backward, ctx, *cotangents)``.

    ``original`` is torch's own decorator.
    """

    def declare(original, backward):
        return functools.wraps(backward)(functools.partial(wrapper, original, backward))

    return plants.wrapped(torch.autograd.function, "once_differentiable", declare)


def _leaves_the_mode(original, backward, ctx, *cotangents):
    recording = torch.is_grad_enabled()

    def within(ctx, *given):
        with torch.set_grad_enabled(recording):
            return backward(ctx, *given)

    return original(within)(ctx, *cotangents)


def _moving(cotangents):
    return any(g is not None and g.requires_grad for g in cotangents)


def _doubles_under_create_graph(original, backward, ctx, *cotangents):
    found = original(backward)(ctx, *cotangents)
    return plants.of_tensors(lambda g: g * 2, tupled(found)) if _moving(cotangents) else found


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


def _refuses_nesting(original, backward, ctx, *cotangents):
    if torch._C._functorch.maybe_current_level() not in (None, 1):
        raise RuntimeError(SAYS)
    return original(backward)(ctx, *cotangents)


FAULTS = (
    fault("ONCE-01", _declared(_leaves_the_mode)),
    fault(
        "ONCE-01: gradients under create_graph are doubled",
        _declared(_doubles_under_create_graph),
        neighbours=("ONCE-06",),
    ),
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
)

FIXES = (
    Fix("ONCE-08", _declared(lambda _, backward, *given: backward(*given)), variant="cotangent"),
    Fix("ONCE-03", barred),
    Fix("ONCE-04", barred),
    Fix("ONCE-05", _declared(_refuses_nesting)),
    Fix("ONCE-07", barred, variant="grad"),
    Fix("ONCE-07", barred, variant="inputs"),
)
