"""Refusals: what makes the forward of a user's Function raise."""

from __future__ import annotations

from autograd_conformance.harness.check.causes import runs
from autograd_conformance.harness.checking.subject import Subject
from autograd_conformance.reference.properties import PROPERTIES
from autograd_conformance.strategies.calls import Call, Tensor, contiguous, reshaped
from autograd_conformance.strategies.shapes import shape_tuples
from autograd_conformance.strategies.values import MATRICES


def refused(subject: Subject, call: Call) -> str | None:
    """The feature of a call that forward refuses: without it, the same call works. None if there is none."""
    if any(tensor.fill in MATRICES for tensor in call.tensors) and not runs_forward(subject, call):
        # The suite chose them: a right inverse refuses the zero matrix.
        return "matrices with equal eigenvalues"
    plain = contiguous(call)
    if PROPERTIES[subject.property_id].group == "batching" and runs(subject, plain):
        return "batching"
    empty = any(isinstance(a, Tensor) and 0 in a.shape for a in call.args)
    if empty and not runs_forward(subject, plain) and _runs_with_elements(subject, plain):
        return "tensors without elements"
    if plain != call and runs(subject, plain) and not runs_forward(subject, call):
        return "tensors that are not contiguous"
    return None


def runs_forward(subject: Subject, call: Call) -> bool:
    """Whether the call raises nothing."""
    return runs(subject, call, times=0)


def _runs_with_elements(subject: Subject, call: Call) -> bool:
    """Whether forward takes the call in shapes of the same ranks with elements."""
    ranks = [len(tensor.shape) for tensor in call.tensors]
    for shapes in shape_tuples(subject.function):
        if [len(shape) for shape in shapes] == ranks and not any(0 in shape for shape in shapes):
            full = reshaped(call, shapes, subject.function)
            if full is not None and runs_forward(subject, full):
                return True
    return False
