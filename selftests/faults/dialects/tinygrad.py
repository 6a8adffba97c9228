"""Faults of tinygrad."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import tinygrad

from autograd_conformance.selftests.faults.dialects.gradients import filled, fitted
from autograd_conformance.selftests.faults.planting import Plant, fault, put


def making(change: Callable[[Any, dict[str, Any]], Any]) -> Plant:
    """``function(f, **options)`` gets what ``change`` makes of ``f``; it may change the options."""
    original = tinygrad.function

    def function(fxn: Any = None, **options: Any) -> Any:
        return function_of(fxn, options) if fxn is not None else lambda f: function_of(f, options)

    def function_of(fxn: Any, options: dict[str, Any]) -> Any:
        changed = dict(options)
        return original(change(fxn, changed), **changed)

    return put(tinygrad, "function", function)


def ruled(change: Callable[[Any, tuple[Any, ...], Any], Any]) -> Plant:
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


def _with(**set_to: Any) -> Plant:
    def change(fxn: Any, options: dict[str, Any]) -> Any:
        options.update(set_to)
        return fxn

    return making(change)


def _tupled(fxn: Any, _: dict[str, Any]) -> Any:
    def changed(*args: Any) -> Any:
        found = fxn(*args)
        return tuple(found) if isinstance(found, list) else found

    return changed


def _where_it_comes_last(inputs: Any) -> Any:
    return list(dict.fromkeys(reversed(list(inputs))))[::-1]


FAULTS = (
    fault(
        "TINYGRAD-01",
        ruled(lambda rule, grads, _: rule(*(g.const_like(1) for g in grads))),
        "gradient that grad_fxn gets",
    ),
    fault("TINYGRAD-02", _with(grad_fxn=None), "gradients"),
    fault("TINYGRAD-03", put(sys.modules["tinygrad.function"], "dedup", _where_it_comes_last), "inputs of the call"),
    fault(
        "TINYGRAD-04", ruled(lambda rule, grads, call: fitted(rule(*grads), call.src[1:])), "no error", "AssertionError"
    ),
    fault(
        "TINYGRAD-05",
        ruled(lambda rule, grads, call: filled(rule(*grads), call.src[1:], lambda x: x.const_like(1))),
        "gradients",
    ),
    fault("TINYGRAD-06", ruled(lambda rule, grads, _: rule(*grads[::-1])), "gradients that grad_fxn gets"),
    fault("TINYGRAD-07", _with(allow_implicit=True), "no error", "RuntimeError"),
    fault("TINYGRAD-08", making(_tupled), "no error", "RuntimeError"),
)
