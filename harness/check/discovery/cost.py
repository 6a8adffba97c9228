"""How long calls of a Function take, and the share of the examples that a slow one gets."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from autograd_conformance.harness.testing.attempts import attempted
from autograd_conformance.harness.testing.example import Example

# Seconds of forward and backward up to which a call is fast. All checks together make about 20000 calls, in a minute
# at most if a call takes a little more.
FAST = 0.002
# The smallest share: with fewer examples most tests have a single one.
_LEAST = 1 / 32
# On a busy machine a call waits; a part of that time counts where a call waits by itself.
_OF_WAITING = 0.1
# How often calls are made again that look slow.
_AGAIN = 4


class Watch:
    """The CPU time since it was made, or a part of the time that went by, if that is more."""

    def __init__(self) -> None:
        self._cpu, self._wall = time.process_time(), time.monotonic()

    @property
    def seconds(self) -> float:
        return max(time.process_time() - self._cpu, (time.monotonic() - self._wall) * _OF_WAITING)


def took(example: Example) -> float:
    """The seconds that forward and backward of a call take."""
    watch = Watch()
    example.run()
    return watch.seconds


def typical(examples: Sequence[Example]) -> float:
    """The seconds of a call, on average over the examples that raise nothing; 0 if all of them do.

    What the machine adds in one attempt does not count.
    """
    attempts = [[attempted(took, example) for _ in range(_AGAIN)] for example in examples]
    times = [min(each) for found in attempts if (each := [seconds for seconds in found if seconds is not None])]
    return sum(times) / max(1, len(times))


def share(seconds: float) -> float:
    """The share of the examples if a call takes so long: all of them for a fast one, half for up to twice as long.

    It is halved where the time doubles, so that the number of examples seldom depends on the load of the machine.
    """
    return 1.0 if seconds <= FAST else max(_LEAST, 0.5 ** math.ceil(math.log2(seconds / FAST)))


def slower_than(share: float) -> float:
    """The seconds that a call takes at least if it has this share, which is less than 1."""
    return FAST / 2 / share
