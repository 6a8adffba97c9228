"""Functions in whose methods a test looks at ctx."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from autograd_conformance.harness.testing.clauses import ClauseSubject
from autograd_conformance.reference.polynomials import Polynomial


def nothing(*_: Any) -> None:
    """Do nothing."""


def observing_ctx(
    subject: ClauseSubject,
    polynomial: Polynomial,
    enter: Callable[..., None] = nothing,
    leave: Callable[[Any], None] = nothing,
) -> Any:
    """The Function, with ``enter(ctx, inputs, outputs)`` once ctx is set up and ``leave(ctx)`` in backward and jvp."""
    body = subject.body(polynomial)

    def forward(ctx: Any, *args: Any) -> Any:
        outputs = body.forward(ctx, *args)
        enter(ctx, args, outputs)
        return outputs

    def setup_context(ctx: Any, inputs: Any, outputs: Any) -> None:
        body.setup_context(ctx, inputs, outputs)
        enter(ctx, inputs, outputs)

    def backward(ctx: Any, *cotangents: Any) -> Any:
        leave(ctx)
        return body.backward(ctx, *cotangents)

    def jvp(ctx: Any, *tangents: Any) -> Any:
        leave(ctx)
        some = tangents[polynomial.floating[0]]
        return tuple(0.0 * some if kind == "float" else None for kind in polynomial.outputs)

    entry = {"setup_context": setup_context} if polynomial.separate else {"forward": forward}
    return subject.define(body, name="Watched", **entry, backward=backward, jvp=jvp)


def run_forward_mode(subject: ClauseSubject, polynomial: Polynomial, cls: Any) -> Any:
    """Call a class with the Function's arguments in forward mode; every floating tensor has a tangent."""
    implementation, call = subject.implementation, subject.call_of(polynomial, cls)
    moving = [polynomial.arguments[i] != "integers" for i in polynomial.tensors]
    tangents = [x if moves else None for x, moves in zip(subject.primals(polynomial), moving, strict=True)]
    return implementation.jvp(
        lambda *tensors: tuple(filter(implementation.is_tensor, call(*tensors))), subject.primals(polynomial), tangents
    )


# The arguments of `three_tensors`.
THREE = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


def doubled(tensors: Sequence[Any]) -> tuple[Any, ...]:
    """New outputs for `three_tensors`."""
    return tuple(x * 2 for x in tensors)


def three_tensors(
    subject: ClauseSubject,
    outputs: Callable[[Any], Any],
    mark: Callable[..., None],
    look: Callable[[Any], None] = nothing,
    separate: bool = False,
) -> Callable[..., Any]:
    """The apply of a linear Function that maps three tensors to three, and cotangents or tangents likewise.

    ``mark(ctx, inputs, outputs)`` runs where ctx is set up, ``look(ctx)`` in backward and jvp.
    """

    def later(ctx: Any, *given: Any) -> Any:
        look(ctx)
        return outputs(given)

    methods = {"setup_context": mark, "backward": later, "jvp": later}
    return subject.custom(forward=lambda *tensors: outputs(tensors), **methods, separate=separate)
