"""The trials of discovery: simple calls in each dtype, and what the Function returns or raises for them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

from autograd_conformance.harness.check.declaration.calling import Native, Treatment, adapted
from autograd_conformance.harness.check.declaration.classes import overrides
from autograd_conformance.harness.check.declaration.declaration import Declaration, Own
from autograd_conformance.harness.check.declaration.interpreted import kernels
from autograd_conformance.harness.check.declaration.naming import arity
from autograd_conformance.harness.check.discovery import cost
from autograd_conformance.harness.check.discovery.interpreter import BFLOAT16, GARBLED, garbled
from autograd_conformance.harness.check.discovery.returned import differentiable, ones, strange, unreadable
from autograd_conformance.harness.check.refusals.exceptions import mistake
from autograd_conformance.harness.outcomes import AlwaysWrong, one_line
from autograd_conformance.harness.testing.own_faults import noticed
from autograd_conformance.harness.testing.subject import Subject
from autograd_conformance.implementations.misbehaving import Misbehaves
from autograd_conformance.implementations.protocol import Implementation
from autograd_conformance.reference.definitions import FLOATING, Output
from autograd_conformance.strategies.calls import Call, recast
from autograd_conformance.strategies.shapes import MAX_FIXED, shape_tuples
from autograd_conformance.strategies.simple import simple_call

# The most calls to try, and to use.
TRIED = 24
# Calls to try in each dtype.
_SAMPLES = 3


class Trials:
    """Some calls that a Function takes, ``working``, and the dtypes that it takes, ``refused`` with the reason.

    Raises UsageProblem if there are none.
    """

    def __init__(
        self, declaration: Declaration, implementation: Implementation, without: Mapping[str, str],
        note: Callable[[Call], None],
    ) -> None:  # fmt: skip
        before, self.refused = kernels(), dict(without)
        self.declaration, self.implementation, self.note = declaration, implementation, note
        function = declaration.sketch(implementation)
        self.function = replace(function, dtypes=tuple(d for d in function.dtypes if d not in without))
        self.cls = self.function.body(None, None)
        self.subject = self.treated(declaration.treatment)
        self.working, failures = _working(self.subject, note)
        self._verify(failures)
        self.kinds: dict[str, Found] = {}
        mistaken = [dtype for dtype in self.function.dtypes if self._is_mistaken(dtype)]
        self.interpreted = kernels() > before
        both = {BFLOAT16, "float32"} <= self.kinds.keys()
        if self.interpreted and both and garbled(self.subject, self.working[:_SAMPLES]):
            del self.kinds[BFLOAT16]
            self.refused[BFLOAT16] = GARBLED
        self.dtypes = (*self.kinds, *mistaken)
        if not self.kinds:
            said = (each for found in self._of_dtype.values() for each in found)
            first = next(each for each in said if isinstance(each, str))
            raise declaration.problem(
                f"it raises in every dtype of {', '.join(self.function.dtypes)}; the first error is {first}"
            )
        self.simple = [recast(call, self.dtypes[0], self.function) for call in self.working[:TRIED]]

    def treated(self, treatment: Treatment) -> Subject:
        """The Function as a subject that is called by this treatment."""
        mine = adapted(self.implementation, treatment, self.cls, canonical=self.declaration.up_to)
        return Subject(mine, self.function, self.implementation.devices()[0])

    def _verify(self, failures: list[tuple[Call, str]]) -> None:
        declaration = self.declaration
        uncheckable = [why for _, why in failures if isinstance(why, _Uncheckable)]
        if uncheckable:
            raise declaration.problem(uncheckable[0])
        if self.working:
            return
        if not failures:
            raise declaration.problem(
                "no call is possible: each that was tried has a length below 0, "
                f"or a tensor of more than {MAX_FIXED} elements"
            )
        call, why = failures[0]
        if all(isinstance(each, _Misbehaviour) for _, each in failures):
            raise AlwaysWrong(f"{declaration.placed}: wrong in every simple call; the first is {call}: {why}")
        miscounted = _miscounted(declaration, self.cls, self.implementation)
        raise declaration.problem(
            f"{miscounted}every simple call that the declaration describes raises; the first is {call}, with "
            f"{why}{_hint(why)}"
        )

    @cached_property
    def _of_dtype(self) -> dict[str, list[Found | str]]:
        return {
            d: [_tried(self.subject, recast(call, d, self.function), self.note) for call in self.working[:_SAMPLES]]
            for d in self.function.dtypes
        }

    def _is_mistaken(self, dtype: str) -> bool:
        """Whether forward makes a mistake in this dtype, and does not refuse it; notes what it does else.

        That, and an exception of backward, is a fault for the tests to report.
        """
        found = self._of_dtype[dtype]
        wrong = [each for each in found if isinstance(each, str)]
        if any(isinstance(why, _Mistake) for why in wrong):
            return True
        if wrong:
            self.refused[dtype] = wrong[0]
        else:
            self.kinds[dtype] = min((f for f in found if isinstance(f, Found)), key=lambda each: each.seconds)
        return False

    @cached_property
    def outputs(self) -> tuple[Output, ...]:
        """What the Function returns. Raises UsageProblem if that is nothing to differentiate."""
        return _outputs(self.declaration, self.kinds[self.dtypes[0]], self.kinds)


def _miscounted(declaration: Declaration, cls: object, implementation: Implementation) -> str:
    """How many arguments forward takes, if fewer or more are declared, as the beginning of a sentence."""
    is_class = not isinstance(cls, Native)
    called = getattr(cls, "forward", None) if is_class else declaration.function
    taken = arity(called, int(is_class and not overrides(cls, implementation, "setup_context")))
    count = len(declaration.arguments)
    if taken is None or taken[0] <= count <= taken[1]:
        return ""
    least, most = taken
    takes = f"{least}" if least == most else f"at least {least}" if count < least else f"at most {most}"
    return f"{'forward' if is_class else 'it'} takes {takes}, {count} {'is' if count == 1 else 'are'} declared; "


def _hint(why: str) -> str:
    return "; if it changes an argument on purpose, declare inplace=(its position,)" if "in-place" in why else ""


def _simple_calls(function: Own) -> Iterator[Call]:
    """Calls that no Function has a good reason to refuse: contiguous tensors with elements, in double precision."""
    shapes = [s for s in shape_tuples(function) if all(0 not in shape for shape in s)]
    others = shapes[4 :: max(1, len(shapes) // TRIED)]
    # The first half of all, which often suffices, has shapes of every size.
    spread = (shape for start in range(3) for shape in others[start::3])
    for number, sides in enumerate(islice((*shapes[:4], *spread), 2 * TRIED)):
        yield simple_call(function, sides, number)


def _working(subject: Subject, note: Callable[[Call], None]) -> tuple[list[Call], list[tuple[Call, str]]]:
    """Some calls that the Function takes, and the calls that it refuses, with the reason.

    If backward raises for all calls that forward takes, these calls are used. Raises UsageProblem if some calls return
    more outputs than others.
    """
    working, raising, failures = [], [], []
    assert isinstance(subject.function, Own)
    # The first call that returned so many outputs.
    counts: dict[int, Call] = {}
    for call in _simple_calls(subject.function):
        found: list[Found | str] = []
        for dtype in subject.function.dtypes:
            found.append(_tried(subject, recast(call, dtype, subject.function), note))
            if isinstance(found[-1], Found):
                counts.setdefault(len(found[-1].dtypes), call)
            if _works(found[-1]):
                break
        if _works(found[-1]):
            working.append(call)
        elif any(isinstance(each, Found) for each in found):
            raising.append(call)
        else:
            first = [each for each in found if isinstance(each, _Uncheckable | _Misbehaviour)]
            failures.append((call, [*first, "; with ".join(dict.fromkeys(str(each) for each in found))][0]))
        if len(working) >= TRIED // 2:
            break
    if len(counts) > 1:
        several = " and ".join(f"{count} in {call}" for count, call in islice(counts.items(), 2))
        raise subject.function.declaration.problem(
            f"it must return the same number of tensors in every call, but returns {several}; declare calls of one kind"
        )
    return working or raising, failures


class _Mistake(str):
    """The words of an exception that is not a refusal."""

    __slots__ = ()


class _Misbehaviour(_Mistake):
    """What the suite saw the Function do that no Function may, and what to do about it."""

    __slots__ = ()


class _Uncheckable(str):
    """Why what the Function returns cannot be checked at all."""

    __slots__ = ()


def _works(found: Found | str) -> bool:
    return isinstance(found, Found) and not found.raised


@dataclass(frozen=True)
class Found:
    """The result of a call: whether each output is differentiable, its dtype, and the exception of backward, if any."""

    differentiable: tuple[bool, ...]
    dtypes: tuple[str, ...]
    raised: str = ""
    # How long it took.
    seconds: float = math.inf


def _tried(subject: Subject, call: Call, note: Callable[[Call], None]) -> Found | str:
    """The result of a call, or the exception that it raises."""
    note(call)
    implementation = subject.implementation
    example, watch = subject.made(call), cost.Watch()
    try:
        outputs, pullback = implementation.vjp(example.f, example.primals, track=example.track)
        why = strange(implementation, outputs)
        if why:
            return _Uncheckable(why)
        kinds = [implementation.describe(y) for y in outputs]
        flags = tuple(differentiable(implementation, y, kind.dtype) for y, kind in zip(outputs, kinds, strict=True))
    except Exception as raised:  # noqa: BLE001 - a user's Function may raise anything
        noticed(raised)
        if isinstance(raised, Misbehaves):
            return _Misbehaviour(f"{_said(raised)}; {raised.cure}")
        return _Mistake(_said(raised)) if mistake(raised) else _said(raised)
    found = Found(flags, tuple(kind.dtype for kind in kinds))
    unknown = [kind.dtype for kind, flag in zip(kinds, flags, strict=True) if flag and kind.dtype not in FLOATING]
    if unknown:
        return f"it returns {unknown[0]}, which cannot be checked"
    try:
        ends = [example.tensor(ones(kind), kind.dtype) if f else None for f, kind in zip(flags, kinds, strict=True)]
        gradients = pullback(ends) if any(flags) else ()
    except Exception as raised:  # noqa: BLE001
        noticed(raised)
        return replace(found, raised=_said(raised))
    found = replace(found, seconds=watch.seconds)
    unread = unreadable(implementation, gradients)
    return _Uncheckable(f"it returns a gradient that cannot be checked: {unread}") if unread else found


def _said(raised: Exception) -> str:
    return one_line(raised)[:300]


def _outputs(declaration: Declaration, first: Found, found: dict[str, Found]) -> tuple[Output, ...]:
    if not any(first.differentiable):
        raise declaration.problem(
            "it returns nothing differentiable: every tensor argument requires grad, but no output does; call it "
            "through apply, and return a floating-point output that is not detached"
        )
    if len({len(each.dtypes) for each in found.values()}) > 1:
        raise declaration.problem(
            "the number of outputs depends on the dtype; declare the dtypes of one kind with dtypes="
        )
    return tuple(
        Output(
            name="output" if len(first.dtypes) == 1 else f"output{n}",
            differentiable=differentiable,
            dtypes={dtype: each.dtypes[n] for dtype, each in found.items()},
            # Statistics that are kept beside a result in half precision usually have single precision.
            casts=declaration.casts or not differentiable,
        )
        for n, differentiable in enumerate(first.differentiable)
    )
