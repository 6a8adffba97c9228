"""The policy for users' Functions: what they may refuse, and which results count as right."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from autograd_conformance.harness.check.bench import Bench
from autograd_conformance.harness.check.bounds import extremes, noise
from autograd_conformance.harness.check.bounds.builtin_autograd import gradients_of_formula
from autograd_conformance.harness.check.declaration.declaration import Own
from autograd_conformance.harness.check.discovery import coarseness
from autograd_conformance.harness.check.oracle.oracle import inexact
from autograd_conformance.harness.check.oracle.tolerances import NOISE
from autograd_conformance.harness.check.refusals import batching, declined, refused
from autograd_conformance.harness.check.refusals.exceptions import (
    HANDLE,
    IN_BACKWARD,
    IN_FORWARD,
    RETURN_EARLY,
    WHEN_EMPTY,
    accidental,
    mistake,
)
from autograd_conformance.harness.outcomes import one_line
from autograd_conformance.harness.testing.examined import own_frames, place
from autograd_conformance.harness.testing.example import Example
from autograd_conformance.harness.testing.observe import may_be_view
from autograd_conformance.harness.testing.policy import Meaning, Policy, Unexpected, absolute_terms
from autograd_conformance.harness.testing.subject import Subject
from autograd_conformance.harness.testing.transforms import SecondOrder, second_order
from autograd_conformance.implementations.protocol import Unreadable
from autograd_conformance.reference.properties import PROPERTIES
from autograd_conformance.reference.rounding import PRECISION, Tracked
from autograd_conformance.strategies import conj_neg_bits, empty_tensors
from autograd_conformance.strategies.calls import Call, contiguous


class Lenient(Policy):
    """The policy of one user's Function and property."""

    # The engine sums and casts gradients to fit, and users rely on it.
    fits_as_returned = False

    # What is declared constant but gets a gradient is said to be stale.
    ignores_constants = True

    def __init__(self, subject: Subject) -> None:
        assert isinstance(subject.function, Own)
        self.subject, self.function = subject, subject.function
        self.implementation, self.bench = subject.implementation, Bench(subject, remembers=False)
        self.conditioning: float = subject.function.declaration.conditioning
        # Only a Function class, and not its canonical form, has one node.
        self.one_node = subject.function.sees_inside and not subject.function.declaration.up_to

    # What may raise.

    def excuse(self, raised: Exception) -> str:
        if mistake(raised) or batching.breaks(self.subject, raised):
            return ""
        if isinstance(raised, Unreadable):
            return str(raised)
        what = next(filter(None, (refused.refused(self.bench, call) for call in self.subject.tried)), None)
        if what:
            # What the plain call refuses, too, says nothing about the rule for batches.
            self.subject.record.refused += what == refused.BATCHING
            return f"{what}: {one_line(raised)}"
        for call in self.subject.tried:
            if declined.refuses(self.bench, call, raised):
                at = place(own_frames(raised, self.implementation))
                self.subject.record.decline(repr(call), one_line(raised), at)
                return f"a call that is declared: {one_line(raised)}"
        return ""

    def mistaken(self, raised: Exception) -> bool:
        return bool(mistake(raised))

    def meaning(self, call: Call, raised: Exception) -> Meaning:
        return next(filter(None, (asks(self, call, raised) for asks in MEANINGS)), Meaning())

    def second_refusal(self, call: Call, second: SecondOrder) -> Exception | None:
        refusal = second.refusal
        if second.detached:
            # `grad` skips nodes that do not lead to an input, and so never runs the one that would raise.
            refusal = second_order(self.subject.made(call), second.loss, self.subject.engines[-1]).refusal
        if refusal is None or mistake(refusal):
            return None
        plain = conj_neg_bits.resolved(call)
        if plain != call:
            resolved = second_order(self.subject.made(plain), second.loss, self.subject.engines[-1])
            if resolved.refusal is None and not resolved.detached:
                # Backward took a call with such a tensor, and raises for that alone.
                return None
        # What the call raises without a second derivative is no refusal of that.
        return refusal if self.bench.runs(call) else None

    # What counts as equal.

    def infinitely_steep(self, call: Call, what: str) -> Any:
        # Other properties say whether the gradient may be infinite there.
        example = self.subject.made(call)
        gradient = dict(zip(example.names, example.run()[1], strict=True)).get(what)
        return False if gradient is None else ~np.isfinite(self.implementation.numpy(gradient))

    def filled(self, got: Sequence[Any], expected: Sequence[Tracked | None]) -> list[Any]:
        pairs = zip(got, expected, strict=True)
        return [np.zeros(e.shape, e.dtype) if g is None and e is not None else g for g, e in pairs]

    def received(self, example: Example, gradients: Sequence[Any]) -> list[bool]:
        zero = [e is not None and not np.any(e.value) for e in example.expected.gradients()]
        return [g is not None or z for g, z in zip(gradients, zero, strict=True)]

    def unrecorded(self, example: Example, outputs: Sequence[Any]) -> list[Any]:
        # A view requires grad if its base does; so do those of torch's own operations.
        return [y for y in outputs if not may_be_view(self.implementation, y, example.primals)]

    def repeated(self, call: Call, values: Any) -> Tracked | None:
        # Libraries choose the order of a summation by the address of a tensor.
        if values.dtype.kind not in "fc":
            return Tracked.exact(values, "float64")
        largest = float(np.max(np.abs(values), initial=0.0, where=np.isfinite(values)))
        terms = max(math.prod(tensor.shape) for tensor in call.tensors)
        unit = PRECISION[self.function.accuracy(call.dtype)].unit
        error = self.conditioning * inexact(unit, terms) * (1 + largest)
        return Tracked(values, np.full(values.shape, error), PRECISION["float64"])

    def widened(
        self, call: Call, whats: Sequence[str], expected: Sequence[Tracked | None]
    ) -> Sequence[Tracked | None] | None:
        degenerate = self._degenerate(call)
        if degenerate:
            names = self.subject.made(call).output_names
            free = {names[n] for n in degenerate}
            # Gradients are free if an output is whose cotangent they depend on.
            used = any(call.cotangents[n] is not None for n in degenerate)
            rows = zip(whats, expected, strict=True)
            return [
                e.widened(np.inf) if e is not None and (what in free or (used and what not in names)) else e
                for what, e in rows
            ]
        known = noise.noise(self.subject, contiguous(call)) if call.dtype in noise.DTYPES else {}
        gradients = self.subject.made(call).names
        # A result with another name is computed from gradients.
        largest = max((known[name] for name in gradients if name in known), default=0.0)
        lost = noise.lost_by_built_in(self.subject, call)
        rows = zip(whats, expected, strict=True)
        return [
            None if e is None else e.widened(known.get(what, largest) + lost.get((what, e.shape), 0.0))
            for what, e in rows
        ]

    def rounding(self, gradients: Sequence[Any], direction: Sequence[Any], dtype: str) -> float:
        dtype = self.function.accuracy(dtype)
        unit = PRECISION[dtype].unit
        # The differentiated value is itself computed, so a zero may be slightly off.
        moved = sum(float(np.sum(np.abs(u))) for u in direction if u is not None)
        computed = inexact(unit, 1) * absolute_terms(gradients, direction) + NOISE * unit * moved
        return super().rounding(gradients, direction, dtype) + self.conditioning * computed

    # What is finite.

    def defined(self, call: Call) -> bool:
        outputs = self.subject.made(call).expected.outputs
        return all(bool(np.all(np.isfinite(y.value))) for y in outputs) and not self._uses_degenerate(call)

    def _degenerate(self, call: Call) -> list[int]:
        """The outputs in which more is free than was declared: they jump, as eigenvectors do at equal eigenvalues."""
        if not self.function.declaration.up_to:
            return []
        outputs = self.subject.made(call).expected.outputs
        return [n for n, y in enumerate(outputs) if np.any(np.isinf(y.widest))]

    def _uses_degenerate(self, call: Call) -> bool:
        return any(call.cotangents[n] is not None for n in self._degenerate(call))

    def finite_given(self, example: Example, finite: bool) -> bool | None:
        return False if not finite or self._uses_degenerate(example.call) else extremes.comparable(example)

    def lost(self, example: Example) -> list[float]:
        return extremes.lost(example)

    def imprecise(self, example: Example) -> list[float]:
        return extremes.imprecise(example)

    def steep(self, example: Example) -> list[float]:
        return extremes.steep(example)

    def built_in(self, example: Example) -> bool:
        return not self.function.sees_inside and gradients_of_formula(example) is not None

    def coarse(self, example: Example) -> list[str]:
        return [each.name for each in coarseness.numbers(example) if each.single and each.long]

    def infinite(self, example: Example, number: int, array: Any, expected: Tracked) -> list[Unexpected] | None:
        return extremes.unexpected(example, number, array)


# What an exception may mean.


def _without_elements(policy: Lenient, call: Call, raised: Exception) -> Meaning | None:
    if accidental(raised) or not refused.raises_when_empty(policy.bench, call):
        return None
    which = empty_tensors.where(policy.function, policy.function.facts.emptied)
    words = (WHEN_EMPTY, which, mistake(raised) or RETURN_EARLY)
    return Meaning("without elements", "; ".join(filter(None, words)))


def _of_mistake(_: Lenient, __: Call, raised: Exception) -> Meaning | None:
    known = mistake(raised)
    return Meaning("mistake", known) if known else None


def _of_batches(policy: Lenient, _: Call, raised: Exception) -> Meaning | None:
    broken = batching.breaks(policy.subject, raised)
    return Meaning("batch dimensions", batching.ADVICE) if broken else None


def _of_forward(policy: Lenient, call: Call, _: Exception) -> Meaning | None:
    return None if policy.bench.runs_forward(contiguous(call)) else Meaning("forward", IN_FORWARD)


def _of_backward(policy: Lenient, call: Call, _: Exception) -> Meaning | None:
    if not policy.bench.runs_forward(call) or policy.bench.runs(call):
        return None
    cure = _resolving(policy.bench, call)
    return Meaning("lazy tensor" if cure else "backward alone", f"{IN_BACKWARD}; {cure or HANDLE}")


def _of_second_backward(policy: Lenient, call: Call, _: Exception) -> Meaning | None:
    second = PROPERTIES[policy.subject.property_id].group == "second order"
    cure = _resolving(policy.bench, call) if second else ""
    return Meaning("lazy tensor", cure) if cure else None


def _resolving(bench: Bench, call: Call) -> str:
    """What to do if the call raises only because a tensor is negated or conjugated lazily; empty otherwise."""
    layouts = conj_neg_bits.layouts_of(call)
    if not layouts or not bench.runs(conj_neg_bits.resolved(call)):
        return ""
    return f"a tensor is {' or '.join(sorted(layouts))} lazily: {conj_neg_bits.advice(layouts)}"


# The first row that gives one is what the exception means.
MEANINGS = (_without_elements, _of_mistake, _of_batches, _of_forward, _of_backward, _of_second_backward)
