"""The subject of a test that checks a user's Function: which calls are drawn, and by which policy it is judged."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from hypothesis import strategies as st

from autograd_conformance.harness.check import noise
from autograd_conformance.harness.check.declaration import Own
from autograd_conformance.harness.check.leniency import Lenient
from autograd_conformance.harness.check.native import unseeded
from autograd_conformance.harness.check.referee import Refuses
from autograd_conformance.harness.checking.example import Example
from autograd_conformance.harness.checking.policy import Policy
from autograd_conformance.harness.checking.script_call import Source
from autograd_conformance.harness.checking.subject import Subject
from autograd_conformance.harness.outcomes import one_line
from autograd_conformance.reference.definitions import Shapes
from autograd_conformance.reference.properties import PROPERTIES
from autograd_conformance.reference.rounding import PRECISION
from autograd_conformance.strategies.calls import Call, contiguous, recast
from autograd_conformance.strategies.scope import ANY_CALL, Scope
from autograd_conformance.strategies.shapes import shape_tuples

# The properties in which a user's reference counts.
_REFERRED = ("FWD-VALUE", "VJP-REF", "VJP-FD")


@dataclass(repr=False)
class OwnSubject(Subject):
    """A user's Function under test."""

    explores = True

    @property
    def share(self) -> float:
        """The number of its examples for each example of a documented Function."""
        return PROPERTIES[self.property_id].share

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The dtypes to draw.

        For second derivatives mostly the most precise ones, because only there they are compared. For batches no half
        precision, because measuring its noise for each member takes too long.
        """
        assert isinstance(self.function, Own)
        unit = PRECISION[self.function.computes_in].unit
        precise = tuple(d for d in self.function.dtypes if PRECISION[d].unit == unit)
        # What double precision would show is looked for in the most precise dtype that the Function takes.
        found = super().dtypes or precise
        if self.function.declaration.stochastic:
            # The same seed gives other random numbers in another dtype.
            return tuple(dtype for dtype in found if dtype == self.function.dtypes[0])
        if self.property_id == "BATCH-VMAP":
            return tuple(dtype for dtype in found if dtype not in noise.DTYPES) or found
        if self.property_id != "DBL-CORRECT":
            return found
        # In the other dtypes a second derivative can still be missing.
        return (*precise * 3, *(dtype for dtype in found if dtype not in precise))[: 3 * len(precise) + 1]

    def calls(self, scope: Scope = ANY_CALL, *, shapes: tuple[Shapes, ...] | None = None) -> st.SearchStrategy[Call]:
        """Calls in shapes that can show a fault; those of a stochastic Function are contiguous.

        With other layouts the same seed would give other random numbers.
        """
        assert isinstance(self.function, Own)
        if self.function.declaration.stochastic:
            scope = replace(scope, layouts="contiguous")
        return super().calls(replace(scope, steady=True), shapes=self._telling_shapes if shapes is None else shapes)

    @cached_property
    def _telling_shapes(self) -> tuple[Shapes, ...] | None:
        """The shapes that can show a fault, if the Function takes any of them."""
        telling = PROPERTIES[self.property_id].telling
        return None if telling is None else tuple(filter(telling, shape_tuples(self.function))) or None

    def recasts(self, call: Call) -> tuple[Call, ...]:
        """The call in every dtype, its own first, because no other property compares dtypes."""
        return (call, *(recast(call, dtype, self.function) for dtype in self.dtypes if dtype != call.dtype))

    def unseeded_example(self, call: Call) -> Example:
        example = self.example(call)
        return Example(unseeded(self.implementation), self.function, self.cls, call, expected=example.expected)

    def source(self) -> Source | str | None:
        assert isinstance(self.function, Own)
        if self.function.declaration.stochastic:
            return "the Function draws random numbers"
        return self.function.declaration.source(self.function.composite, self.property_id in _REFERRED)

    def verify_reference(self, call: Call) -> None:
        assert isinstance(self.function, Own)
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
