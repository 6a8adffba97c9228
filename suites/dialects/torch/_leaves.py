"""A generated Function called on leaves that the test itself makes."""

from __future__ import annotations

from typing import Any

from autograd_conformance.harness.checking.clauses import ClauseSubject
from autograd_conformance.reference.polynomials import Polynomial


def new_leaves(subject: ClauseSubject, polynomial: Polynomial) -> list[Any]:
    """A new leaf for each tensor argument."""
    return [x.requires_grad_(track) for x, track in zip(subject.primals(polynomial), polynomial.track, strict=True)]
