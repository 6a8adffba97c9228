"""The cause of a failure of a user's Function: the failing call is made again with one peculiarity less each time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from autograd_conformance.harness.check import likely
from autograd_conformance.harness.check.declaration import Own
from autograd_conformance.harness.check.emptiness import NOT_ZERO, has_empty, lacks_elements
from autograd_conformance.harness.check.lengths import LONG, is_short, short_parts, shorter
from autograd_conformance.harness.check.mistakes import returned_wrongly
from autograd_conformance.harness.check.moving import near
from autograd_conformance.harness.check.outside import changes_with_mask, draws_in_backward
from autograd_conformance.harness.checking.drawing import explaining
from autograd_conformance.harness.checking.examined import own_frames
from autograd_conformance.harness.checking.example import Example
from autograd_conformance.harness.checking.observe import all_finite, changes, copied, state
from autograd_conformance.harness.checking.peculiarities import PECULIARITIES
from autograd_conformance.harness.checking.policy import Policy
from autograd_conformance.harness.checking.settings import changed_settings, reseeding
from autograd_conformance.harness.checking.subject import Subject
from autograd_conformance.harness.checking.transforms import first_order, forward_mode
from autograd_conformance.harness.outcomes import Broken
from autograd_conformance.reference.properties import PROPERTIES
from autograd_conformance.strategies.calls import (
    Call,
    contiguous,
    recast,
    tame,
    varied,
    with_cotangents,
    with_fill_of_cotangents,
    with_inputs,
)
from autograd_conformance.strategies.calls import copied as copied_call
from autograd_conformance.strategies.layouts import REPEATED
from autograd_conformance.strategies.sweeps import HALF
from autograd_conformance.strategies.values import MATRICES, TINY

# How often a call is repeated to see whether it gives the same.
_REPEATS = 6
# The properties about layouts.
_OF_LAYOUTS = ("FWD-LAYOUT", "VJP-COTANGENT-LAYOUT")
# Factors of cotangents. Gradients have the same factor.
_FACTORS = (0.125, 8.0)
# How far the points are at which nothing is special, in units of the numbers' typical size.
_NEARBY = (2.0**-3, 2.0**-6)


class Causes:
    """Finds the property nearest to the cause of a failure. ``policy`` says which results of a probe count as right."""

    def __init__(self, subject: Subject, policy: Callable[[Subject], Policy]) -> None:
        assert isinstance(subject.function, Own)
        self.subject, self.function, self.implementation = subject, subject.function, subject.implementation
        self._property, self._policy = PROPERTIES[subject.property_id], policy

    def of(self, call: Call, raised: Exception | None = None) -> str | None:
        """The id of the property from whose failure this one follows; None if it is a failure of its own."""
        if self._property.id == "MEM-FREE":
            # Only what is kept explains what stays alive.
            return "VJP-PURE" if self._keeps(call) else None
        found = self._found(call, raised)
        if explaining():
            found = self._refined(call, found, raised)
        about, claim = self._property, self.subject.claim_id
        return None if found == claim or (found == "VJP-REF" and about.plain) else found

    def likely(self, call: Call, about: str) -> str:
        """The likely cause of a wrong number, a failure of ``about``; empty if it is the property's usual one."""
        if about in _OF_LAYOUTS:
            return likely.of_layouts(self.function, call, self._judge.passes)
        if about != "VJP-FD":
            return ""
        if self.subject.variant == LONG and not is_short(call):
            return self._judge.wrong_part(call) if explaining() else ""
        if not self.subject.variant and not is_short(call) and explaining() and not self._judge.wrong_part(call):
            return dict(PROPERTIES[about].of_variant)[LONG]
        plain, right = contiguous(call), self._judge.derives
        if lacks_elements(self.subject, plain, right):
            return NOT_ZERO
        missing = likely.missing(self.subject.made(plain))
        if missing and self._judge.derives_but_for(plain, missing):
            return likely.of_missing(self.function, missing)
        return likely.of_probes(self.function, self.subject.made(plain), right)

    def _found(self, call: Call, raised: Exception | None) -> str | None:
        about = self._property
        outside: dict[str, Callable[[Call], bool]] = {"VJP-REPEAT": self._varies, "ENV-RANDOM": self._draws}
        if raised is None:
            outside["FWD-MASK"] = partial(changes_with_mask, self.subject)
        if explaining() and (shown := next((name for name, of in outside.items() if of(contiguous(call))), None)):
            return shown
        if raised is not None:
            # The engine itself raises if it cannot use what backward returned.
            plain = "VJP-REF" if own_frames(raised, self.implementation) else returned_wrongly(raised)
            if self._shares(call):
                return "VJP-PURE"
            found = self._nearest(call, partial(runs, self.subject), plain)
            if found is None and about.of_other_layouts and explaining():
                return self._of_layouts(call, lambda each: runs(self.subject, each) and self._judge.passes(each))
            lacks = found == plain and lacks_elements(self.subject, contiguous(call), partial(runs, self.subject))
            return "FWD-EMPTY" if lacks else found
        if has_empty(call) and not self._judge.derives(tame(call)):
            return "VJP-FD"
        if (about.compared or about.group == "second order") and self._misses_reference(call):
            return "FWD-VALUE"
        if about.group == "second order":
            # The loss of a second derivative sends other cotangents than the call has.
            for each in (contiguous(call), _with_dense_cotangents(contiguous(call))):
                if not self._judge.derives(each):
                    return self._first_right(each, self._judge.derives, "VJP-FD") if explaining() else "VJP-FD"
            # What is wrong with the first derivative of such a call alone explains the second.
            return self._of_values(call, "VJP-FD") if explaining() else None
        if about.id == "JVP-ADJOINT" and not self._judge.transports(call):
            return "JVP-REF"
        if about.own and not self._judge.derives(contiguous(call)):
            return "VJP-FD"
        if about.plain and self.subject.variant:
            if self._overflows(call):
                return "VJP-FINITE"
            right = all(map(self._judge.derives, self._ordinary(call))) and self._judge.derives_nearby(call)
            if self.subject.variant == LONG and right and explaining():
                right = not is_short(call) and not self._judge.wrong_part(call)
            # What a copy of the tensors or of the cotangents has not is a fault of layouts.
            laid = right and copied_call(call) != call
            return "VJP-FD" if not right else self._nearest(call, self._judge.passes, "") or None if laid else None
        found = self._of_values(call, "VJP-REF")
        extreme = found == "VJP-REF" and about.of_extremes and self._judge.passes(tame(call))
        return None if extreme else found

    def _overflows(self, call: Call) -> bool:
        """Whether gradients alone are NaN or infinite with special numbers, and right with ordinary ones."""
        outputs, gradients = self.subject.made(call).run()
        lost = not all_finite(self.implementation, [g for g in gradients if g is not None])
        return lost and all_finite(self.implementation, outputs) and self._judge.derives(tame(call))

    def _misses_reference(self, call: Call) -> bool:
        """Whether forward alone differs from the reference that the user gave: backward derives this forward.

        The reference judges no call in half precision, in which no slope shows that backward does.
        """
        if self.function.referee is None or call.dtype in HALF:
            return False
        calls = self._ordinary(call) if self.subject.claim_id.startswith("FWD-VALUE/") else [call]
        own = self._judge_of(replace(self.function, soft=None))
        return any(not own.as_referred(each) and own.derives(each) for each in calls)

    def _of_values(self, call: Call, plain: str) -> str | None:
        """The property that explains wrong numbers; where other operations choose the layouts, one about these."""
        found = self._nearest(call, self._judge.passes, plain)
        of_layouts = found is None and self._property.of_other_layouts and explaining()
        return self._of_layouts(call, self._judge.passes) if of_layouts else found

    def _of_layouts(self, call: Call, right: Callable[[Call], bool]) -> str | None:
        """The property about the layouts in which the call, which is right when it is made alone, is wrong."""
        # Equal numbers look the same in any layout.
        plain = _with_dense_cotangents(contiguous(call))
        example = self.subject.made(plain)
        # An expanded cotangent has other values, too.
        expanded = ["expanded"] * right(with_cotangents(plain, REPEATED))
        laid = {
            "VJP-COTANGENT-LAYOUT": (with_cotangents(plain, n) for n in (*expanded, *example.cotangent_layouts)),
            "FWD-LAYOUT": (with_inputs(plain, layout) for layout in example.input_layouts),
        }
        return next((name for name, calls in laid.items() if not all(map(right, calls))), None)

    def _shares(self, call: Call) -> bool:
        """Whether a test that changes gradients changes inputs, because backward returned these themselves."""
        if self.subject.claim_id != "VJP-PURE/owned":
            return False
        example = self.subject.made(contiguous(call))
        i = self.implementation
        return _shows(
            lambda: any(i.shares_memory(g, x) for g in example.run()[1] if g is not None for x in example.primals)
        )

    def _refined(self, call: Call, found: str | None, raised: Exception | None) -> str | None:
        """The answer, or a property nearer to the cause: about what backward changes, scales or remembers."""
        about = self._property
        provisional = found is None or PROPERTIES[found].provisional
        # A plain call that is right in another layout is wrong for a reason that is not its formula.
        of_call = raised is None and about.plain and found is None
        writes = provisional and not of_call and self._writes(call, raised)
        if writes and (raised is not None or self._is_right_once(call, found)):
            return "VJP-PURE"
        if writes and found == "VJP-REPEAT":
            # What was written to is given again.
            found = "VJP-FD" if about.id == "VJP-FD" else None
        if found is None and (about.own or about.of_several_calls):
            if self._keeps(call):
                return "VJP-PURE"
            if self._remembers(call):
                return "VJP-REPEAT"
            if self._sets(call):
                return "ENV-SETTINGS"
        scales = about.of_other_cotangents and found in (None, "VJP-FD") and not has_empty(call)
        if raised is None and scales and self._bends(call):
            return "VJP-LINEAR"
        return found

    def _nearest(self, call: Call, right: Callable[..., bool], plain: str) -> str | None:
        """The property about what the failing call has, and the next simpler, right one has not.

        ``plain`` if the simplest call fails as well; None if the call is right when it is made alone.
        """
        if right(call):
            # What is scaled by ones stays the same.
            repeats = all(right(each, times=2) for each in (call, _with_dense_cotangents(call)))
            return plain if not right(copied_call(call)) else None if repeats else "VJP-REPEAT"
        return self._first_right(call, right, plain)

    def _first_right(self, call: Call, right: Callable[..., bool], plain: str) -> str:
        """The property about the first peculiarity without which the call is right; ``plain`` if there is none."""
        return next((name for name, simpler in _simpler(self.function, call) if right(simpler)), plain)

    def _ordinary(self, call: Call) -> Iterator[Call]:
        """The call with ordinary values and lengths in the most precise dtype: nothing in it is peculiar."""
        plain = tame(call)
        if any(tensor.fill in (*MATRICES, TINY) for tensor in call.tensors):
            plain = varied(plain, self.function)
        for each in shorter(plain, self.function) if self.subject.variant == LONG else (plain,):
            yield recast(replace(each, smooth=True), self.function.dtypes[0], self.function)

    @cached_property
    def _judge(self) -> _Judge:
        return self._judge_of(self.function)

    def _judge_of(self, function: Own) -> _Judge:
        judge = _Judge(self.implementation, function, self.subject.device, "VJP-REF")
        judge.policy = self._policy(judge)
        return judge

    def _varies(self, call: Call) -> bool:
        """Whether a call gives something else when it is made again."""
        example = self.subject.made(call)

        def varies() -> bool:
            first, names = copied(self.implementation, example.results()), example.result_names
            repeats = lambda: self._judge.assert_same(call, names, got=example.results(), expected=first)  # noqa: E731
            return not all(_holds(repeats) for _ in range(_REPEATS))

        return not self.function.declaration.stochastic and _shows(varies)

    def _draws(self, call: Call) -> bool:
        """Whether backward draws random numbers of its own."""
        return self.function.declaration.stochastic and draws_in_backward(self.subject.unseeded_example(call))

    # Probes of the contiguous call, which is right when it is made alone.

    def _writes(self, call: Call, raised: Exception | None) -> bool:
        """Whether backward writes into its cotangents, and this explains the failure."""
        example = self.subject.made(contiguous(call))

        def changed() -> bool:
            before = [state(self.implementation, g) for g in example.cotangents]
            example.run()
            after = [state(self.implementation, g) for g in example.cotangents]
            return any(changes(old, new) for old, new in zip(before, after, strict=True))

        # A backward that reads memory as if it were contiguous raises in more layouts than the expanded one.
        others = {"expanded", *example.cotangent_layouts} - {"expanded"} if raised is not None else ()
        reads = any(not runs(self.subject, with_cotangents(call, layout)) for layout in others)
        return not reads and _shows(changed)

    def _is_right_once(self, call: Call, found: str | None) -> bool:
        """Whether one backward of the plain call is right in what the property compares with something else.

        It gets tensors that nothing else reads, so that what it writes explains nothing that is wrong there.
        """
        about, plain = self._property, contiguous(call)
        if "VJP-FD" in (about.id, found):
            calls = (plain, recast(plain, self.function.dtypes[0], self.function))
            return all(map(self._judge.derives, calls))
        return not (about.of_other_cotangents or about.id == "VJP-LINEAR") or not self._bends(plain)

    def _keeps(self, call: Call) -> bool:
        """Whether a call with other values changes the gradients that an earlier one returned."""
        plain = contiguous(call)
        example, once = self.subject.made(plain), varied(plain, self.function)

        def changed() -> bool:
            _, gradients = example.run()
            before = copied(self.implementation, gradients)
            # One fill alone may have the same gradients by accident.
            for other in (once, varied(once, self.function)):
                self.subject.made(other).run()
            pairs = zip(before, copied(self.implementation, gradients), strict=True)
            return any(a is not None and b is not None and not np.array_equal(a, b, equal_nan=True) for a, b in pairs)

        return _shows(changed)

    def _remembers(self, call: Call) -> bool:
        """Whether a call that runs between forward and backward changes the gradients."""
        plain = contiguous(call)
        example, other = self.subject.made(plain), self.subject.made(varied(plain, self.function))

        def differs() -> bool:
            expected = example.expected.gradients()
            _, pullback = self.implementation.vjp(example.f, example.primals, track=example.track)
            other.run()
            return not self._judge.equal(example, pullback(example.cotangents), expected)

        return self._judge.passes(plain) and _shows(differs)

    def _sets(self, call: Call) -> bool:
        """Whether the call changes settings or seeds of the process, which other calls and threads share."""
        example = self.subject.unseeded_example(contiguous(call))
        return _shows(lambda: bool(changed_settings(example) or reseeding(example)))

    def _bends(self, call: Call) -> bool:
        """Whether gradients are not linear in the cotangents."""
        if self.function.declaration.nonlinear:
            return False
        example = self.subject.made(contiguous(call))

        def bends() -> bool:
            _, pullback = self.implementation.vjp(example.f, example.primals, track=example.track)
            given = example.expected.cotangents
            once = example.pulled(pullback, given)
            for factor in _FACTORS:
                expected = [None if g is None else g * factor for g in once]
                scaled = [None if g is None else factor * g for g in given]
                if not self._judge.equal(example, pullback(example.placed(scaled)), expected):
                    return True
            return False

        return _shows(bends)


class _Judge(Subject):
    """A subject that says whether a call is right, independent of the property under test."""

    policy: Any = None

    def passes(self, call: Call, times: int = 1) -> bool:
        """Whether no output is found to be wrong, and no gradient of the last backward of so many over one graph."""
        example = self.made(call)
        return _holds(
            lambda: self.assert_close(
                call, example.result_names, got=example.results(times=times), expected=example.expected.results()
            )
        )

    def as_referred(self, call: Call) -> bool:
        """Whether no output is found to differ from the user's reference; it may refuse the call."""
        assert isinstance(self.function, Own)
        assert self.function.referee is not None
        try:
            names, got, expected = zip(*self.function.referee.outputs(self.made(call)), strict=True)
        except Exception:  # noqa: BLE001 - a user's reference may raise anything
            return True
        return _holds(lambda: self.assert_close(call, names, got=got, expected=expected))

    def transports(self, call: Call) -> bool:
        """Whether no tangent of the outputs is found to be wrong."""
        example = self.made(call)

        def look() -> None:
            got, expected = forward_mode(example)
            self.assert_close(call, example.output_names, got=got, expected=expected)

        return _holds(look)

    def derives(self, call: Call) -> bool:
        """Whether the first derivative of a call is not found to be wrong."""
        assert isinstance(self.function, Own)
        unknown = self.function.surrogate and self.function.soft is None
        return unknown or self._derives_at(self.made(call))

    def _derives_at(self, example: Example) -> bool:
        return _holds(lambda: self.assert_first_order(example.call, first_order(example)))

    def derives_but_for(self, call: Call, slots: Collection[int]) -> bool:
        """Whether the first derivative is not found to be wrong along the arguments but those at these positions."""
        example = self.made(call)
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
        example, rng = self.made(contiguous(call)), np.random.default_rng(call.seed)
        return all(self._derives_at(near(example, share, rng)) for share in _NEARBY)

    def wrong_part(self, call: Call) -> str:
        """What is wrong with the first derivative in short tensors with the values of long ones; empty if it is not."""
        for what, part in short_parts(self.made(contiguous(call))):
            if not self._derives_at(part):
                return what
        return ""

    def equal(self, example: Example, got: Any, expected: Any) -> bool:
        """Whether gradients are not found to differ from the expected ones."""
        return _holds(lambda: self.assert_close(example.call, example.names, got=got, expected=expected))


def runs(subject: Subject, call: Call, times: int = 1) -> bool:
    """Whether the call, and its backward so many times over one graph, raise nothing."""
    example = subject.made(call)
    try:
        _, pullback = subject.implementation.vjp(example.f, example.primals, track=example.track)
        for _ in range(times):
            pullback(example.cotangents)
    except Exception:  # noqa: BLE001 - a user's Function may raise anything
        return False
    return True


def _holds(look: Callable[[], None]) -> bool:
    try:
        look()
    except Exception as raised:  # noqa: BLE001 - an exception is another fault than a wrong number
        return not isinstance(raised, Broken)
    return True


def _shows(probe: Callable[[], bool]) -> bool:
    """What a probe finds; False if the call raises."""
    try:
        return probe()
    except Exception:  # noqa: BLE001 - a user's Function may raise anything
        return False


def _with_dense_cotangents(call: Call) -> Call:
    return with_fill_of_cotangents(call, "dense")


def _simpler(function: Own, call: Call) -> Iterator[tuple[str, Call]]:
    """The call with one peculiarity less each time, and the property that is about this one."""
    for peculiarity in PECULIARITIES:
        call = peculiarity.without(function, call)
        yield peculiarity.property_id, call
