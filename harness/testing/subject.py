"""The subject of a test: one Function on one implementation and device, with the methods that tests use."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar

import pytest
from hypothesis import assume
from hypothesis import strategies as st

from autograd_conformance.harness.outcomes import Broken, OutOfTime, Record, one_line
from autograd_conformance.harness.testing.choices import Choices
from autograd_conformance.harness.testing.drawing import explaining
from autograd_conformance.harness.testing.examined import PartMissing, passes_through, raised_by_suite
from autograd_conformance.harness.testing.example import Example
from autograd_conformance.harness.testing.policy import Meaning
from autograd_conformance.harness.testing.settings import kept
from autograd_conformance.harness.testing.source import Source
from autograd_conformance.harness.testing.steering import steers
from autograd_conformance.implementations.protocol import Implementation
from autograd_conformance.reference.definitions import FLOATING, Function, Shapes
from autograd_conformance.reference.properties import PROPERTIES
from autograd_conformance.strategies.calls import Call, calls
from autograd_conformance.strategies.scope import ANY_CALL, Scope
from autograd_conformance.strategies.shapes import few_shape_tuples, shape_tuples
from autograd_conformance.strategies.sweeps import at_number, swept_calls

# The most choices of arguments that are not tensors.
_CHOICES = 256

# What an exception means with which the code under test steers a test.
_STEERS = Meaning("mistake", "it steers pytest or Hypothesis, which no Function may")


def _is_ours(raised: Exception, implementation: type) -> bool:
    """Whether neither the Function nor the implementation raised an exception."""
    return not passes_through(raised, implementation) or raised_by_suite(raised)


@dataclass
class Subject(Choices):
    """A Function under test."""

    implementation: Implementation
    function: Function
    device: str
    property_id: str = "VJP-REF"
    dtype: str | None = None
    variant: str = ""
    allowed: tuple[str, ...] = FLOATING
    record: Record = field(default_factory=Record)
    replayed: Call | None = None
    cpu_seconds: float = 0.0
    # The capabilities that the test needs, and the implementation does not claim.
    unclaimed: tuple[str, ...] = ()
    # The calls of the current example.
    tried: list[Call] = field(default_factory=list)
    choices: dict[str, Any] = field(default_factory=dict)
    # Of the current example: how many of its several choices were kept, and why the last one was left out.
    kept: int = 0
    left_out: str = ""
    # What is left out of the drawn calls.
    excluded: tuple[Callable[[Call], bool], ...] = ()
    # Whether a failure is kept in the record alone, and the test goes on.
    keeps_failures: bool = False
    # Whether a test goes on after a failure, to look for others.
    explores: ClassVar[bool] = False

    @property
    def paced(self) -> float:
        """The part of the examples that is left because calls take long."""
        return 1.0

    def __repr__(self) -> str:
        return f"{self.implementation.name}-{self.function.name}-{self.device}"

    def _repr_pretty_(self, printer: Any, _: bool) -> None:
        # Hypothesis would print all fields of a dataclass, whenever a test fails.
        printer.text(repr(self))

    @property
    def claim(self) -> str:
        return self.property_id

    @property
    def sentence(self) -> str:
        return PROPERTIES[self.property_id].sentence if self.property_id in PROPERTIES else ""

    @property
    def examined(self) -> str:
        return self.function.name

    @property
    def key(self) -> dict[str, Any]:
        """The first fields of the test's result line; the id does not depend on the implementation."""
        line = {"kind": "result", "id": f"{self.claim_id}[{self.function.name}-{self.device}]"}
        variant = {"variant": self.variant} if self.variant else {}
        about = {"property": self.property_id, **variant, "function": self.function.name, "device": self.device}
        return {**line, **about, **({"unclaimed": list(self.unclaimed)} if self.unclaimed else {})}

    @property
    def needs(self) -> frozenset[str]:
        """The capabilities that the Function needs."""
        f = self.function
        implied = {"tuples": len(f.outputs) > 1, "materialize": not f.materialize}
        return f.needs | {capability for capability, needed in implied.items() if needed}

    def source(self) -> Source | str | None:
        """How a script imports the Function, or why it cannot; None for a documented one, which it writes out."""
        return None

    # What is drawn.

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The dtypes of the run that the test, the Function and the implementation all have."""
        common = set(self.allowed) & set(self.implementation.dtypes)
        return tuple(d for d in self.function.dtypes if d in common and self.dtype in (None, d))

    def calls(self, scope: Scope = ANY_CALL, *, shapes: tuple[Shapes, ...] | None = None) -> st.SearchStrategy[Call]:
        """Valid calls of the Function on the subject's device; see `strategies.calls.calls`."""
        if self.replayed is not None:
            return st.just(self.replayed)
        claimed = self.implementation.capabilities
        if "views" not in claimed:
            # Without views, all layouts give the same tensor.
            scope = replace(scope, layouts="contiguous", cotangent_layouts=False)
        if "keywords" not in claimed:
            scope = replace(scope, omitted_arguments=False)
        per_rank = self.implementation.shapes_per_rank
        if shapes is None and per_rank is not None:
            shapes = few_shape_tuples(self.function, per_rank)
        if not self.implementation.empty:
            shapes = tuple(s for s in shapes or shape_tuples(self.function) if not any(0 in shape for shape in s))
            if not shapes:
                pytest.skip(f"{self.implementation.name} does not support tensors without elements")
        found = calls(self.function, scope, dtypes=self.dtypes, shapes=shapes, device=self.device)
        return found.filter(self._admitted) if self.restricted else found

    @property
    def restricted(self) -> bool:
        """Whether some of the calls that could be drawn are left out."""
        return bool(self.excluded)

    def _admitted(self, call: Call) -> bool:
        return not any(has(call) for has in self.excluded)

    def sweeps(self) -> st.SearchStrategy[Call]:
        """Calls of a long tensor for every number of a 16-bit dtype, in one dtype."""
        if self.replayed is not None:
            return st.just(self.replayed)
        found = islice(swept_calls(self.function, self.dtypes[0], device=self.device), _CHOICES)
        return st.sampled_from(list(filter(self._admitted, found)))

    def suspects(self, call: Call, looks: Callable[[Example], list[float]]) -> Iterator[Example]:
        """The calls of single numbers at which a call of every number looks wrong; such a call itself in a replay."""
        self.record.checks += 1
        if call.tensors[0].specials:
            yield self.example(call)
            return
        for value in looks(self.example(call)):
            yield self.example(at_number(call, value, self.function))

    def recasts(self, call: Call) -> tuple[Call, ...]:
        """The call in each dtype that the test compares: its own."""
        return (call,)

    def choose(self, label: str, value: str) -> None:
        """Note what a test varies without a draw; a failure shows it with this label."""
        self.choices[label] = value

    def verify_reference(self, call: Call) -> None:
        """Compare the plain call with the same values with the reference that a user gave, if there is one."""

    def made(self, call: Call) -> Example:
        """The call with its tensors on the implementation."""
        return Example(self.implementation, self.function, self.cls, call)

    def example(self, call: Call) -> Example:
        """The call with its tensors on the implementation; it counts as an example."""
        example = self.made(call)
        if not self.implementation.empty:
            assume(all(y.size for y in example.expected.outputs))
        self.record.begin(repr(call))
        self.tried.append(call)
        return example

    def unseeded_example(self, call: Call) -> Example:
        """An example before whose calls no random numbers are seeded."""
        return self.example(call)

    @cached_property
    def cls(self) -> Any:
        """The custom Function as the implementation's own class."""
        return self.implementation.build(self.function)

    @property
    def engines(self) -> tuple[str, ...]:
        """The ways to compute gradients: ``grad``, and ``backward`` if the implementation accumulates."""
        return ("grad", "backward") if "accumulate" in self.implementation.capabilities else ("grad",)

    @contextmanager
    def blaming_the_function(self) -> Iterator[None]:
        """Turn an exception of the implementation into a failure, unless the policy excuses it.

        Raises OutOfTime if no more examples may begin. Once one has failed, smaller ones are looked for as long again.
        """
        if time.monotonic() > self.record.until and not explaining():
            raise OutOfTime
        try:
            with self._blaming():
                yield
        except Broken as broken:
            if self.may_refuse(broken):
                return
            self.record.fail_with(broken)
            if not self.keeps_failures:
                raise

    @contextmanager
    def _blaming(self) -> Iterator[None]:
        self.choices, self.tried, self.kept, self.left_out = {}, [], 0, ""
        excused = self.record.excused
        # What a Function leaves changed would show in the next examples, and in other tests.
        with kept(self.implementation):
            try:
                yield
                if self.left_out and not self.kept:
                    self.record.excuse_with(self.left_out)
                self.record.answered += self.record.excused == excused
            except (Broken, PartMissing):
                raise
            except BaseException as raised:
                if steers(raised) and self.tried:
                    # To skip a test or discard an example is not for the code under test, and no way to refuse a call.
                    self._fail_with(self.tried[-1], raised, _STEERS)
                if not isinstance(raised, Exception) or not self.tried or _is_ours(raised, type(self.implementation)):
                    raise
                excuse = self.policy.excuse(raised)
                if excuse:
                    self.record.excuse_with(excuse)
                else:
                    self._fail_with(self.tried[-1], raised)

    # What may be refused.

    def refusal(self, action: Callable[[], Any]) -> Exception | None:
        """The exception with which the implementation refuses an action, or None."""
        try:
            action()
        except self.implementation.refusals as refused:
            if raised_by_suite(refused):
                raise
            self.record.refused += 1
            return refused
        return None

    def unless_refused(self, action: Callable[[], Any], *, otherwise: Any, wanted: bool = False) -> Any:
        """The action's result, or ``otherwise`` if the implementation refuses it by an exception.

        Unless a refusal is ``wanted``, the example counts as excused: a property with only such examples is vacuous.
        """
        found = []
        refused = self.refusal(lambda: found.append(action()))
        if refused is not None and not wanted:
            self.record.excuse_with(one_line(refused))
        return otherwise if refused else found[0]
