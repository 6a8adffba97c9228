"""The subject of a test that checks a user's Function: which calls are drawn, and by which policy it is judged."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from hypothesis import assume, reject
from hypothesis import strategies as st

from autograd_conformance.harness.check.bounds import noise
from autograd_conformance.harness.check.declaration.calling import unseeded
from autograd_conformance.harness.check.declaration.declaration import Own
from autograd_conformance.harness.check.discovery.resizing import undecided
from autograd_conformance.harness.check.explain.explaining import Runs
from autograd_conformance.harness.check.leniency import Lenient
from autograd_conformance.harness.check.oracle.user_reference import Refuses
from autograd_conformance.harness.check.refusals.layouts import in_taken_layouts
from autograd_conformance.harness.outcomes import one_line
from autograd_conformance.harness.testing.drawing import explaining
from autograd_conformance.harness.testing.example import Example
from autograd_conformance.harness.testing.policy import Policy
from autograd_conformance.harness.testing.source import Source
from autograd_conformance.harness.testing.subject import Subject
from autograd_conformance.reference.definitions import Shapes
from autograd_conformance.reference.properties import PROPERTIES
from autograd_conformance.reference.rounding import PRECISION
from autograd_conformance.strategies.calls import Call, contiguous, recast
from autograd_conformance.strategies.compositions import SAME, Before
from autograd_conformance.strategies.empty_tensors import pattern
from autograd_conformance.strategies.scope import ANY_CALL, Scope
from autograd_conformance.strategies.shapes import shape_tuples
from autograd_conformance.strategies.simple import fitting, kind


def _longest(function: Own) -> tuple[Shapes, ...]:
    found = function.facts.long_shapes
    return found[len(found) // 2 :]


def _few_elements(function: Own) -> tuple[Shapes, ...]:
    return tuple(s for s in shape_tuples(function) if sum(map(math.prod, s)) <= _FEW)


# The shapes for tests of a slow Function: kernels forget to write the last block, and kinks are of single entries.
_FEW = 16
_OF_SLOW: dict[str, Callable[[Own], tuple[Shapes, ...]]] = {"MEM-WRITTEN": _longest, "VJP-FD/kinks": _few_elements}
# How many calls of a slow Function are made to find a smaller one that fails.
_SMALLER = 40


@dataclass(repr=False)
class OwnSubject(Subject):
    """A user's Function under test."""

    function: Own
    explores = True
    # The calls that were made since the test failed.
    _since_failure: int = field(default=0, init=False)

    def examine(self, test: Any, attempt: Callable[[bool], None]) -> None:
        """Run a test, and say of its failures what explains them."""
        if self.replayed is None:
            Runs(self, test, attempt).all()
        else:
            attempt(True)

    @property
    def share(self) -> float:
        """The number of its examples for each example of a documented Function."""
        return PROPERTIES[self.property_id].share * self.paced

    @property
    def paced(self) -> float:
        return self.function.facts.share

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The dtypes to draw.

        For second derivatives mostly the most precise ones, because only there they are compared. For batches, and
        for what is declared of other calls, no half precision: measuring its noise for each call takes too long.
        """
        unit = PRECISION[self.function.computes_in].unit
        precise = tuple(d for d in self.function.dtypes if PRECISION[d].unit <= unit)
        # What double precision would show is looked for in the most precise dtype that the Function takes.
        found = super().dtypes or precise
        if self.function.declaration.stochastic:
            # The same seed gives other random numbers in another dtype.
            return tuple(dtype for dtype in found if dtype == self.function.dtypes[0])
        if self.property_id in ("BATCH-VMAP", *self.function.relations):
            return tuple(dtype for dtype in found if dtype not in noise.DTYPES) or found
        if self.property_id != "DBL-CORRECT":
            return found
        # In the other dtypes a second derivative can still be missing.
        return (*precise * 3, *(dtype for dtype in found if dtype not in precise))[: 3 * len(precise) + 1]

    def calls(self, scope: Scope = ANY_CALL, *, shapes: tuple[Shapes, ...] | None = None) -> st.SearchStrategy[Call]:
        """Calls in shapes that can show a fault; those of a stochastic Function are contiguous.

        With other layouts the same seed would give other random numbers. A call without elements verifies little: there
        are few of them, except in the tests that choose the shapes.
        """
        if self.function.declaration.stochastic:
            scope = replace(scope, layouts="contiguous")
        scope = replace(scope, steady=True, seldom_empty=shapes is None)
        shapes = self._showing_shapes if shapes is None else shapes
        if self.function.facts.emptied and self.replayed is None:
            shapes = self._once_emptied(shape_tuples(self.function) if shapes is None else shapes)
        if self.function.declined and self.replayed is None:
            among = shape_tuples(self.function) if shapes is None else shapes
            shapes = fitting(among, self.function, self.function.declined, self.dtypes[0]) or shapes
        found = super().calls(scope, shapes=shapes)
        return found.map(self.taken) if self.function.facts.refused_layouts and self.replayed is None else found

    def _once_emptied(self, among: tuple[Shapes, ...]) -> tuple[Shapes, ...]:
        """The shapes without those for which backward raises; where that is tested, no others without elements."""
        known = set(map(pattern, self.function.facts.emptied))
        if self.property_id == "FWD-EMPTY":
            return tuple(each for each in among if pattern(each) in known or not any(map(any, pattern(each))))
        return tuple(each for each in among if pattern(each) not in known) or among

    def example(self, call: Call) -> Example:
        self._since_failure = self._since_failure + 1 if self.record.failed is not None else 0
        if self.paced < 1 and self._since_failure > _SMALLER and not explaining():
            # Hypothesis ends with the smallest failing call so far.
            reject()
        if self.function.facts.resizes and self.replayed is None:
            assume(not undecided(self.made(call)))
        return super().example(call)

    @property
    def restricted(self) -> bool:
        return super().restricted or bool(self.function.declined)

    def _admitted(self, call: Call) -> bool:
        return kind(call) not in self.function.declined and super()._admitted(call)

    def leave_out(self, what: str) -> None:
        super().leave_out(": ".join((what, *(each.why for each in self.function.facts.refused_layouts[:1]))))

    def taken(self, call: Call) -> Call:
        return in_taken_layouts(call, self.function.facts.refused_layouts)

    @cached_property
    def _showing_shapes(self) -> tuple[Shapes, ...] | None:
        """The shapes that can show a fault, if the Function takes any of them; of a slow one those that show most."""
        if self.paced < 1 and self.claim_id in _OF_SLOW:
            return _OF_SLOW[self.claim_id](self.function) or None
        shows = PROPERTIES[self.property_id].shapes
        return None if shows is None else tuple(filter(shows, shape_tuples(self.function))) or None

    def recasts(self, call: Call) -> tuple[Call, ...]:
        """The call in every dtype, its own first, because no other property compares dtypes."""
        return (call, *(recast(call, dtype, self.function) for dtype in self.dtypes if dtype != call.dtype))

    @property
    def before(self) -> tuple[Before, ...]:
        """The operations that may come before the Function; few of them take sparse gradients."""
        return (SAME,) if self.function.facts.sparse else super().before

    def unseeded_example(self, call: Call) -> Example:
        example = self.example(call)
        return Example(unseeded(self.implementation), self.function, self.cls, call, expected=example.expected)

    def source(self) -> Source | str | None:
        if self.function.declaration.stochastic:
            return "the Function draws random numbers"
        return self.function.declaration.source(self.function.facts.composite, PROPERTIES[self.property_id].compared)

    def referred(self, call: Call) -> Example:
        """The example, next to results of a reference that is more precise than any call of the Function."""
        return Example(self.implementation, self.function.as_referred, self.cls, self.example(call).call)

    def verify_reference(self, call: Call) -> None:
        referee = self.function.referee
        if referee is None:
            return
        kinds = [d for d in self.function.dtypes if ("complex" in d) == ("complex" in call.dtype)]
        example = self.made(contiguous(recast(call, kinds[0], self.function)))
        try:
            judged = referee.outputs(example) if self.property_id == "FWD-VALUE" else referee.gradients(example)
        except Refuses as refusal:
            self.record.excuse_with(f"the reference: {one_line(refusal.__cause__ or refusal)}")
            return
        if judged:
            names, got, expected = zip(*judged, strict=True)
            self.assert_close(example.call, names, got=got, expected=expected, hint="the plain call, by reference=")

    @cached_property
    def policy(self) -> Policy:
        return Lenient(self)
