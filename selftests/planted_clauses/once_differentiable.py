"""Faults of once_differentiable."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from torch.autograd import Function

from autograd_conformance.selftests.planted_clauses.definitions import Fix
from autograd_conformance.selftests.planted_clauses.intercept import around_apply, replaced
from autograd_conformance.selftests.planting import Fault

SAYS = "trying to differentiate twice a function that was marked with @once_differentiable"


def _tuple(values: Any) -> tuple[Any, ...]:
    return values if isinstance(values, tuple) else (values,)


def declared(wrapper: Callable[..., Any]) -> AbstractContextManager[Any]:
    """A backward declared once-differentiable is ``wrapper(original, backward, ctx, *cotangents)``.

    ``original`` is torch's own decorator.
    """

    def change(original: Any) -> Any:
        def declare(backward: Any) -> Any:
            return functools.wraps(backward)(functools.partial(wrapper, original, backward))

        return declare

    return replaced(torch.autograd.function, "once_differentiable", change)


def _leaves_the_mode(original: Any, backward: Any, ctx: Any, *cotangents: Any) -> Any:
    recording = torch.is_grad_enabled()

    def within(ctx: Any, *given: Any) -> Any:
        with torch.set_grad_enabled(recording):
            return backward(ctx, *given)

    return original(within)(ctx, *cotangents)


def _doubles_under_create_graph(original: Any, backward: Any, ctx: Any, *cotangents: Any) -> Any:
    found = original(backward)(ctx, *cotangents)
    if not any(g.requires_grad for g in cotangents if g is not None):
        return found
    return tuple(None if g is None else g * 2 for g in _tuple(found))


def _names_nothing(original: Any) -> Any:
    return lambda _, count: original(b"this derivative does not exist", count)


def _refuses_the_first_alone(original: Any, backward: Any, ctx: Any, *cotangents: Any) -> Any:
    with torch.no_grad():
        found = _tuple(backward(ctx, *cotangents))
    return (*_tuple(original(lambda *_: found)(ctx, *cotangents))[:1], *found[1:])


def _zeros_for_errors(original: Any) -> Any:
    def grad(outputs: Any, inputs: Any, *args: Any, **options: Any) -> Any:
        try:
            return original(outputs, inputs, *args, **options)
        except RuntimeError:
            return tuple(torch.zeros_like(x) for x in inputs)

    return grad


def _zeros_for_none(original: Any, backward: Any, ctx: Any, *cotangents: Any) -> Any:
    found = original(backward)(ctx, *cotangents)
    pairs = zip(_tuple(found), ctx.needs_input_grad, strict=True)
    return tuple(torch.zeros_like(cotangents[0]) if g is None and need else g for g, need in pairs)


def _zeros_for_none_in_graphs(original: Any, backward: Any, ctx: Any, *cotangents: Any) -> Any:
    replace = any(g is not None and g.requires_grad for g in cotangents) and torch.is_grad_enabled()
    return (_zeros_for_none if replace else lambda o, b, *given: o(b)(*given))(original, backward, ctx, *cotangents)


def _ignores_a_moving_cotangent(original: Any, backward: Any, ctx: Any, *cotangents: Any) -> Any:
    return original(backward)(ctx, *(g if g is None else g.detach() for g in cotangents))


class _Barrier(Function):
    """Passes the first ``count`` of its arguments on, and cannot be differentiated with respect to any of them."""

    @staticmethod
    def forward(ctx: Any, count: int, *args: Any) -> Any:
        return tuple(g if g is None else g.clone() for g in args[:count])

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        raise RuntimeError(SAYS)


def _with_a_barrier(_: Any, backward: Any, ctx: Any, *cotangents: Any) -> Any:
    given = tuple(cotangents[0]) if isinstance(cotangents[0], list) else cotangents
    with torch.no_grad():
        found = backward(ctx, *cotangents)
    if not torch.is_grad_enabled():
        return found
    closed = _Barrier.apply(len(_tuple(found)), *_tuple(found), *given, *ctx.call)
    return closed if isinstance(found, tuple) else closed[0]


@contextmanager
def barred() -> Iterator[None]:
    """What a once-differentiable backward returns depends on all that its call was given, and refuses a derivative."""

    def apply(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
        outputs = original(cls, *args, **kwargs)
        for y in _tuple(outputs):
            if isinstance(y, torch.Tensor) and y.grad_fn is not None and cls is not _Barrier:
                y.grad_fn.call = [x for x in args if isinstance(x, torch.Tensor)]
        return outputs

    with around_apply(apply), declared(_with_a_barrier):
        yield


def _refuses_nesting(original: Any, backward: Any, ctx: Any, *cotangents: Any) -> Any:
    if torch._C._functorch.maybe_current_level() not in (None, 1):
        raise RuntimeError(SAYS)
    return original(backward)(ctx, *cotangents)


FAULTS = (
    Fault("ONCE-01", lambda: declared(_leaves_the_mode)),
    Fault(
        "ONCE-01",
        lambda: declared(_doubles_under_create_graph),
        neighbours=("ONCE-06",),
        words="gradients under create_graph are doubled",
    ),
    Fault(
        "ONCE-02",
        lambda: replaced(torch._C._functions, "DelayedError", _names_nothing),
        says=("a message that names",),
        neighbours=("ONCE-07",),
    ),
    Fault(
        "ONCE-02",
        lambda: declared(_refuses_the_first_alone),
        neighbours=("ONCE-07",),
        words="only the first gradient refuses",
    ),
    Fault("ONCE-03", lambda: replaced(torch.autograd, "grad", _zeros_for_errors)),
    Fault("ONCE-06", lambda: declared(_zeros_for_none)),
    Fault("ONCE-06", lambda: declared(_zeros_for_none_in_graphs), words="zeros for None under create_graph alone"),
    Fault("ONCE-07", lambda: declared(_ignores_a_moving_cotangent), neighbours=("ONCE-02",)),
)

FIXES = (
    Fix("ONCE-08", lambda: declared(lambda original, backward, *given: backward(*given)), variant="cotangent"),
    Fix("ONCE-03", barred),
    Fix("ONCE-04", barred),
    Fix("ONCE-05", lambda: declared(_refuses_nesting)),
    Fix("ONCE-07", barred, variant="grad"),
    Fix("ONCE-07", barred, variant="inputs"),
)
