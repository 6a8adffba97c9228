"""Faults of tinygrad."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import tinygrad

from autograd_conformance.selftests.planting import Fault


@contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """``owner.name`` is that value."""
    original = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, original)


def making(change: Callable[[Any, dict[str, Any]], Any]) -> AbstractContextManager[None]:
    """``function(f, **options)`` gets what ``change`` makes of ``f``; it may change the options."""
    original = tinygrad.function

    def function(fxn: Any = None, **options: Any) -> Any:
        return function_of(fxn, options) if fxn is not None else lambda f: function_of(f, options)

    def function_of(fxn: Any, options: dict[str, Any]) -> Any:
        changed = dict(options)
        return original(change(fxn, changed), **changed)

    return replaced(tinygrad, "function", function)


def ruled(change: Callable[[Any, tuple[Any, ...], Any], Any]) -> AbstractContextManager[None]:
    """What grad_fxn returns is ``change(rule, gradients, call)``, where ``rule`` takes gradients."""

    def wrap(fxn: Any, options: dict[str, Any]) -> Any:
        grad_fxn = options.get("grad_fxn")

        def changed(*given: Any, call: Any = None) -> Any:
            if call is not None:
                return change(lambda *grads: grad_fxn(*grads, call=call), given, call)
            return change(lambda grad: grad_fxn(grad, given[-1]), given[:-1], given[-1])

        options["grad_fxn"] = grad_fxn and changed
        return fxn

    return making(wrap)


def _with(**set_to: Any) -> Callable[[], AbstractContextManager[None]]:
    def change(fxn: Any, options: dict[str, Any]) -> Any:
        options.update(set_to)
        return fxn

    return lambda: making(change)


def _tupled(fxn: Any, _: dict[str, Any]) -> Any:
    def changed(*args: Any) -> Any:
        found = fxn(*args)
        return tuple(found) if isinstance(found, list) else found

    return changed


def _padded(rule: Any, grads: Any, call: Any) -> Any:
    found = rule(*grads)
    return found + (None,) * (len(call.src) - 1 - len(found))


def _filled(rule: Any, grads: Any, call: Any) -> Any:
    pairs = zip(rule(*grads), call.src[1:], strict=True)
    return tuple(x.const_like(1) if g is None else g for g, x in pairs)


def _where_it_comes_last(inputs: Any) -> Any:
    return list(dict.fromkeys(reversed(list(inputs))))[::-1]


FAULTS = (
    Fault(
        "TINYGRAD-01",
        install=lambda: ruled(lambda rule, grads, _: rule(*(g.const_like(1) for g in grads))),
        says=("gradient that grad_fxn gets",),
    ),
    Fault("TINYGRAD-02", install=_with(grad_fxn=None), says=("gradients",)),
    Fault(
        "TINYGRAD-03",
        install=lambda: replaced(sys.modules["tinygrad.function"], "dedup", _where_it_comes_last),
        says=("inputs of the call",),
    ),
    Fault("TINYGRAD-04", install=lambda: ruled(_padded), says=("no error", "AssertionError")),
    Fault("TINYGRAD-05", install=lambda: ruled(_filled), says=("gradients",)),
    Fault(
        "TINYGRAD-06",
        install=lambda: ruled(lambda rule, grads, _: rule(*grads[::-1])),
        says=("cotangents that the rule gets",),
    ),
    Fault("TINYGRAD-07", install=_with(allow_implicit=True), says=("no error", "RuntimeError")),
    Fault("TINYGRAD-08", install=lambda: making(_tupled), says=("no error", "RuntimeError")),
)
