"""Generated Functions with a jvp, and calls of them in forward mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from autograd_conformance.harness.testing.clauses import ClauseSubject
from autograd_conformance.reference.polynomials import OUTPUTS, Polynomial
from autograd_conformance.suites.contract._ctx_observers import observing_ctx


def drawn_jvp_function(subject: ClauseSubject, data: Any, **restrictions: Any) -> Polynomial:
    """Draw a Function in either style, with so few arguments that its tangents are exact in every dtype."""
    kinds = OUTPUTS if "nondifferentiable" in subject.implementation.capabilities else ("float",)
    return subject.polynomial(data, **{"separate": None, "max_arguments": 4, "outputs": kinds, **restrictions})


def drawn_tangents(subject: ClauseSubject, data: Any, polynomial: Polynomial, least: int = 1) -> tuple[Any, ...]:
    """Draw a tangent for some of the floating tensors, at least for ``least``; None for all other arguments."""
    some = st.sets(st.sampled_from(polynomial.floating), min_size=least)
    chosen = subject.draw(data, some.map(lambda found: tuple(sorted(found))), "arguments that move")
    return some_tangents(polynomial, chosen)


def some_tangents(polynomial: Polynomial, chosen: Sequence[int]) -> tuple[Any, ...]:
    """An array for each of these arguments, None for the others."""
    count = len(polynomial.arguments)
    return replace(polynomial, outputs=("float",) * count).cotangents([i in chosen for i in range(count)], salt=1000)


def expected_tangents(polynomial: Polynomial, tangents: Sequence[Any], factor: int = 1) -> tuple[Any, ...]:
    """The right tangent of each output, times a factor; None where there is none."""
    found = ((kind, _tangent(polynomial, output, tangents)) for output, kind in enumerate(polynomial.outputs))
    return tuple(np.asarray(factor * t) if kind == "float" else None for kind, t in found)


def _tangent(polynomial: Polynomial, output: int, tangents: Sequence[Any]) -> Any:
    total = np.zeros(polynomial.shape)
    for weight, i in zip(polynomial.weights[output], polynomial.floating, strict=True):
        if tangents[i] is not None:
            total = total + weight * polynomial.power * polynomial.values[i] ** (polynomial.power - 1) * tangents[i]
    return total


def right_rule(polynomial: Polynomial) -> Callable[..., tuple[Any, ...]]:
    """The right jvp of the Function, for which all floating tensors are saved."""
    power, floating, kinds = polynomial.power, polynomial.floating, polynomial.outputs

    def jvp(ctx: Any, *tangents: Any) -> tuple[Any, ...]:
        pairs = list(zip(ctx.saved_tensors, [tangents[i] for i in floating], strict=True))
        slopes = [None if t is None else (power * x * t if power == 2 else power * t) for x, t in pairs]
        return tuple(
            _weighted(row, slopes) if kind == "float" else None
            for kind, row in zip(kinds, polynomial.weights.tolist(), strict=True)
        )

    return jvp


def _weighted(weights: Sequence[float], slopes: Sequence[Any]) -> Any:
    terms = [w * s for w, s in zip(weights, slopes, strict=True) if s is not None]
    return sum(terms[1:], terms[0])


def with_jvp(
    subject: ClauseSubject,
    polynomial: Polynomial,
    jvp: Callable[..., Any] | None = None,
    prepare: Callable[..., None] | None = None,
    **methods: Callable[..., Any],
) -> Any:
    """The Function with this jvp, by default the right one; ``prepare(ctx, inputs)`` sets up ctx for it."""

    def save(ctx: Any, inputs: Sequence[Any]) -> None:
        ctx.save_for_forward(*(inputs[i] for i in polynomial.floating))

    body = observing_ctx(subject, polynomial, lambda ctx, inputs, _: (prepare or save)(ctx, inputs))
    return subject.define(body, jvp=jvp or right_rule(polynomial), **methods)


def output_tangents(
    subject: ClauseSubject,
    polynomial: Polynomial,
    cls: Any,
    tangents: Sequence[Any],
    *,
    at: Sequence[Any] | None = None,
    after: Callable[[], Any] = tuple,
) -> tuple[Any, ...]:
    """The tangent that forward mode gives each output, None where there is none.

    ``tangents`` are arrays or tensors, one for each argument, or None. ``at`` are the tensor arguments if not new ones;
    ``after`` runs when apply has returned.
    """
    implementation, kinds, call = subject.implementation, polynomial.outputs, subject.call_of(polynomial, cls)

    def f(*tensors: Any) -> tuple[Any, ...]:
        outputs = call(*tensors)
        after()
        return tuple(y for y, kind in zip(outputs, kinds, strict=True) if kind != "static")

    wanted = [tangents[i] for i in polynomial.tensors]
    given = [t if implementation.is_tensor(t) else subject.tensors([t], polynomial.dtype)[0] for t in wanted]
    start = subject.primals(polynomial) if at is None else at
    found = iter(implementation.jvp(f, start, given)[1])
    return tuple(None if kind == "static" else next(found) for kind in kinds)
