"""Faults of MLX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx

from autograd_conformance.selftests.faults.planting import Fault, Plant, fault, replaced, wrapped
from autograd_conformance.suites.dialects.mlx._trees import leaves, mapped


def calling(clause: str, name: str, call: Callable[..., Any], *says: str) -> Fault:
    """The fault that a call of ``mx.name`` is ``call(original, *args, **kwargs)``."""
    return fault(clause, wrapped(mx, name, call), *says)


def custom(**changes: Callable[..., Any]) -> Plant:
    """``mx.custom_function`` with rules, by name, that ``changes`` make of the given ones; None forgets a rule.

    ``made`` changes the function that is decorated, ``called`` is what a call does.
    """

    def wrap(original: Any) -> Any:
        class Custom:
            def __init__(self, f: Any) -> None:
                self.f, self.real = f, original(f)
                changes.get("made", lambda _: None)(self.real)

            def __call__(self, *args: Any, **kwargs: Any) -> Any:
                call = changes.get("called")
                return call(self, args, kwargs) if call else self.real(*args, **kwargs)

            def __getattr__(self, name: str) -> Any:
                return lambda rule: self._set(name, changes.get(name, lambda rule: rule)(rule))

            def _set(self, name: str, changed: Any) -> None:
                if changed is not None:
                    getattr(self.real, name)(changed)

        return Custom

    return replaced(mx, "custom_function", wrap)


def rules(clause: str, *says: str, words: str = "", **changes: Callable[..., Any]) -> Fault:
    """The fault that custom functions have these changes."""
    return fault(clause, custom(**changes), *says, words=words)


def _backwards(found: Any) -> Any:
    return found[::-1] if isinstance(found, tuple) else found


def _twice(rule: Any) -> Any:
    def run(*given: Any) -> Any:
        rule(*given)
        return rule(*given)

    return run


def _first_result(_: Any, f: Any, **__: Any) -> Any:
    held: list[Any] = []

    def call(*args: Any, **kwargs: Any) -> Any:
        if not held:
            held.append(f(*args, **kwargs))
        return held[0]

    return call


def _without_gradient(_: Any, f: Any, **__: Any) -> Any:
    return lambda *args: mapped(mx.stop_gradient, f(*args))


def _refusing(_: Any, *arrays: Any) -> Any:
    raise ValueError("[eval] Not allowed inside a graph transformation.")


def _loss_alone(original: Any, f: Any, **options: Any) -> Any:
    def run(*args: Any) -> Any:
        value, gradient = original(f, **options)(*args)
        return (value[0] if isinstance(value, tuple) else value), gradient

    return run


def _modulo(original: Any, f: Any, argnums: Any = 0) -> Any:
    return lambda *args: original(f, argnums % len(args) if isinstance(argnums, int) else argnums)(*args)


def _with_cotangents(change: Callable[[list[Any]], list[Any]]) -> Callable[..., Any]:
    return lambda original, f, primals, cotangents: original(f, primals, change(list(cotangents)))


def _ones_for_zeros(g: Any) -> Any:
    return mx.where(g == 0, mx.ones_like(g), g)


FAULTS = (
    rules("MLX-CALL-01", "structure of the result", called=lambda self, args, kwargs: self.real(*args)),
    rules("MLX-CALL-02", "result of mx.vjp", made=lambda f: f.vjp(lambda x, g, y: mx.zeros_like(x))),
    rules("MLX-CALL-03", "gradient of what is captured", called=lambda self, args, kwargs: self.f(*args, **kwargs)),
    rules("MLX-VJP-01", "gradient through mx.", vjp=lambda rule: None),
    rules("MLX-VJP-02", "primals", vjp=lambda rule: lambda x, g, y: rule(_backwards(x), g, y)),
    rules("MLX-VJP-03", "cotangents", vjp=lambda rule: lambda x, g, y: rule(x, mapped(mx.ones_like, g), y)),
    rules("MLX-VJP-04", "outputs that the rule gets", vjp=lambda rule: lambda x, g, y: rule(x, g, g)),
    rules("MLX-VJP-05", "gradients", vjp=lambda rule: lambda *given: _backwards(rule(*given))),
    rules(
        "MLX-VJP-06",
        "cotangents that the rule gets",
        vjp=lambda rule: lambda x, g, y: rule(x, mapped(_ones_for_zeros, g), y),
    ),
    rules("MLX-VJP-07", "derivative", vjp=lambda rule: lambda *given: mapped(mx.stop_gradient, rule(*given))),
    rules(
        "MLX-VJP-07",
        "derivative",
        vjp=lambda rule: lambda x, g, y: rule(x, g, mapped(mx.stop_gradient, y)),
        words="the outputs that a vjp rule gets are constants",
    ),
    calling("MLX-VJP-08", "vjp", _with_cotangents(lambda given: [*given[:-1], mx.zeros_like(given[-1])]), "gradient"),
    rules("MLX-VJP-09", "number of times that the rule ran", vjp=_twice),
    rules("MLX-JVP-01", "tangent", jvp=lambda rule: None),
    rules("MLX-JVP-02", "tangents", jvp=lambda rule: lambda x, t: rule(x, x)),
    rules("MLX-JVP-03", "tangents, position", jvp=lambda rule: lambda x, t: leaves(rule(x, t))[::-1]),
    rules(
        "MLX-VMAP-01", "axes that the rule gets", vmap=lambda rule: lambda x, axes: rule(x, mapped(lambda _: 0, axes))
    ),
    rules(
        "MLX-VMAP-02",
        "outputs",
        vmap=lambda rule: lambda x, axes: (rule(x, axes)[0], mapped(lambda _: 0, rule(x, axes)[1])),
    ),
    calling("MLX-COMP-01", "compile", _without_gradient, "gradient"),
    calling("MLX-GRAD-01", "grad", lambda original, f, **_: original(f), "gradients"),
    calling(
        "MLX-GRAD-02",
        "grad",
        lambda original, f: lambda tree: leaves(original(f)(tree)),
        "structure of the gradient",
    ),
    calling("MLX-GRAD-03", "value_and_grad", _loss_alone),
    calling("MLX-GRAD-04", "grad", _modulo, "argnums"),
    calling("MLX-STOP-01", "stop_gradient", lambda _, x: x, "gradient"),
    calling("MLX-DEP-01", "depends", lambda _, x, dependency: x + dependency, "output"),
    calling("MLX-CKPT-01", "checkpoint", lambda _, f: f, "number of calls"),
    calling("MLX-COMPILE-01", "compile", _first_result),
    calling("MLX-COMPILE-02", "compile", lambda _, f: f, "number of times that the function was traced"),
    calling("MLX-COMPILE-03", "compile", lambda original, f, **_: original(f), "result"),
    calling("MLX-EVAL-01", "eval", _refusing, "ValueError"),
    calling("MLX-EVAL-02", "compile", lambda _, f: f, "evaluating an array"),
    calling("MLX-CPLX-01", "vjp", _with_cotangents(lambda given: [mx.conj(g) for g in given]), "gradient"),
)
