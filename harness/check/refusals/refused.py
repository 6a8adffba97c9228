"""Refusals: what makes the forward of a user's Function raise."""

from __future__ import annotations

import cmath
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from autograd_conformance.harness.check.declaration.declaration import Own
from autograd_conformance.harness.check.refusals.declined import kind
from autograd_conformance.harness.check.refusals.empty_tensors import has_empty, lacks_elements, patterns, with_elements
from autograd_conformance.harness.check.refusals.long_tensors import simple_call
from autograd_conformance.harness.testing.attempts import raised_by
from autograd_conformance.harness.testing.subject import Subject
from autograd_conformance.reference.definitions import FLOATING, Shapes
from autograd_conformance.reference.properties import PROPERTIES
from autograd_conformance.strategies.calls import Call, Tensor, contiguous
from autograd_conformance.strategies.values import MATRICES

# What a rule for vmap refuses.
BATCHING = "batching"
# The choices of other arguments to try without elements.
_CHOICES = 4
# Numbers that are larger are extreme.
_LARGE = 2.0**32


def runs(subject: Subject, call: Call, times: int = 1) -> bool:
    """Whether the call, and its backward so many times over one graph, raise nothing."""
    example = subject.made(call)

    def run() -> None:
        _, pullback = subject.implementation.vjp(example.f, example.primals, track=example.track)
        for _ in range(times):
            pullback(example.cotangents)

    return raised_by(run) is None


def refused(subject: Subject, call: Call) -> str | None:
    """The feature of a call that forward refuses: without it, the same call works. None if there is none."""
    if any(tensor.fill in MATRICES for tensor in call.tensors) and not runs_forward(subject, call):
        # The suite chose them: a right inverse refuses the zero matrix.
        return "matrices with equal eigenvalues"
    plain = contiguous(call)
    about = PROPERTIES[subject.property_id]
    if has_empty(call) and not runs_forward(subject, plain) and _runs_with_elements(subject, plain):
        return "tensors without elements"
    if about.group == "batching" and runs(subject, plain):
        return BATCHING
    extreme = any(_is_extreme(value) for tensor in call.tensors for _, value in tensor.specials)
    if (about.of_extremes or extreme) and not runs_forward(subject, plain) and runs_forward(subject, _usual(plain)):
        return "extreme values"
    if plain != call and runs(subject, plain) and not runs_forward(subject, call):
        return "tensors that are not contiguous"
    return None


def _is_extreme(value: Any) -> bool:
    return not cmath.isfinite(value) or abs(value) > _LARGE


def _usual(call: Call) -> Call:
    """The call with ordinary values alone."""
    return replace(call, args=tuple(_ordinary(a) if isinstance(a, Tensor) else a for a in call.args))


def _ordinary(tensor: Tensor) -> Tensor:
    return replace(tensor, fill="ones", specials=()) if tensor.dtype in FLOATING else tensor


def runs_forward(subject: Subject, call: Call) -> bool:
    """Whether the call raises nothing."""
    return runs(subject, call, times=0)


def _runs_with_elements(subject: Subject, call: Call) -> bool:
    """Whether forward takes the call in shapes of the same ranks with elements."""
    return any(runs_forward(subject, full) for full in with_elements(subject, call))


def raises_when_empty(subject: Subject, call: Call) -> bool:
    """Whether backward raises for tensors without elements alone: forward takes them, and calls with elements run."""
    if not has_empty(call) or runs(subject, call) or not runs_forward(subject, call):
        return False
    return lacks_elements(subject, contiguous(call), partial(runs, subject))


def emptied(subject: Subject, note: Callable[[Call], None]) -> tuple[Shapes, ...]:
    """Shapes without elements for which backward raises, one for each choice of the dimensions that are empty."""
    function = subject.function
    assert isinstance(function, Own)

    def raises(shapes: Shapes) -> bool:
        # Other values in the same shapes show nothing else where there are hardly any values.
        for call in {kind(call): call for call in (simple_call(function, shapes, n) for n in range(_CHOICES))}.values():
            note(call)
            if raises_when_empty(subject, call):
                return True
        return False

    return tuple(filter(raises, patterns(function).values()))
