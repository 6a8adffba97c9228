"""Calls of drawn Functions that save tensors or store them as attributes of ctx."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autograd_conformance.harness.testing.clauses import ClauseSubject
from autograd_conformance.reference.storing import NOTHING, Storing
from autograd_conformance.strategies.generated_functions import storings


@dataclass
class StoringCall:
    """A Function that stored tensors: its tensors by kind, its outputs, ctx, and what backward read last."""

    known: dict[str, Any]
    outputs: tuple[Any, ...]
    ctx: Any
    read: list[Any]
    gradients: Callable[..., tuple[Any, ...]]


def drawn_storing(subject: ClauseSubject, data: Any, **restrictions: Any) -> Storing:
    """Draw a Function that stores tensors, in the dtypes of the run."""
    function: Storing = subject.draw(data, storings(**{"dtypes": subject.dtypes, **restrictions}), "function")
    return function


def call_storing(
    subject: ClauseSubject,
    function: Storing,
    in_backward: Sequence[str] | None = None,
    prepare: Callable[[Any], Any] = lambda x: x,
) -> StoringCall:
    """Call it with ``prepare(leaf)`` of two leaves: the first requires grad. backward saves ``in_backward``."""
    contexts: list[Any] = []
    known: dict[str, Any] = {}
    read: list[Any] = []

    def on_store(ctx: Any, tensors: Mapping[str, Any]) -> None:
        contexts.append(ctx)
        known.update(tensors)

    def on_read(ctx: Any, found: Sequence[Any]) -> None:
        read[:] = found
        if in_backward is not None:
            new = next(iter(known.values())) * 0
            ctx.save_for_backward(*(None if kind == NOTHING else new for kind in in_backward))

    body = function.body(subject.implementation.ag, on_store, on_read)
    primals = subject.tensors([function.values[kind] for kind in ("input", "fixed input")], function.dtype)
    apply = subject.implementation.function(body)
    outputs, pullback = subject.implementation.vjp(lambda *xs: apply(*map(prepare, xs)), primals, track=[True, False])

    def gradients(arrays: Sequence[Any], **options: Any) -> tuple[Any, ...]:
        return tuple(pullback(subject.tensors(arrays, function.dtype), **options))

    return StoringCall(known, outputs, contexts[0], read, gradients)
