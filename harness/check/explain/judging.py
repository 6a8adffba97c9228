"""Whether a call of a user's Function is right, whatever the test is about that met it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

import numpy as np

from autograd_conformance.harness.check.declaration.declaration import Own
from autograd_conformance.harness.check.oracle.perturb import near
from autograd_conformance.harness.check.refusals.long_tensors import short_parts
from autograd_conformance.harness.outcomes import Broken, Record
from autograd_conformance.harness.testing.example import Example
from autograd_conformance.harness.testing.observe import copied
from autograd_conformance.harness.testing.own_faults import noticed
from autograd_conformance.harness.testing.subject import Subject
from autograd_conformance.harness.testing.transforms import first_order, forward_mode
from autograd_conformance.strategies.calls import Call, contiguous

# How often a call is made to see whether it gives the same.
_REPEATS = 6
# How far the points are at which nothing is special, in units of the numbers' typical size.
_NEARBY = (2.0**-3, 2.0**-6)


class Judge:
    """Judges calls of a Function by the assertions of tests. A call that raises is not judged to be wrong."""

    def __init__(self, subject: Subject, function: Own | None = None) -> None:
        judged = subject.function if function is None else function
        self.subject = replace(
            subject, function=judged, property_id="VJP-REF", variant="", record=Record(), choices={}, tried=[]
        )

    def varies(self, call: Call) -> bool:
        """Whether the results change when the call is made again."""
        subject = self.subject
        try:
            # New tensors each time: the call may write into its own.
            example = subject.made(call)
            first = copied(subject.implementation, example.results())
            for _ in range(_REPEATS):
                again = subject.made(call).results()
                subject.assert_same(call, example.result_names, got=again, expected=first)
        except Exception as raised:  # noqa: BLE001 - a user's Function may raise anything
            noticed(raised)
            return isinstance(raised, Broken)
        return False

    def passes(self, call: Call, times: int = 1) -> bool:
        """Whether outputs and the gradients of the last of ``times`` backward passes match the plain call's."""
        example = self.subject.made(call)
        return _holds(
            lambda: self.subject.assert_close(
                call, example.result_names, got=example.results(times=times), expected=example.expected.results()
            )
        )

    def as_referred(self, call: Call) -> bool:
        """Whether no output is found to differ from the user's reference; it may refuse the call."""
        assert isinstance(self.subject.function, Own)
        assert self.subject.function.referee is not None
        try:
            outputs = self.subject.function.referee.outputs(self.subject.made(call))
            names, got, expected = zip(*outputs, strict=True)
        except Exception as raised:  # noqa: BLE001 - a user's reference may raise anything
            noticed(raised)
            return True
        return _holds(lambda: self.subject.assert_close(call, names, got=got, expected=expected))

    def transports(self, call: Call) -> bool:
        """Whether no tangent of the outputs is found to be wrong."""
        example = self.subject.made(call)

        def look() -> None:
            got, expected = forward_mode(example)
            self.subject.assert_close(call, example.output_names, got=got, expected=expected)

        return _holds(look)

    def derives(self, call: Call) -> bool:
        """Whether the first derivative of a call is not found to be wrong."""
        function = self.subject.function
        return (function.surrogate and function.soft is None) or self._derives_at(self.subject.made(call))

    def _derives_at(self, example: Example) -> bool:
        return _holds(lambda: self.subject.assert_first_order(example.call, first_order(example)))

    def derives_but_for(self, call: Call, slots: Collection[int]) -> bool:
        """Whether the first derivative is not found to be wrong along the arguments but those at these positions."""
        example = self.subject.made(call)
        rows = zip(example.slots, example.track, strict=True)
        # The call itself keeps its mask.
        example.expected.track = tuple(tracked and slot not in slots for slot, tracked in rows)
        return not any(example.expected.track) or self._derives_at(example)

    def derives_nearby(self, call: Call) -> bool:
        """Whether the first derivative is not found to be wrong near a call with special values or equal entries.

        Where it is, nothing special is the cause.
        """
        if not any(tensor.specials for tensor in call.tensors):
            return True
        example, rng = self.subject.made(contiguous(call)), np.random.default_rng(call.seed)
        return all(self._derives_at(near(example, share, rng)) for share in _NEARBY)

    def wrong_part(self, call: Call) -> str:
        """What is wrong with the first derivative in short tensors with the values of long ones; empty if it is not."""
        for what, part in short_parts(self.subject.made(contiguous(call))):
            if not self._derives_at(part):
                return what
        return ""


def _holds(look: Callable[[], None]) -> bool:
    try:
        look()
    except Exception as raised:  # noqa: BLE001 - an exception is another fault than a wrong number
        noticed(raised)
        return not isinstance(raised, Broken)
    return True
