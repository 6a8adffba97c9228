"""Leaves for a generated Function, where a pass over its outputs starts, and what it gives the leaves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from autograd_conformance.harness.testing.clauses import ClauseSubject
from autograd_conformance.reference.polynomials import Polynomial


def new_leaves(subject: ClauseSubject, polynomial: Polynomial) -> list[Any]:
    """A new leaf for each tensor argument."""
    return [x.requires_grad_(track) for x, track in zip(subject.primals(polynomial), polynomial.track, strict=True)]


def starts_of(
    subject: ClauseSubject, polynomial: Polynomial, outputs: Sequence[Any], cotangents: Sequence[Any] | None = None
) -> tuple[tuple[Any, ...], ...]:
    """The outputs that have a cotangent, and these cotangents; by default all float outputs have one."""
    given = subject.tensors(polynomial.cotangents() if cotangents is None else cotangents, polynomial.dtype)
    return tuple(zip(*((y, g) for y, g in zip(outputs, given, strict=True) if g is not None), strict=True))


def right_gradients(polynomial: Polynomial, cotangents: Sequence[Any] | None = None) -> list[Any]:
    """The right gradients of the leaves that require one, for these cotangents or for those of all float outputs."""
    found = polynomial.vjp(polynomial.cotangents() if cotangents is None else cotangents)
    return [found[i] for i in polynomial.tracked]
