"""Faults of ctx.needs_input_grad."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from autograd_conformance.selftests.planted_clauses.definitions import Fix
from autograd_conformance.selftests.planted_clauses.intercept import (
    around_apply,
    around_backward,
    ctx_attribute,
    replaced,
)
from autograd_conformance.selftests.planting import Fault


def _pads_defaults(original: Any, cls: Any, *args: Any) -> Any:
    return original(cls, *args, *([None] * (4 - len(args)) if cls.__name__ == "Defaults" else []))


def _binds_no_defaults(original: Any, cls: Any, *args: Any) -> Any:
    return super(torch.autograd.Function, cls).apply(*args)


@contextmanager
def _heeds_the_mode() -> Iterator[None]:
    modes = []

    def apply(original: Any, cls: Any, *args: Any) -> Any:
        modes.append(torch.is_grad_enabled())
        return original(cls, *args)

    with around_apply(apply), ctx_attribute("needs_input_grad", lambda _, it: tuple(f and modes[-1] for f in it)):
        yield


@contextmanager
def _heeds_arguments(change: Callable[[int, Any, Any], bool]) -> Iterator[None]:
    """The flag of an argument is ``change(position, argument, arguments)`` if it was True."""
    known: list[Any] = []

    def apply(original: Any, cls: Any, *args: Any) -> Any:
        known[:] = args
        return original(cls, *args)

    def flags(_: Any, it: Any) -> Any:
        if len(it) != len(known):
            return it
        return tuple(f and change(i, x, known) for i, (f, x) in enumerate(zip(it, known, strict=True)))

    with around_apply(apply), ctx_attribute("needs_input_grad", flags):
        yield


def _rejects_unneeded(original: Any, ctx: Any, *cotangents: Any) -> Any:
    found = original(ctx, *cotangents)
    if any(g is not None and not need for g, need in zip(found, ctx.needs_input_grad, strict=True)):
        raise RuntimeError("a gradient was returned that is not needed")
    return found


@contextmanager
def _says_what_is_wanted() -> Iterator[None]:
    wanted: list[Any] = []

    def grad(original: Any) -> Any:
        def noting(outputs: Any, inputs: Any, *args: Any, **options: Any) -> Any:
            wanted[:] = inputs
            return original(outputs, inputs, *args, **options)

        return noting

    def flags(ctx: Any, it: Any) -> Any:
        leaves = [getattr(node, "variable", None) for node, _ in ctx.next_functions]
        return tuple(any(leaf is w for w in wanted) for leaf in leaves) if wanted else it

    with replaced(torch.autograd, "grad", grad), ctx_attribute("needs_input_grad", flags):
        yield


@contextmanager
def _forgets_partial_passes() -> Iterator[None]:
    counts: list[int] = []

    def grad(original: Any) -> Any:
        def noting(outputs: Any, inputs: Any, *args: Any, **options: Any) -> Any:
            counts[:] = [len(inputs)]
            return original(outputs, inputs, *args, **options)

        return noting

    def flags(ctx: Any, it: Any) -> Any:
        return (False,) * len(it) if counts and ctx.saved_tensors and counts[0] < sum(it) else it

    with replaced(torch.autograd, "grad", grad), ctx_attribute("needs_input_grad", flags):
        yield


FAULTS = (
    Fault(
        "NIG-01",
        lambda: ctx_attribute("needs_input_grad", lambda _, flags: flags[:-1]),
        neighbours=("NIG-02", "NIG-03", "NIG-04", "NIG-05", "NIG-06"),
    ),
    Fault(
        "NIG-01",
        lambda: ctx_attribute("needs_input_grad", lambda _, flags: list(flags)),
        says=("list",),
        neighbours=("NIG-02", "NIG-03", "NIG-04", "NIG-05", "NIG-06"),
        words="a list instead of a tuple",
    ),
    Fault(
        "NIG-02",
        lambda: ctx_attribute("needs_input_grad", lambda _, flags: (True,) * len(flags)),
        neighbours=("NIG-03", "NIG-04", "NIG-05"),
    ),
    Fault(
        "NIG-02",
        lambda: _heeds_arguments(lambda _, x, __: x.is_leaf),
        neighbours=("NIG-05",),
        words="it is False for what has a history",
    ),
    Fault(
        "NIG-02",
        lambda: _heeds_arguments(lambda i, x, args: not any(x is y for y in args[:i])),
        neighbours=("NIG-04",),
        words="it is False for what was passed before",
    ),
    Fault("NIG-03", lambda: around_apply(_pads_defaults)),
    Fault("NIG-04", lambda: around_apply(_binds_no_defaults)),
    Fault("NIG-05", _heeds_the_mode),
    Fault("NIG-06", _forgets_partial_passes, neighbours=("NIG-02",)),
    Fault("NIG-07", lambda: around_backward(_rejects_unneeded)),
)

FIXES = (Fix("NIG-06", _says_what_is_wanted),)
