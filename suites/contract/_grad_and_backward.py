"""Gradients by grad, which returns them, or by backward, which adds them to .grad; each with or without a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from autograd_conformance.harness.testing.clauses import ClauseSubject, Fact
from autograd_conformance.reference.polynomials import TENSORS, Polynomial

GRAD, BACKWARD, WITH_GRAPH = "grad", "backward", " with create_graph"


def drawn_way(subject: ClauseSubject, data: Any) -> str:
    """Draw one of the ways to differentiate that the implementation has."""
    both = "accumulate" in subject.implementation.capabilities
    ways = (GRAD, BACKWARD) if both else (GRAD,)
    graphs = [way + WITH_GRAPH for way in ways] if _builds_graphs(subject) else []
    return str(subject.draw(data, (*ways, *graphs), "way"))


def drawn_create_graph(subject: ClauseSubject, data: Any) -> bool:
    """Draw whether a backward pass builds a graph, if the implementation can do that."""
    return bool(subject.draw(data, (False, True) if _builds_graphs(subject) else (False,), "create_graph"))


def _builds_graphs(subject: ClauseSubject) -> bool:
    return "double_backward" in subject.implementation.capabilities


def gradients_of(
    subject: ClauseSubject,
    way: str,
    f: Callable[..., Any],
    tensors: Sequence[Any],
    cotangents: Sequence[Any],
    track: Sequence[bool] | None = None,
) -> tuple[Any, ...]:
    """The gradients of ``f`` for the tensors, None where there is none."""
    tracked = [True] * len(tensors) if track is None else track
    graph = way.endswith(WITH_GRAPH)
    if way.startswith(GRAD):
        return tuple(subject.implementation.vjp(f, tensors, track=tracked)[1](cotangents, differentiable=graph))
    return subject.implementation.backward(f, tensors, cotangents, track=tracked, differentiable=graph)


def argument_gradients(
    subject: ClauseSubject, way: str, polynomial: Polynomial, cotangents: Sequence[Any], cls: Any = None
) -> tuple[Any, ...]:
    """The gradient of each argument of a generated Function; None for non-tensors."""
    given = subject.tensors(cotangents, polynomial.dtype)
    f, tensors = subject.call_of(polynomial, cls), subject.primals(polynomial)
    found = iter(gradients_of(subject, way, f, tensors, given, polynomial.track))
    return tuple(next(found) if kind in TENSORS else None for kind in polynomial.arguments)


def with_changed_gradients(
    subject: ClauseSubject, polynomial: Polynomial, change: Callable[[tuple[Any, ...]], Any]
) -> Any:
    """The generated Function with a backward that returns ``change(gradients)``."""
    body = subject.body(polynomial)
    return subject.define(body, backward=lambda ctx, *cotangents: change(body.backward(ctx, *cotangents)))


def with_rule(
    subject: ClauseSubject, polynomial: Polynomial, rule: Callable[[tuple[Any, ...]], tuple[Any, ...]]
) -> Any:
    """The generated Function with a backward that returns ``rule(cotangents)``."""
    return subject.define(subject.body(polynomial), backward=lambda _, *cotangents: rule(cotangents))


def replaced(values: Sequence[Any], position: int, value: Any) -> tuple[Any, ...]:
    """The values with another one at a position."""
    return (*values[:position], value, *values[position + 1 :])


def assert_refused(
    subject: ClauseSubject,
    data: Any,
    polynomial: Polynomial,
    wrong: Callable[[tuple[Any, ...]], Any],
    what: str,
    instead: str,
    *,
    right: Callable[[tuple[Any, ...]], Any] = tuple,
    naming: Sequence[Fact] = (),
    expected: Sequence[Any] | None = None,
) -> None:
    """A backward that returns ``wrong(gradients)`` raises; one that returns ``right(gradients)`` is accepted.

    ``what`` and ``instead`` say what these return. The gradients are ``expected``, by default the Function's own.
    """
    __tracebackhide__ = True
    way, cotangents = drawn_way(subject, data), polynomial.cotangents()

    def gradients(change: Callable[[tuple[Any, ...]], Any]) -> tuple[Any, ...]:
        cls = with_changed_gradients(subject, polynomial, change)
        return argument_gradients(subject, way, polynomial, cotangents, cls)

    subject.assert_raises(subject.implementation.refusals, lambda: gradients(wrong), what, naming=naming)
    got = subject.assert_accepted(lambda: gradients(right), instead)
    subject.assert_all_same(
        f"gradients with {instead}", got=got, expected=polynomial.vjp(cotangents) if expected is None else expected
    )
