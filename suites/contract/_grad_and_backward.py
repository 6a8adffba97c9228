"""Gradients by grad, which returns them, or by backward, which adds them to .grad; each with or without a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from autograd_conformance.harness.checking.clauses import ClauseSubject
from autograd_conformance.reference.polynomials import TENSORS, Polynomial
from autograd_conformance.suites.contract._derivatives import arguments, primals

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


def function_of_tensors(subject: ClauseSubject, polynomial: Polynomial, cls: Any = None) -> Callable[..., Any]:
    """The generated Function, or another class with its arguments and outputs, as a function of its tensors."""
    body = cls or polynomial.body(subject.implementation.xp, subject.implementation.ag)
    apply = subject.implementation.function(body)
    return lambda *tensors: apply(*arguments(polynomial, tensors))


def argument_gradients(
    subject: ClauseSubject, way: str, polynomial: Polynomial, cotangents: Sequence[Any], cls: Any = None
) -> tuple[Any, ...]:
    """The gradient of each argument of a generated Function; None for non-tensors."""
    given = subject.tensors(cotangents, polynomial.dtype)
    f, tensors = function_of_tensors(subject, polynomial, cls), primals(subject, polynomial)
    found = iter(gradients_of(subject, way, f, tensors, given, polynomial.track))
    return tuple(next(found) if kind in TENSORS else None for kind in polynomial.arguments)


def with_changed_gradients(
    subject: ClauseSubject, polynomial: Polynomial, change: Callable[[tuple[Any, ...]], Any]
) -> type[Any]:
    """The generated Function with a backward that returns ``change(gradients)``."""
    body = polynomial.body(subject.implementation.xp, subject.implementation.ag)
    return _with_backward(body, lambda ctx, *cotangents: change(body.backward(ctx, *cotangents)))


def with_rule(
    subject: ClauseSubject, polynomial: Polynomial, rule: Callable[[tuple[Any, ...]], tuple[Any, ...]]
) -> type[Any]:
    """The generated Function with a backward that returns ``rule(cotangents)``."""
    body = polynomial.body(subject.implementation.xp, subject.implementation.ag)
    return _with_backward(body, lambda _, *cotangents: rule(cotangents))


def _with_backward(body: Any, backward: Callable[..., Any]) -> type[Any]:
    methods = {"backward": staticmethod(backward)}
    made: type[Any] = type(body)(body.__name__, (body,), methods)
    return made
