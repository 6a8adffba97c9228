"""Refusals: what makes the forward of a user's Function raise."""

from __future__ import annotations

import cmath
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from autograd_conformance.harness.check.bench import Bench
from autograd_conformance.reference.definitions import FLOATING, Shapes
from autograd_conformance.reference.properties import PROPERTIES
from autograd_conformance.reference.property import Property
from autograd_conformance.strategies.calls import Call, Tensor, contiguous
from autograd_conformance.strategies.empty_tensors import has_empty, lacks_elements, patterns, with_elements
from autograd_conformance.strategies.simple import kind, simple_call
from autograd_conformance.strategies.values import MATRICES

# What a rule for vmap refuses.
BATCHING = "batching"
# The choices of other arguments to try without elements.
_CHOICES = 4
# Numbers that are larger are extreme.
_LARGE = 2.0**32


def _of_matrices(bench: Bench, call: Call) -> bool:
    # The suite chose them: a right inverse refuses the zero matrix.
    return any(tensor.fill in MATRICES for tensor in call.tensors) and not bench.runs_forward(call)


def _of_empty(bench: Bench, call: Call) -> bool:
    plain = contiguous(call)
    return has_empty(call) and not bench.runs_forward(plain) and _runs_with_elements(bench, plain)


def _of_batches(bench: Bench, call: Call) -> bool:
    return _about(bench).group == "batching" and bench.runs(contiguous(call))


def _of_extremes(bench: Bench, call: Call) -> bool:
    plain, extreme = contiguous(call), any(_is_extreme(value) for t in call.tensors for _, value in t.specials)
    refuses = (_about(bench).of_extremes or extreme) and not bench.runs_forward(plain)
    return refuses and bench.runs_forward(_usual(plain))


def _of_layouts(bench: Bench, call: Call) -> bool:
    plain = contiguous(call)
    return plain != call and bench.runs(plain) and not bench.runs_forward(call)


# What a call has that forward refuses: without it, the same call works. The first row that applies is named.
REFUSALS: dict[str, Callable[[Bench, Call], bool]] = {
    "matrices with equal eigenvalues": _of_matrices,
    "tensors without elements": _of_empty,
    BATCHING: _of_batches,
    "extreme values": _of_extremes,
    "tensors that are not contiguous": _of_layouts,
}


def refused(bench: Bench, call: Call) -> str | None:
    """The feature of a call that forward refuses, in words; None if there is none."""
    return next((feature for feature, applies in REFUSALS.items() if applies(bench, call)), None)


def _about(bench: Bench) -> Property:
    return PROPERTIES[bench.tested.property_id]


def _is_extreme(value: Any) -> bool:
    return not cmath.isfinite(value) or abs(value) > _LARGE


def _usual(call: Call) -> Call:
    """The call with ordinary values alone."""
    return replace(call, args=tuple(_ordinary(a) if isinstance(a, Tensor) else a for a in call.args))


def _ordinary(tensor: Tensor) -> Tensor:
    return replace(tensor, fill="ones", specials=()) if tensor.dtype in FLOATING else tensor


def _runs_with_elements(bench: Bench, call: Call) -> bool:
    """Whether forward takes the call in shapes of the same ranks with elements."""
    return any(bench.runs_forward(full) for full in with_elements(bench.function, call))


def raises_when_empty(bench: Bench, call: Call) -> bool:
    """Whether backward raises for tensors without elements alone: forward takes them, and calls with elements run."""
    if not has_empty(call) or bench.runs(call) or not bench.runs_forward(call):
        return False
    return lacks_elements(bench.function, contiguous(call), bench.runs)


def emptied(bench: Bench, note: Callable[[Call], None]) -> tuple[Shapes, ...]:
    """Shapes without elements for which backward raises, one for each choice of the dimensions that are empty."""
    function = bench.function

    def raises(shapes: Shapes) -> bool:
        # Other values in the same shapes show nothing else where there are hardly any values.
        for call in {kind(call): call for call in (simple_call(function, shapes, n) for n in range(_CHOICES))}.values():
            note(call)
            if raises_when_empty(bench, call):
                return True
        return False

    return tuple(filter(raises, patterns(function).values()))
