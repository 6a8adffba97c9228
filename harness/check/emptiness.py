"""Tensors without elements: the calls like one with them that have elements."""

from __future__ import annotations

from collections.abc import Iterator

from autograd_conformance.harness.checking.subject import Subject
from autograd_conformance.reference.definitions import Array
from autograd_conformance.strategies.calls import Call, Tensor, reshaped
from autograd_conformance.strategies.shapes import shape_tuples


def has_empty(call: Call) -> bool:
    """Whether a tensor of the call has no elements."""
    return any(0 in tensor.shape for tensor in call.tensors)


def with_elements(subject: Subject, call: Call) -> Iterator[Call]:
    """The call in shapes of the same ranks with elements."""
    arrays = zip(subject.function.arguments, call.args, strict=False)
    given = [a if isinstance(a, Tensor) else None for argument, a in arrays if isinstance(argument, Array)]
    for shapes in shape_tuples(subject.function):
        # A tensor that is not given may have any shape.
        pairs = list(zip(given, shapes, strict=False))
        alike = all(tensor is None or len(tensor.shape) == len(shape) for tensor, shape in pairs)
        if alike and not any(0 in shape for _, shape in pairs):
            full = reshaped(call, shapes, subject.function)
            if full is not None:
                yield full
