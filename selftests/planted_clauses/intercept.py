"""Ways to put a fault between torch and every custom Function of the process."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

import torch
from torch.autograd.function import BackwardCFunction


def replaced(owner: Any, name: str, change: Callable[[Any], Any]) -> AbstractContextManager[Any]:
    """``owner.name`` is ``change(what it was)``."""
    return patch.object(owner, name, change(getattr(owner, name)))


def ctx_attribute(name: str, value: Callable[[Any, Any], Any]) -> AbstractContextManager[Any]:
    """Reading ``ctx.name`` gives ``value(ctx, what it is)``; what is set on ctx stays on it."""
    inherited = next(vars(kind)[name] for kind in BackwardCFunction.__mro__ if name in vars(kind))

    def read(ctx: Any) -> Any:
        return value(ctx, inherited.__get__(ctx, type(ctx)))

    def write(ctx: Any, new: Any) -> None:
        inherited.__set__(ctx, new)

    return patch.object(BackwardCFunction, name, property(read, write), create=True)


def ctx_method(name: str, method: Callable[..., Any]) -> AbstractContextManager[Any]:
    """``ctx.name(*args)`` is ``method(original, ctx, *args)``."""
    original = getattr(BackwardCFunction, name)

    def replacement(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        return method(original, ctx, *args, **kwargs)

    return patch.object(BackwardCFunction, name, replacement, create=True)


def around_backward(method: Callable[..., Any]) -> AbstractContextManager[Any]:
    """The engine's call of a Function's backward is ``method(original, ctx, *cotangents)``."""
    original = BackwardCFunction.apply

    def apply(ctx: Any, *cotangents: Any) -> Any:
        return method(lambda c, *given: original(c, *given), ctx, *cotangents)

    return patch.object(BackwardCFunction, "apply", apply)


def around_backward_with_graph(method: Callable[..., Any]) -> AbstractContextManager[Any]:
    """`around_backward` in passes that build a graph alone."""

    def run(original: Any, ctx: Any, *cotangents: Any) -> Any:
        return method(original, ctx, *cotangents) if torch.is_grad_enabled() else original(ctx, *cotangents)

    return around_backward(run)


def around_apply(method: Callable[..., Any]) -> AbstractContextManager[Any]:
    """``F.apply(*args, **kwargs)`` is ``method(original, F, *args, **kwargs)``."""
    original = torch.autograd.Function.__dict__["apply"].__func__

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        return method(lambda c, /, *given, **named: original(c, *given, **named), cls, *args, **kwargs)

    return patch.object(torch.autograd.Function, "apply", classmethod(apply))


def around_method(name: str, method: Callable[..., Any]) -> AbstractContextManager[Any]:
    """A Function's static method is ``method(original, *args)`` wherever apply is called on its class.

    The method is replaced on the class itself while apply runs, so that names and nodes stay what they are; use
    `around_backward` for what runs later.
    """

    def apply(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
        mine = getattr(cls, name)
        with patch.object(cls, name, staticmethod(lambda *a, **k: method(mine, *a, **k))):
            return original(cls, *args, **kwargs)

    return around_apply(apply)
