"""The gradients of the same formula in built-in operations: what autograd makes of them sets what can be expected.

These are the operations of ``reference=`` or ``soft=``, or else those of the Function's own forward, differentiated
without its backward.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from autograd_conformance.harness.check.declaration.calling import Native
from autograd_conformance.harness.check.declaration.declaration import Own
from autograd_conformance.harness.testing.example import Example, has_setup_context
from autograd_conformance.harness.testing.own_faults import noticed
from autograd_conformance.implementations.protocol import as_tuple

# The most nodes of a graph to look at.
_NODES = 2000


class _Context:
    """Stands for ctx where forward is called as a plain function."""

    saved_tensors: tuple[Any, ...] = ()

    def __init__(self, needs: Sequence[bool]) -> None:
        self.needs_input_grad = tuple(needs)

    def save_for_backward(self, *tensors: Any) -> None:
        self.saved_tensors = tensors

    def _nothing(self, *_: Any) -> None:
        pass

    save_for_forward = mark_dirty = mark_non_differentiable = set_materialize_grads = _nothing


def gradients_of_formula(example: Example) -> tuple[Any, ...] | None:
    """The gradients of a call by built-in operations alone, in NumPy; None if these are not known."""
    implementation, f = example.implementation, _formula(example)
    if f is None or "requires_grad" not in implementation.capabilities:
        return None
    made: list[Any] = []

    def noted(*primals: Any) -> Any:
        made.extend(filter(implementation.is_tensor, as_tuple(example.call_with(f, *primals))))
        return tuple(made)

    try:
        _, pullback = implementation.vjp(noted, example.primals, track=example.track)
        rows = list(zip(made, example.function.outputs, strict=True))
        if any(o.differentiable and not implementation.requires_grad(y) for y, o in rows) or _custom(made):
            return None
        found = pullback(example.cotangents)
    except Exception as raised:  # noqa: BLE001 - forward may need a real ctx, or not be differentiable
        noticed(raised)
        return None
    return tuple(None if g is None else implementation.numpy(g) for g in found)


def _formula(example: Example) -> Callable[..., Any] | None:
    """The callable whose operations are the formula."""
    function, cls = example.function, example.cls
    assert isinstance(function, Own)
    declared = function.declaration
    given = declared.soft or (declared.reference if function.facts.composite and not function.surrogate else None)
    if given is not None or function.surrogate:
        return given
    if isinstance(cls, Native):
        return example.implementation.function(cls)
    if has_setup_context(example.implementation, cls):
        forward: Callable[..., Any] = cls.forward
        return forward
    return lambda *args: cls.forward(_Context(example.call.mask), *args)


def _custom(outputs: Sequence[Any]) -> bool:
    """Whether a custom Function is part of the graph: then it is not one of built-in operations."""
    left = [getattr(y, "grad_fn", None) for y in outputs]
    seen = set[Any]()
    while left and len(seen) < _NODES:
        node = left.pop()
        if node is None or node in seen:
            continue
        if hasattr(node, "_forward_cls"):
            return True
        seen.add(node)
        left.extend(following for following, _ in getattr(node, "next_functions", ()))
    return bool(left)
