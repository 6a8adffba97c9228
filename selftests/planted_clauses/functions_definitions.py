"""Faults of how a Function is defined: methods that are missing, doubled, inherited, replaced, nested or that raise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from typing import Any
from unittest.mock import patch

import torch
from torch.autograd import Function
from torch.autograd.function import FunctionMeta

from autograd_conformance.selftests.planted_clauses.definitions import Fix
from autograd_conformance.selftests.planted_clauses.intercept import around_apply, around_backward, replaced
from autograd_conformance.selftests.planting import Fault


def _has(cls: Any, method: str) -> bool:
    return getattr(cls, method) is not getattr(Function, method)


def _new_classes(change: Callable[[Any, Any, Any], None]) -> AbstractContextManager[Any]:
    """Each Function class that is made goes through ``change(cls, bases, attrs)``."""

    def init(original: Any) -> Any:
        def changed(cls: Any, name: str, bases: Any, attrs: Any) -> None:
            original(cls, name, bases, attrs)
            change(cls, bases, attrs)

        return changed

    return replaced(FunctionMeta, "__init__", init)


def _first_argument(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
    return original(cls, *args, **kwargs) if _has(cls, "forward") else args[0]


def _no_attribute(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
    if not _has(cls, "forward"):
        raise AttributeError(f"{cls.__name__} has no attribute forward")
    return original(cls, *args, **kwargs)


def _none_without_rule(original: Any, ctx: Any, *cotangents: Any) -> Any:
    cls = ctx._forward_cls
    return original(ctx, *cotangents) if _has(cls, "backward") or _has(cls, "vjp") else None


def _no_rule_no_attribute(original: Any, ctx: Any, *cotangents: Any) -> Any:
    cls = ctx._forward_cls
    if not (_has(cls, "backward") or _has(cls, "vjp")):
        raise AttributeError(f"{cls.__name__} has neither backward nor vjp")
    return original(ctx, *cotangents)


def _no_vjp(original: Any, ctx: Any, *cotangents: Any) -> Any:
    cls = ctx._forward_cls
    return original(ctx, *cotangents) if _has(cls, "backward") else Function.backward(ctx, *cotangents)


def _no_inherited_vjp(original: Any, ctx: Any, *cotangents: Any) -> Any:
    cls = ctx._forward_cls
    lost = not _has(cls, "backward") and "vjp" not in vars(cls)
    return Function.backward(ctx, *cotangents) if lost else original(ctx, *cotangents)


def _vjp_first(original: Any, ctx: Any, *cotangents: Any) -> Any:
    cls = ctx._forward_cls
    both = _has(cls, "backward") and _has(cls, "vjp")
    return cls.vjp(ctx, *cotangents) if both else original(ctx, *cotangents)


def _nearest_first(original: Any, ctx: Any, *cotangents: Any) -> Any:
    cls = ctx._forward_cls
    nearest = next(c for c in cls.__mro__ if {"backward", "vjp"} & vars(c).keys())
    own = {"backward", "vjp"} & vars(nearest).keys()
    apart = _has(cls, "backward") and _has(cls, "vjp") and len(own) == 1
    return getattr(cls, own.pop())(ctx, *cotangents) if apart else original(ctx, *cotangents)


def _warns_once() -> AbstractContextManager[Any]:
    warned: list[Any] = []

    def once(original: Any) -> Any:
        def init(instance: Any, *args: Any, **kwargs: Any) -> None:
            if type(instance) not in warned:
                warned.append(type(instance))
                original(instance, *args, **kwargs)

        return init

    return replaced(Function, "__init__", once)


def _applies(instance: Any, *args: Any) -> Any:
    return type(instance).apply(*args)


def _applies_beside_setup_context(original: Any) -> Any:
    return lambda f, *args: (_applies if _has(type(f), "setup_context") else original)(f, *args)


def _refuse_undecorated(cls: Any, bases: Any, attrs: Any) -> None:
    for name in ("forward", "backward"):
        if name in attrs and not isinstance(attrs[name], staticmethod):
            raise TypeError(f"{cls.__name__}.{name} must be static")


@contextmanager
def _direct_calls(call: Callable[..., Any]) -> Iterator[None]:
    """``F.forward(*args)`` outside apply is ``call(original, F, *args)``."""
    applying: list[Any] = []

    def apply(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
        applying.append(cls)
        try:
            return original(cls, *args, **kwargs)
        finally:
            applying.pop()

    def change(cls: Any, bases: Any, attrs: Any) -> None:
        mine = getattr(cls.forward, "mine", cls.forward)

        @wraps(mine)
        def forward(*args: Any, **kwargs: Any) -> Any:
            return mine(*args, **kwargs) if applying else call(mine, cls, *args, **kwargs)

        if _has(cls, "forward"):
            forward.mine = mine  # type: ignore[attr-defined]
            cls.forward = staticmethod(forward)

    with _new_classes(change), around_apply(apply):
        yield


def _applies_instead(mine: Any, cls: Any, *args: Any) -> Any:
    return cls.apply(*(args if _has(cls, "setup_context") else args[1:]))


def _unrecorded(mine: Any, cls: Any, *args: Any) -> Any:
    with torch.no_grad():
        return mine(*args)


@contextmanager
def _unrecorded_in_backward() -> Iterator[None]:
    running: list[Any] = []

    def backward(original: Any, ctx: Any, *cotangents: Any) -> Any:
        running.append(ctx)
        try:
            return original(ctx, *cotangents)
        finally:
            running.pop()

    def apply(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
        with torch.set_grad_enabled(torch.is_grad_enabled() and not running):
            return original(cls, *args, **kwargs)

    with around_backward(backward), around_apply(apply):
        yield


@contextmanager
def _recorded_in_forward() -> Iterator[None]:
    running: list[Any] = []

    def apply(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
        running.append(cls)
        try:
            with torch.set_grad_enabled(torch.is_grad_enabled() or len(running) > 1):
                return original(cls, *args, **kwargs)
        finally:
            running.pop()

    with around_apply(apply):
        yield


def _parents_backward(original: Any, ctx: Any, *cotangents: Any) -> Any:
    defining = [c for c in ctx._forward_cls.__mro__ if "backward" in vars(c) and issubclass(c, Function)]
    if len(defining) < 3 or _has(ctx._forward_cls, "vjp"):  # the class, its parent, and Function
        return original(ctx, *cotangents)
    return defining[1].backward(ctx, *cotangents)


def _parents_name(cls: Any, bases: Any, attrs: Any) -> None:
    if bases[0] is not Function:
        cls._backward_cls.__name__ = bases[0]._backward_cls.__name__


@contextmanager
def _early_binding() -> Iterator[None]:
    def apply(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(cls, *args, **kwargs)
        for y in result if isinstance(result, tuple) else (result,):
            if getattr(y, "grad_fn", None) is not None and _has(cls, "backward") and not _has(cls, "vjp"):
                y.grad_fn._bound = cls.backward
        return result

    def backward(original: Any, ctx: Any, *cotangents: Any) -> Any:
        return (getattr(ctx, "_bound", None) or (lambda c, *g: original(c, *g)))(ctx, *cotangents)

    with around_apply(apply), around_backward(backward):
        yield


@contextmanager
def _binding_on_first_use() -> Iterator[None]:
    def backward(original: Any, ctx: Any, *cotangents: Any) -> Any:
        cls = ctx._forward_cls
        if _has(cls, "vjp") or not _has(cls, "backward"):
            return original(ctx, *cotangents)
        if not hasattr(ctx, "_bound"):
            ctx._bound = cls.backward
        return ctx._bound(ctx, *cotangents)

    with around_backward(backward):
        yield


def _as_runtime_error(original: Any, ctx: Any, *cotangents: Any) -> Any:
    try:
        return original(ctx, *cotangents)
    except Exception as raised:
        if not _has(ctx._forward_cls, "backward"):
            raise
        raise RuntimeError(str(raised)) from raised


def _without_arguments(original: Any, ctx: Any, *cotangents: Any) -> Any:
    try:
        return original(ctx, *cotangents)
    except KeyError:
        raise KeyError from None


@contextmanager
def _mode_stays_off() -> Iterator[None]:
    def apply(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(cls, *args, **kwargs)
        except (TypeError, NotImplementedError):
            raise
        except Exception:
            torch.set_grad_enabled(False)
            raise

    with around_apply(apply), torch.set_grad_enabled(torch.is_grad_enabled()):
        yield


@contextmanager
def _mode_stays_on() -> Iterator[None]:
    def grad(original: Any) -> Any:
        def leaking(*args: Any, create_graph: bool = False, **options: Any) -> Any:
            try:
                return original(*args, create_graph=create_graph, **options)
            except Exception as raised:
                if not isinstance(raised, RuntimeError):
                    torch.set_grad_enabled(create_graph)
                raise

        return leaking

    with replaced(torch.autograd, "grad", grad), torch.set_grad_enabled(torch.is_grad_enabled()):
        yield


def _recursive(original: Any) -> Any:
    def grad(outputs: Any, *args: Any, **options: Any) -> Any:
        seen = {y.grad_fn for y in (outputs if isinstance(outputs, (list, tuple)) else [outputs])}
        front = set(seen)
        while front and len(seen) <= 10_000:
            front = {node for last in front if last for node, _ in last.next_functions} - seen
            seen |= front
        if len(seen) > 10_000:
            raise RecursionError("maximum recursion depth exceeded")
        return original(outputs, *args, **options)

    return grad


@contextmanager
def _immortal_nodes() -> Iterator[None]:
    nodes: list[Any] = []

    def apply(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(cls, *args, **kwargs)
        nodes.append(getattr(result, "grad_fn", None))
        return result

    with around_apply(apply):
        yield


FAULTS = (
    Fault("FN-15", lambda: around_apply(_first_argument)),
    Fault("FN-15", lambda: around_apply(_no_attribute), says=("AttributeError",), words="an AttributeError"),
    Fault("FN-16", lambda: around_backward(_none_without_rule), says=("no error",)),
    Fault("FN-16", lambda: around_backward(_no_rule_no_attribute), says=("AttributeError",), words="an AttributeError"),
    Fault("FN-17", lambda: around_backward(_no_vjp), neighbours=("FN-18",)),
    Fault("FN-17", lambda: around_backward(_no_inherited_vjp), words="an inherited vjp is not found"),
    Fault("FN-18", lambda: around_backward(_vjp_first), says=("no error",)),
    Fault("FN-18", lambda: around_backward(_nearest_first), says=("no error",), words="the subclass's rule counts"),
    Fault("FN-19", lambda: patch.object(Function, "__init__", lambda *_: None), says=("no warning",)),
    Fault("FN-19", _warns_once, says=("no warning",), words="a class warns once"),
    Fault("FN-20", lambda: patch.object(Function, "__call__", _applies), says=("no error",)),
    Fault(
        "FN-20",
        lambda: replaced(Function, "__call__", _applies_beside_setup_context),
        says=("no error",),
        words="instances of a class with setup_context can be called",
    ),
    Fault("FN-22", lambda: _direct_calls(_applies_instead), says=("calls of the custom backward",)),
    Fault("FN-22", lambda: _direct_calls(_unrecorded), says=("gradients",), words="a direct call is not recorded"),
    Fault("FN-26", _unrecorded_in_backward, says=("in backward",)),
    Fault("FN-26", _recorded_in_forward, says=("inside forward",), words="a call inside forward is recorded"),
    Fault("FN-27", lambda: around_backward(_parents_backward)),
    Fault("FN-27", lambda: _new_classes(_parents_name), says=("type of the node",), words="it bears the parent's name"),
    Fault("FN-28", _early_binding),
    Fault("FN-28", _binding_on_first_use, words="a node keeps the backward that it ran first"),
    Fault("FN-29", lambda: around_backward(_as_runtime_error), says=("RuntimeError",)),
    Fault("FN-29", lambda: around_backward(_without_arguments), words="a KeyError loses its arguments"),
    Fault("FN-29", _mode_stays_off, says=("grad mode",), words="grad mode is off after an exception in forward"),
    Fault("FN-29", _mode_stays_on, says=("grad mode",), words="grad mode is that of the pass after an exception"),
    Fault("FN-30", lambda: replaced(torch.autograd, "grad", _recursive), says=("RecursionError",)),
    Fault("FN-30", _immortal_nodes, says=("alive",), words="nodes are never freed"),
)

FIXES = (Fix("FN-21", lambda: _new_classes(_refuse_undecorated)),)
