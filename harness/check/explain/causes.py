"""Why a test failed: the property nearest to the cause, from whose failure this one follows.

It is looked for when the simplest failing call is known. `QUESTIONS` are asked in their order, and the first
one that is answered with yes names the property. To ask about another property first, move its line.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from autograd_conformance.harness.check.bench import Bench
from autograd_conformance.harness.check.declaration.declaration import Own
from autograd_conformance.harness.check.discovery.nondeterminism import draws_in_backward
from autograd_conformance.harness.check.refusals.exceptions import returned_wrongly
from autograd_conformance.harness.outcomes import Broken, Kind, OutOfTime
from autograd_conformance.harness.testing.examined import own_frames
from autograd_conformance.harness.testing.example import Example
from autograd_conformance.harness.testing.observe import all_finite
from autograd_conformance.harness.testing.own_faults import noticed
from autograd_conformance.harness.testing.subject import Subject
from autograd_conformance.reference.properties import PROPERTIES
from autograd_conformance.strategies.calls import (
    Call,
    contiguous,
    copied,
    parse,
    recast,
    tame,
    varied,
    with_cotangents,
    with_fill_of_cotangents,
    with_inputs,
)
from autograd_conformance.strategies.changes import CHANGES
from autograd_conformance.strategies.empty_tensors import has_empty, lacks_elements
from autograd_conformance.strategies.layouts import REPEATED
from autograd_conformance.strategies.lengths import LONG, is_short, shorter
from autograd_conformance.strategies.sweeps import HALF
from autograd_conformance.strategies.values import MATRICES, TINY

# Properties whose tests make several calls, so that one call may leave something for another.
_OF_SEVERAL_CALLS = ("VJP-ACCUMULATE", "VJP-CHAIN", "DBL-CORRECT", "ENV-SAVED-HOOKS", "ENV-THREADS")
# Properties whose tests have other cotangents than the call's, in which gradients may not be linear.
_OF_OTHER_COTANGENTS = ("VJP-FD", "VJP-CHAIN", "DBL-CORRECT")
# Properties in whose tests other operations choose the layouts of tensors and cotangents.
_OF_OTHER_LAYOUTS = ("VJP-SAME-TENSOR", "VJP-CHAIN", "DBL-CORRECT", "BATCH-VMAP")


class Failure:
    """The failure of one test of a user's Function, with what the questions ask about it."""

    def __init__(self, subject: Subject, broken: Broken) -> None:
        assert isinstance(subject.function, Own)
        self.subject, self.function = subject, subject.function
        self.about, self.finding = PROPERTIES[subject.property_id], broken.finding
        self.raised = broken.__cause__ if broken.finding.is_loud else None
        self.call = parse(broken.finding.call)
        # The same with contiguous tensors.
        self.plain = contiguous(self.call)
        self.bench = Bench(subject)

    @property
    def example(self) -> Example:
        """The plain call with new tensors: backward may have written into those of another one."""
        return self.subject.made(self.plain)

    def cause(self) -> str:
        """The id of the property from whose failure this one follows; empty if it is a failure of its own."""
        found = next((q.property_id for q in QUESTIONS if q.is_answered(self)), ITSELF)
        if found == NEAREST:
            found = self.nearest or ITSELF
        own = found == self.subject.claim_id or (found == "VJP-REF" and self.about.plain)
        return ITSELF if own else found

    # What kind of failure it is.

    @property
    def of_numbers(self) -> bool:
        """Whether numbers were compared."""
        return self.raised is None and self.about.id != "MEM-FREE"

    @property
    def of_output(self) -> bool:
        """Whether the wrong number is one that forward returned."""
        return self.finding.component.get("what") in self.subject.made(self.call).output_names

    @property
    def of_plain_numbers(self) -> bool:
        """Whether the numbers of the plain call were compared, which is made once."""
        return self.of_numbers and self.about.plain

    @property
    def of_variant(self) -> bool:
        """Whether they were compared at values or lengths of a kind."""
        return self.of_plain_numbers and bool(self.subject.variant)

    @property
    def of_slopes(self) -> bool:
        """Whether numbers that follow from the first derivative were compared."""
        return self.of_numbers and (self.about.group == "second order" or self.about.own)

    # Which calls are right.

    def fails(self, *tests: str, kinds: Collection[Kind] = tuple(Kind)) -> bool:
        """Whether one of these tests fails with the plain call, by a finding of one of the kinds."""
        return any(self.bench.fails(test, self.plain, kinds) for test in tests)

    def is_right(self, call: Call, times: int = 1) -> bool:
        """Whether a call, and so many backward passes, raise nothing; where numbers were compared, whether all fit."""
        if self.raised is not None:
            return self.bench.runs(call, times)
        # The loss of a second derivative sends other cotangents than the call has.
        sloped = (call, _dense(call)) if self.of_slopes else ()
        return all(map(self.bench.derives, sloped)) and self.bench.passes(call, times)

    @cached_property
    def nearest(self) -> str | None:
        """The property about what the failing call has, and the next simpler, right one has not.

        That of the plain call if the simplest one fails as well; None if the call is right when it is made alone.
        """
        if not self.is_right(self.call):
            return next(self._made_right(), self._of_plain)
        if not self.is_right(copied(self.call)):
            return self._of_plain
        if self.of_plain_numbers:
            return None
        # What is scaled by ones stays the same. A call that is wrong in its first backward pass shows nothing.
        other = _dense(self.call)
        repeats = self.is_right(self.call, 2) and (self.is_right(other, 2) or not self.is_right(other))
        return None if repeats else "VJP-REPEAT"

    def _made_right(self) -> Iterator[str]:
        """The properties about what the call is right without, one thing after the other the call is right."""
        call = self.call
        for change in CHANGES:
            call = change.without(self.function, call) if change.without else call
            if change.without and self.is_right(call):
                yield change.property_id

    @property
    def _of_plain(self) -> str:
        """The property of which a failure of the plain call is one."""
        if self.of_slopes and not all(map(self.bench.derives, (self.plain, _dense(self.plain)))):
            return "VJP-FD"
        if self.raised is None or own_frames(self.raised, self.subject.implementation):
            return "VJP-REF"
        # The engine itself raises if it cannot use what backward returned, and so does code that is not Python.
        return returned_wrongly(self.raised)

    # The answers.

    def varies(self) -> bool:
        """Whether the call gives something else when it is made again."""
        return not self.function.declaration.stochastic and self.bench.varies(self.plain)

    def draws_in_backward(self) -> bool:
        """Whether backward draws random numbers of its own."""
        random = self.function.declaration.stochastic
        return random and draws_in_backward(self.subject.unseeded_example(self.plain))

    def lacks_elements(self) -> bool:
        """Whether backward raises for want of elements alone."""
        found = self.nearest == self._of_plain
        return found and lacks_elements(self.function, self.plain, self.bench.runs)

    def misses_reference(self) -> bool:
        """Whether forward alone differs from the reference that the user gave: backward derives this forward.

        The reference judges no call in half precision, in which no slope shows that backward does.
        """
        if self.function.referee is None or self.call.dtype in HALF:
            return False
        calls = self._ordinary() if self.subject.claim_id.startswith("FWD-VALUE/") else [self.call]
        own = Bench(self.subject, replace(self.function, soft=None))
        return any(not own.as_referred(each) and own.derives(each) for each in calls)

    def writes(self) -> bool:
        """Whether backward writes into tensors that are not its own."""
        # A backward that reads memory as if it were contiguous raises in more layouts than the expanded one.
        layouts = self.subject.made(self.plain).cotangent_layouts if self.raised is not None else ()
        reads = any(not self.bench.runs(with_cotangents(self.plain, layout)) for layout in layouts)
        # A gradient that is an input explains nothing but what other tests of the property find.
        kinds = tuple(Kind) if self.about.id == "VJP-PURE" else (Kind.MUTATED,)
        return not reads and self.fails("VJP-PURE", kinds=kinds)

    def overflows(self) -> bool:
        """Whether gradients alone are NaN or infinite with special numbers, and right with ordinary ones."""
        outputs, gradients = self.subject.made(self.call).run()
        finite = [all_finite(self.subject.implementation, each) for each in (outputs, _given(gradients))]
        return finite == [True, False] and self.bench.derives(tame(self.call))

    def is_ordinary(self) -> bool:
        """Whether the first derivative is wrong at ordinary values and lengths as well."""
        right = all(map(self.bench.derives, self._ordinary())) and self.bench.derives_nearby(self.call)
        if self.subject.variant == LONG and right:
            right = not is_short(self.call) and not self.bench.wrong_part(self.call)
        return not right

    def _ordinary(self) -> Iterator[Call]:
        """The call with ordinary values and lengths in the most precise dtype: nothing in it is peculiar."""
        plain = tame(self.call)
        if any(tensor.fill in (*MATRICES, TINY) for tensor in self.call.tensors):
            plain = varied(plain, self.function)
        for each in shorter(plain, self.function) if self.subject.variant == LONG else (plain,):
            yield recast(replace(each, smooth=True), self.function.dtypes[0], self.function)

    def is_extreme(self) -> bool:
        """Whether the test is about extreme values, and the call is right with ordinary ones."""
        return (
            self.of_numbers
            and self.about.of_extremes
            and self.nearest == "VJP-REF"
            and self.bench.passes(tame(self.call))
        )

    def is_wrong_with_other_cotangents(self) -> bool:
        """Whether the plain call is wrong in a layout that other operations may choose for its cotangents."""
        plain = _dense(self.plain)
        # An expanded cotangent has other values, too.
        expanded = ("expanded",) * self.is_right(with_cotangents(plain, REPEATED))
        layouts = (*expanded, *self.subject.made(plain).cotangent_layouts)
        return self._is_wrong(with_cotangents(plain, layout) for layout in layouts)

    def is_wrong_with_other_inputs(self) -> bool:
        """Whether the plain call is wrong in a layout that other operations may choose for its inputs."""
        plain = _dense(self.plain)
        return self._is_wrong(with_inputs(plain, layout) for layout in self.subject.made(plain).input_layouts)

    def _is_wrong(self, calls: Iterable[Call]) -> bool:
        return not all(self.is_right(call) and self.bench.passes(call) for call in calls)


def _dense(call: Call) -> Call:
    """The call with cotangents of which no two entries are equal: equal ones look the same in any layout."""
    return with_fill_of_cotangents(call, "dense")


def _given(gradients: Iterable[object]) -> list[object]:
    return [gradient for gradient in gradients if gradient is not None]


# In place of a property: the one of `Failure.nearest`, or that of the failing test itself.
NEAREST, ITSELF = "nearest", ""


@dataclass(frozen=True)
class Question:
    """A property, whose failure explains the failures that it ``concerns`` if the answer is yes."""

    property_id: str
    concerns: Callable[[Failure], bool]
    asks: Callable[[Failure], bool]

    def is_answered(self, failure: Failure) -> bool:
        """Whether it is asked, and the answer is yes; what raises has none."""
        try:
            return self.concerns(failure) and self.asks(failure)
        except (Exception, OutOfTime) as raised:  # noqa: BLE001 - a user's Function may raise anything
            noticed(raised)
            return False


def _any(_: Failure) -> bool:
    return True


def _exceptions(failure: Failure) -> bool:
    return failure.raised is not None


def _numbers(failure: Failure) -> bool:
    return failure.of_numbers


def _memory(failure: Failure) -> bool:
    return failure.about.id == "MEM-FREE" and failure.raised is None


def _numbers_without_elements(failure: Failure) -> bool:
    return failure.of_numbers and has_empty(failure.call)


def _referred(failure: Failure) -> bool:
    return failure.of_numbers and (failure.about.compared or failure.of_slopes)


def _scaled(failure: Failure) -> bool:
    return failure.of_numbers and failure.about.id in _OF_OTHER_COTANGENTS


def _written_to(failure: Failure) -> bool:
    # A test of plain calls has one backward, and that of VJP-LINEAR new cotangents for each.
    once = failure.about.plain or failure.about.id == "VJP-LINEAR"
    if failure.of_output or (once and failure.of_numbers):
        return False
    return not failure.of_slopes or failure.nearest is None


def _tangents(failure: Failure) -> bool:
    return failure.about.id == "JVP-ADJOINT"


def _variants(failure: Failure) -> bool:
    return failure.of_variant


def _variants_of_contiguous_calls(failure: Failure) -> bool:
    return failure.of_variant and copied(failure.call) == failure.call


def _wrong_alone(failure: Failure) -> bool:
    return failure.nearest is not None


def _laid_out_by_others(failure: Failure) -> bool:
    return failure.about.id in _OF_OTHER_LAYOUTS


def _several_calls(failure: Failure) -> bool:
    return failure.about.own or failure.about.id in _OF_SEVERAL_CALLS


class Fails:
    """Whether one of these tests fails with the plain call."""

    def __init__(self, *tests: str) -> None:
        self.tests = tests

    def __call__(self, failure: Failure) -> bool:
        return failure.fails(*self.tests)


# Nearest to the cause first: what changes from call to call; the plain call; what the failing call has that a plain one
# has not; what other operations choose; what calls leave for each other.
QUESTIONS = (
    # Only what is kept explains what stays alive.
    Question("VJP-PURE", _memory, Fails("VJP-PURE/owned")),
    Question(ITSELF, _memory, _any),
    Question("MEM-WRITTEN", _any, lambda f: f.function.facts.reads_new_memory),
    Question("VJP-REPEAT", _any, Failure.varies),
    Question("ENV-RANDOM", _any, Failure.draws_in_backward),
    Question("FWD-MASK", _numbers, Fails("FWD-MASK")),
    Question("FWD-EMPTY", _exceptions, Failure.lacks_elements),
    Question("VJP-FD", _numbers_without_elements, lambda f: not f.bench.derives(tame(f.call))),
    Question("FWD-VALUE", _referred, Failure.misses_reference),
    Question("VJP-LINEAR", _scaled, Fails("VJP-LINEAR")),
    Question("VJP-PURE", _written_to, Failure.writes),
    Question("JVP-REF", _tangents, lambda f: not f.bench.transports(f.call)),
    Question("VJP-FINITE", _variants, Failure.overflows),
    Question("VJP-FD", _variants, Failure.is_ordinary),
    Question(ITSELF, _variants_of_contiguous_calls, _any),
    Question(ITSELF, _any, Failure.is_extreme),
    Question(NEAREST, _wrong_alone, _any),
    Question("VJP-COTANGENT-LAYOUT", _laid_out_by_others, Failure.is_wrong_with_other_cotangents),
    Question("FWD-LAYOUT", _laid_out_by_others, Failure.is_wrong_with_other_inputs),
    Question("VJP-PURE", _several_calls, Fails("VJP-PURE/owned")),
    Question("VJP-REPEAT", _several_calls, Fails("VJP-REPEAT")),
    Question("ENV-SETTINGS", _several_calls, Fails("ENV-SETTINGS", "ENV-SETTINGS/seeds")),
)
