"""A generated Function called on leaves that the test itself makes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from autograd_conformance.harness.checking.clauses import ClauseSubject
from autograd_conformance.reference.polynomials import Polynomial


def new_leaves(subject: ClauseSubject, polynomial: Polynomial) -> list[Any]:
    """A new leaf for each tensor argument."""
    tensors = subject.tensors([polynomial.values[i] for i in polynomial.tensors], polynomial.dtype)
    return [x.requires_grad_(track) for x, track in zip(tensors, polynomial.track, strict=True)]


def call_of(subject: ClauseSubject, polynomial: Polynomial, cls: Any = None) -> Callable[..., Any]:
    """The generated Function, or another class with its arguments, as a function of its tensor arguments alone."""
    function = cls or polynomial.body(subject.implementation.xp, subject.implementation.ag)
    values, positions = polynomial.values, polynomial.tensors

    def call(*tensors: Any) -> Any:
        given = dict(zip(positions, tensors, strict=True))
        return function.apply(*(given.get(i, value) for i, value in enumerate(values)))

    return call
