"""Long tensors for a user's Function: lengths beyond the blocks of kernels, as far as it takes them in little time."""

from __future__ import annotations

from itertools import pairwise

from autograd_conformance.harness.check.bench import Bench
from autograd_conformance.harness.check.discovery.cost import took
from autograd_conformance.harness.check.refusals.exceptions import deliberate
from autograd_conformance.harness.testing.own_faults import noticed
from autograd_conformance.reference.definitions import Shapes
from autograd_conformance.strategies.lengths import SHORT
from autograd_conformance.strategies.shapes import block_shape_tuples
from autograd_conformance.strategies.simple import simple_call

# A little more than one or several blocks of 32, 64, 128, 256 or 1024 elements.
LENGTHS = (65, 130, 257, 1025)
# Whole blocks, and one element more. Slow calls are of kernels that somebody wrote.
BORDERS = (16, 17, 32, 33, 64, 65, 128, 129, 256, 257, 1024, 1025)
# The time of forward and backward beyond which no longer tensors are tried, and as a multiple of that of short ones.
_SECONDS, _LONGER = 0.01, 4.0
# How often a call is made again that takes too long, but not so many times as long as it may.
_AGAIN, _FAR = 4, 10


def long_shapes(bench: Bench, usual: float = 0.0) -> tuple[tuple[Shapes, ...], str]:
    """Shapes with one long dimension that the Function takes, the shortest first; and which lengths are left out.

    Each dimension whose sizes are not declared is long in some of them. ``usual`` are the seconds that a call of a
    slow Function takes.
    """
    found: list[Shapes] = []
    most = max(_SECONDS, _LONGER * usual)
    for before, length in pairwise((SHORT, *(BORDERS if usual else LENGTHS))):
        each = block_shape_tuples(bench.function, (length,))
        timed = {shapes: _seconds(bench, shapes, most) for shapes in each}
        found += [shapes for shapes, seconds in timed.items() if seconds is not None and seconds <= most]
        if any(seconds is not None and seconds > most for seconds in timed.values()):
            return tuple(found), f"lengths tried: up to {before} (longer ones take too long)"
    return tuple(found), ""


def _seconds(bench: Bench, shapes: Shapes, most: float) -> float | None:
    """The seconds of a call in these shapes, once they are at most so many; None if forward refuses it.

    None of the time where anything else raises: the tests report that.
    """
    call = simple_call(bench.function, shapes)
    refusal = bench.raised_by_forward(call)
    if refusal is not None:
        return None if deliberate(refusal) else 0.0
    example = bench.subject.made(call)
    try:
        # The first calls may prepare what later ones use, and what takes far too long is not made again.
        seconds = took(example)
        left = _AGAIN if seconds <= _FAR * most else 1
        while seconds > most and left:
            seconds, left = min(seconds, took(example)), left - 1
        return seconds
    except Exception as raised:  # noqa: BLE001 - forward took the call, so backward must not raise
        noticed(raised)
        return 0.0
