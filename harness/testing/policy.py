"""Policies: which results count as right where the sentence of a property leaves room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from autograd_conformance.harness.outcomes import Means
from autograd_conformance.harness.testing.example import Example
from autograd_conformance.harness.testing.transforms import SecondOrder
from autograd_conformance.reference.rounding import PRECISION, SAFETY, Tracked
from autograd_conformance.strategies.calls import Call


@dataclass(frozen=True)
class Unexpected:
    """A non-finite entry of a gradient, with the expected value."""

    index: tuple[int, ...]
    expected: Any
    hint: str = ""


@dataclass(frozen=True)
class Meaning:
    """What an exception of a call means, and a hint for the author of the Function."""

    means: Means = ""
    hint: str = ""


class Policy:
    """The strict policy for documented Functions: only the reference and the sentence count.

    Each method answers a question of an assertion. `check.leniency` has the policy for users' Functions.
    """

    def excuse(self, raised: Exception) -> str:
        """The reason why the call may raise this exception; empty if it may not."""
        return ""

    def meaning(self, call: Call, raised: Exception) -> Meaning:
        """What the exception of a call means."""
        return Meaning()

    def infinitely_steep(self, call: Call, what: str) -> Any:
        """Where a gradient need not be zero for a cotangent of zero: 0 times an infinite slope is NaN."""
        return False

    def filled(self, got: Sequence[Any], expected: Sequence[Tracked | None]) -> list[Any]:
        """The gradients, with a value in place of each None that counts as equal to it."""
        return list(got)

    def received(self, example: Example, gradients: Sequence[Any]) -> list[bool]:
        """Which tensors count as having received a gradient."""
        return [g is not None for g in gradients]

    # A factor on all bounds, for Functions that are ill-conditioned.
    conditioning: float = 1.0

    # Whether a gradient must fit its input before the engine sums and casts it.
    fits_as_returned: bool = True

    # Whether backward may return a gradient for a tensor that is constant, which the engine ignores.
    ignores_constants: bool = False

    # Whether all outputs of a call belong to one node of the graph.
    one_node: bool = True

    def unrecorded(self, example: Example, outputs: Sequence[Any]) -> list[Any]:
        """The outputs that must not require grad when grad mode is off."""
        return list(outputs)

    def repeated(self, call: Call, values: Any) -> Tracked | None:
        """The values with the error that a repetition may have; None if it must be equal bit for bit."""
        return None

    def widened(
        self, call: Call, whats: Sequence[str], expected: Sequence[Tracked | None]
    ) -> Sequence[Tracked | None] | None:
        """Wider bounds for results that exceeded the first ones; None if there are none."""
        return None

    def mistaken(self, raised: Exception) -> bool:
        """Whether an exception shows a mistake in the code, whatever the arguments, and so is no refusal."""
        return False

    def rounding(self, gradients: Sequence[Any], direction: Sequence[Any], dtype: str) -> float:
        """The error that rounding may cause in the inner product of a direction and a ``dtype`` call's gradients."""
        pairs = [(g, u) for g, u in zip(gradients, direction, strict=True) if g is not None and u is not None]
        terms = absolute_terms(gradients, direction)
        return float(SAFETY * PRECISION[dtype].unit * terms * (1 + sum(g.size for g, _ in pairs)))

    def second_refusal(self, call: Call, second: SecondOrder) -> Exception | None:
        """The exception with which second derivatives are refused, if the policy allows that."""
        return None

    def defined(self, call: Call) -> bool:
        """Whether the derivatives of the call are defined."""
        return True

    def infinite(self, example: Example, number: int, array: Any, expected: Tracked) -> list[Unexpected] | None:
        """The entries of a gradient, by its number, that are not finite but should be; None if nothing is known."""
        finite = np.isfinite(expected.value) & np.isfinite(expected.error)
        if not np.any(finite):
            return None
        wrong = [tuple(int(i) for i in place) for place in np.argwhere(finite & ~np.isfinite(array))]
        return [Unexpected(index, expected.value[index]) for index in wrong]

    def lost(self, example: Example) -> list[float]:
        """Numbers at which the gradient of a call of every number may be NaN or infinite, but should not be."""
        return []

    def imprecise(self, example: Example) -> list[float]:
        """Numbers at which the gradient of a call of every number may be off by more than rounding can cause."""
        return []

    def steep(self, example: Example) -> list[float]:
        """Numbers at which the gradient of a call of every number may be another than the slope."""
        return []

    def built_in(self, example: Example) -> bool:
        """Whether a call is one of built-in operations alone, whose derivatives are not the Function's."""
        return False

    def coarse(self, example: Example) -> list[str]:
        """The names of the results of a call in double precision whose numbers are all of single precision."""
        return []

    def finite_given(self, example: Example, finite: bool) -> bool | None:
        """Whether gradients must be finite, given whether the outputs are; None if that is not known."""
        return finite


STRICT = Policy()


def absolute_terms(gradients: Sequence[Any], direction: Sequence[Any]) -> float:
    """The sum of the absolute values of the terms in the inner product of gradients and a direction."""
    pairs = [(g, u) for g, u in zip(gradients, direction, strict=True) if g is not None and u is not None]
    return sum(float(np.sum(np.abs(g) * np.abs(u))) for g, u in pairs)
