"""The bench: it runs single calls of a user's Function to say why a test failed, and remembers what they gave."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from autograd_conformance.harness.check.declaration.declaration import Own
from autograd_conformance.harness.check.oracle.perturb import near
from autograd_conformance.harness.outcomes import Broken, Finding, Kind, OutOfTime, Record
from autograd_conformance.harness.testing.attempts import attempted, raised_by
from autograd_conformance.harness.testing.drawing import prepare
from autograd_conformance.harness.testing.example import Example
from autograd_conformance.harness.testing.marks import TESTS, Claim
from autograd_conformance.harness.testing.observe import copied
from autograd_conformance.harness.testing.own_faults import noticed
from autograd_conformance.harness.testing.subject import Subject
from autograd_conformance.harness.testing.transforms import first_order, forward_mode
from autograd_conformance.strategies.calls import Call, contiguous
from autograd_conformance.strategies.lengths import SHORT, cut

T = TypeVar("T")

# How often a call is made to see whether it gives the same.
_REPEATS = 6
# How far the points are at which nothing is special, in units of the numbers' typical size.
_NEARBY = (2.0**-3, 2.0**-6)
# The examples of another test that runs with a call: it may draw more than that.
_EXAMPLES = 3

# The short sides to try instead of a long one; parts of the last are tried with the values of the long tensor.
_SIDES = (3, 4, 5, 8, 17, 16)


@dataclass(frozen=True)
class Outcome:
    """What a test says of a call: that it holds, or the finding of its failure; neither if that is unknown."""

    holds: bool
    finding: Finding | None = None

    def is_like(self, finding: Finding) -> bool:
        """Whether it is a failure of the same kind as another one."""
        return self.finding is not None and kind_of(self.finding) == kind_of(finding)


def kind_of(finding: Finding) -> tuple[Any, ...]:
    """What failures of one kind have in common, whatever the call is."""
    raised = (finding.raised.type, finding.raised.at) if finding.raised else ()
    return finding.kind, raised, finding.component.get("aspect")


def _remembered(ask: Callable[..., T]) -> Callable[..., T]:
    """A method of the bench whose answer about a call is kept: it is the same in every test of the Function."""

    @wraps(ask)
    def answer(bench: Bench, call: Call, *more: Any) -> T:
        if not bench.remembers:
            return ask(bench, call, *more)
        key = ask.__name__, repr(call), more
        if key not in bench.known:
            bench.known[key] = ask(bench, call, *more)
        found: T = bench.known[key]
        return found

    return answer


class Bench:
    """Runs calls of one Function: those of its tests, and plain ones, which are judged by the assertions of tests.

    A plain call that raises is not judged to be wrong. ``tested`` is the subject of the test that asks, and ``subject``
    that by which plain calls are judged. ``spent`` counts the examples of tests that were run. Unless it ``remembers``,
    plain calls are run whenever they are asked about.
    """

    def __init__(self, subject: Subject, function: Own | None = None, *, remembers: bool = True) -> None:
        judged = function or subject.function
        assert isinstance(judged, Own)
        self.tested, self.function, self.remembers = subject, judged, remembers
        self.subject = replace(
            subject, function=judged, property_id="VJP-REF", variant="", record=Record(), choices={}, tried=[]
        )
        self.known: dict[Any, Any] = judged.known
        self.spent = 0

    # Tests.

    def outcome(self, test: Any, call: Call, examples: int = 1) -> Outcome:
        """What a test says of a call. It runs ``examples`` times, because it may draw more than the call."""
        key = test.claim.property_id, test.claim.variant, self.tested.device, repr(call)
        made, known = self.known.get(key, (0, Outcome(False)))
        if made < examples and known.finding is None:
            record = self.tested.record.another()
            ended = attempted(self._run, test, call, examples, record)
            first = next(iter(record.failures.values()), None)
            held = bool(ended) and record.checks > 0 and not record.excused
            known = Outcome(held and first is None, first)
            self.spent += max(record.examples, 1)
            # What nobody had the time to see may be seen later.
            if ended is not False or first is not None:
                self.known[key] = examples, known
        return known  # type: ignore[no-any-return]

    def failure(self, test: Any, call: Call, examples: int = 1) -> Broken | None:
        """The failure of a test with a call, with all that is said of it; None if there is none."""
        try:
            self._run(test, call, examples, self.tested.record.another(), keeps_failures=False)
        except Broken as broken:
            return broken
        return None

    def _run(self, test: Any, call: Call, examples: int, record: Record, *, keeps_failures: bool = True) -> bool:
        """Run a test with a call; True if nothing is raised."""
        this = replace(
            self.tested, property_id=test.claim.property_id, variant=test.claim.variant, record=record, replayed=call,
            excluded=(), choices={}, tried=[], keeps_failures=keeps_failures,
        )  # fmt: skip
        prepare(test, this.key["id"], 0, examples=1, least=examples, shrink=False)
        try:
            test(subject=this)
        except OutOfTime:
            return False
        return True

    def fails(self, name: str, call: Call, kinds: Collection[Kind] = tuple(Kind)) -> bool:
        """Whether a test of this name, such as VJP-PURE/owned, fails with this call because of what it compares.

        Only failures of these ``kinds`` count, and only tests that the Function gets.
        """
        tests = (test for test in TESTS[name] if self._has(test.claim))
        found = (self.outcome(test, call, _EXAMPLES).finding for test in tests)
        return any(f is not None and not f.is_loud and f.kind in kinds for f in found)

    def _has(self, claim: Claim) -> bool:
        function = self.tested.function
        assert isinstance(function, Own)
        sees = function.sees_inside or not claim.looks_inside
        has = claim.needs <= self.tested.implementation.capabilities
        return sees and has and claim.where(function) and function.wants(claim)

    # Plain calls.

    def runs(self, call: Call, times: int = 1) -> bool:
        """Whether the call, and its backward so many times over one graph, raise nothing."""
        return self._runs(call, times)

    @_remembered
    def _runs(self, call: Call, times: int) -> bool:
        example = self.subject.made(call)

        def run() -> None:
            _, pullback = example.implementation.vjp(example.f, example.primals, track=example.track)
            for _ in range(times):
                pullback(example.cotangents)

        return raised_by(run) is None

    def runs_forward(self, call: Call) -> bool:
        """Whether forward raises nothing."""
        return self.runs(call, 0)

    def raised_by_forward(self, call: Call) -> Exception | None:
        """What forward raises for a call."""
        return raised_by(lambda: self.subject.made(call).outputs())

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
        return self._passes(call, times)

    @_remembered
    def _passes(self, call: Call, times: int) -> bool:
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

    @_remembered
    def transports(self, call: Call) -> bool:
        """Whether no tangent of the outputs is found to be wrong."""
        example = self.subject.made(call)

        def look() -> None:
            got, expected = forward_mode(example)
            self.subject.assert_close(call, example.output_names, got=got, expected=expected)

        return _holds(look)

    @_remembered
    def derives(self, call: Call) -> bool:
        """Whether the first derivative of a call is not found to be wrong."""
        function = self.subject.function
        return (function.surrogate and function.soft is None) or self._derives_at(self.subject.made(call))

    def _derives_at(self, example: Example) -> bool:
        return _holds(lambda: self.subject.assert_first_order(example.call, first_order(example)))

    @_remembered
    def derives_but_for(self, call: Call, slots: Collection[int]) -> bool:
        """Whether the first derivative is not found to be wrong along the arguments but those at these positions."""
        example = self._made_but_for(call, slots)
        return not any(example.expected.track) or self._derives_at(example)

    @_remembered
    def confirms_but_for(self, call: Call, slots: Collection[int]) -> bool:
        """Whether the first derivative along the arguments but those is right, where gradients of 0 would be wrong."""
        example, before = self._made_but_for(call, slots), self.subject.record.telling
        return any(example.expected.track) and self._derives_at(example) and self.subject.record.telling > before

    def _made_but_for(self, call: Call, slots: Collection[int]) -> Example:
        example = self.subject.made(call)
        rows = zip(example.slots, example.track, strict=True)
        # The call itself keeps its mask.
        example.expected.track = tuple(tracked and slot not in slots for slot, tracked in rows)
        return example

    @_remembered
    def derives_nearby(self, call: Call) -> bool:
        """Whether the first derivative is not found to be wrong near a call with special values or equal entries.

        Where it is, nothing special is the cause.
        """
        if not any(tensor.specials for tensor in call.tensors):
            return True
        example, rng = self.subject.made(contiguous(call)), np.random.default_rng(call.seed)
        return all(self._derives_at(near(example, share, rng)) for share in _NEARBY)

    @_remembered
    def wrong_part(self, call: Call) -> str:
        """What is wrong with the first derivative in short tensors with the values of long ones; empty if it is not."""
        for what, part in _short_parts(self.subject.made(contiguous(call))):
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


def _short_parts(example: Example) -> Iterator[tuple[str, Example]]:
    """The call with a short side instead of each long one, in its own values, and in each part of those of the call.

    Each with a sentence that is true if it is wrong.
    """
    call, function = example.call, example.function
    longest = max((side for tensor in call.tensors for side in tensor.shape), default=0)
    for side in _SIDES if longest > SHORT else ():
        short_call = cut(call, function, longest, side)
        if short_call is None:
            return
        short = example.of(short_call)
        yield f"not a limit of the length: tensors of length {side} are wrong as well", short
        for start in range(0, longest - side + 1, side) if side == _SIDES[-1] else ():
            part = slice(start, start + side)
            values = {
                number: example.values[slot][tuple(part if n == longest else slice(None) for n in tensor.shape)]
                for number, (slot, tensor) in enumerate(zip(example.slots, call.tensors, strict=True))
            }
            where = f"the entries from {start} to {start + side - 1}"
            yield (
                f"not the length: {where} are wrong in a short tensor as well, so look at their values",
                short.given(values),
            )
