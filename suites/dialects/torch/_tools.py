"""What several modules of this dialect need: a generated Function called on leaves of the test's own."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from torch.autograd.gradcheck import GradcheckError

from autograd_conformance.harness.clauses import ClauseSubject, Fact
from autograd_conformance.reference.polynomials import Polynomial


def leaves_of(subject: ClauseSubject, polynomial: Polynomial) -> list[Any]:
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


def metadata_of(node: Any) -> dict[str, Any]:
    """A copy of a node's metadata, whether they are a method, as documented, or an attribute, as they are."""
    found = node.metadata
    return dict(found() if callable(found) else found)


@contextmanager
def small_garbage() -> Iterator[None]:
    """Collecting garbage looks at what was made within, and costs little."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def assert_refused(
    subject: ClauseSubject, what: str, check: Callable[..., bool], naming: Sequence[Fact] = (), **options: Any
) -> None:
    """gradcheck or gradgradcheck, ``check``, raises its error, or returns False if it is told not to raise."""
    subject.assert_raises(GradcheckError, lambda: check(**options), what, naming=naming)
    got = subject.assert_accepted(lambda: check(raise_exception=False, **options), f"{what} with raise_exception=False")
    subject.assert_equal(f"{what} with raise_exception=False", got=got, expected=False)
