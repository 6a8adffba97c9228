"""Calls of generated Functions, and derivatives of any order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from autograd_conformance.harness.testing.clauses import ClauseSubject
from autograd_conformance.reference.polynomials import TENSORS, Polynomial

# Small enough that products of a few of them are exact in every dtype.
ENTRIES = st.lists(st.sampled_from((1.0, -1.0, 2.0, -2.0)), max_size=3)
FACTORS = (1, -1, 2, -2)


def arguments(polynomial: Polynomial, tensors: Sequence[Any]) -> tuple[Any, ...]:
    """The arguments of a generated Function, with these tensors in place of its own."""
    given = iter(tensors)
    pairs = zip(polynomial.arguments, polynomial.values, strict=True)
    return tuple(next(given) if kind in TENSORS else value for kind, value in pairs)


def drawn_cotangents(
    subject: ClauseSubject, data: Any, polynomial: Polynomial, label: str = "used outputs"
) -> tuple[Any, ...]:
    """Draw cotangents for some of the float outputs, at least one; None for the other outputs."""
    some = subject.draw(data, st.sets(st.sampled_from(polynomial.float_outputs), min_size=1), label)
    return polynomial.cotangents([i in some for i in range(len(polynomial.outputs))])


def gradient_function(
    subject: ClauseSubject, f: Callable[..., Any], cotangents: Sequence[Any], **options: Any
) -> Callable[..., tuple[Any, ...]]:
    """A function that returns the gradients of ``f`` for these cotangents, zeros where there is none."""

    def g(*tensors: Any) -> tuple[Any, ...]:
        found = subject.implementation.vjp(f, tensors, **options)[1](cotangents, differentiable=True)
        return tuple(_zeros(subject, x) if g is None else g for x, g in zip(tensors, found, strict=True))

    return g


def derivative_function(
    subject: ClauseSubject, f: Callable[..., Any], order: int, cotangent: Any
) -> Callable[..., tuple[Any, ...]]:
    """A function that returns a derivative of the elementwise ``f``; each order is weighted with the cotangent."""
    if order == 0:
        return f
    return gradient_function(subject, derivative_function(subject, f, order - 1, cotangent), (cotangent,))


def _zeros(subject: ClauseSubject, like: Any) -> Any:
    shape, dtype, _ = subject.implementation.describe(like)
    return subject.tensor(np.zeros(shape), dtype)
