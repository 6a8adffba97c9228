"""Whether backward is another linear map than the derivative everywhere, as where that is meant."""

from __future__ import annotations

from autograd_conformance.harness.check.explain.causes import Failure
from autograd_conformance.strategies.calls import Call
from autograd_conformance.strategies.shapes import shape_tuples
from autograd_conformance.strategies.simple import simple_call

# In so many shapes a simple call is compared with finite differences.
_SHAPES = 3


def everywhere(failure: Failure) -> bool:
    """Whether a first derivative is wrong along each argument, in the failing call and in simple ones."""
    if failure.subject.claim_id != "VJP-FD" or failure.subject.variant:
        return False
    simple = (simple_call(failure.function, shapes) for shapes in shape_tuples(failure.function)[:_SHAPES])
    return all(_is_throughout(failure, call) for call in (failure.call, *simple))


def _is_throughout(failure: Failure, call: Call) -> bool:
    """Whether the derivative along no argument is right, but for those where it is 0."""
    tracked = [slot for slot, requires in enumerate(call.mask) if requires]
    others = {slot: tuple(each for each in tracked if each != slot) for slot in tracked}
    return not any(failure.bench.confirms_but_for(call, others[slot]) for slot in tracked)
