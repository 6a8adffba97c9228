"""Whether backward is another linear map than the derivative everywhere, as where that is meant."""

from __future__ import annotations

import numpy as np

from autograd_conformance.harness.check.bench import Bench
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
    example = failure.subject.made(call)
    tracked = [slot for slot, requires in enumerate(call.mask) if requires]
    gradients = dict(zip(example.slots, example.run()[1], strict=True))

    def says_nothing(slot: int) -> bool:
        return gradients[slot] is None or not np.any(failure.subject.implementation.numpy(gradients[slot]))

    others = {slot: tuple(each for each in tracked if each != slot) for slot in tracked}
    return all(says_nothing(slot) or not _is_right(failure.bench, call, others[slot]) for slot in tracked)


def _is_right(bench: Bench, call: Call, others: tuple[int, ...]) -> bool:
    """Whether the derivative along all but these arguments was compared, and is right."""
    before = bench.subject.record.inconclusive
    return bench.derives_but_for(call, others) and bench.subject.record.inconclusive == before
