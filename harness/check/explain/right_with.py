"""What a failing call is right with: the change without which a test holds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import filterfalse, islice

import numpy as np

from autograd_conformance.harness.check.bench import Bench, Outcome
from autograd_conformance.harness.outcomes import Finding, Kind
from autograd_conformance.harness.testing.attempts import attempted
from autograd_conformance.harness.testing.observe import copied
from autograd_conformance.harness.testing.relations import AlongAxis
from autograd_conformance.strategies.calls import Call, parse, varied
from autograd_conformance.strategies.changes import Alternative, alternatives, in_lengths

# The failing calls with which another choice is tried, and other seeds to make some.
_FAILING, _SEEDS = 4, 3
# The seeds among which those are sought that give calls of another choice.
_DRAWS = 50
# So many lengths, right ones and wrong ones, show more than two shapes do.
_SOME = 2
# The number of examples that show whether a test holds for a call: it may draw more than the call.
REPEATS = 6


@dataclass(frozen=True)
class Explanation:
    """What a failure is right with, in words, and which calls it excludes, if that is known.

    ``listed`` has all values of an argument, those that are right and those that are wrong.
    """

    words: str
    excludes: Callable[[Call], bool] | None
    listed: str


class RightWith:
    """The search for what one failing call of a test is right with, within so many examples.

    ``said`` is what others are right with: that comes first, and is named again.
    """

    def __init__(self, bench: Bench, test: object, finding: Finding, said: Collection[str], most: float) -> None:
        self.bench, self.test, self.finding, self.said = bench, test, finding, said
        self.call, self.function, self.until = parse(finding.call), bench.tested.function, bench.spent + most
        self.alike: Sequence[Call] = ()
        # What is not finite comes from a number, such as 0, which another shape may lack.
        self.of_number = finding.kind is Kind.NAN or finding.component.get("aspect") == "finite"

    def found(self, alike: Sequence[Call]) -> Explanation | None:
        """What explains the failure, or None; ``alike`` are calls that fail like it.

        A choice that happens to be right in one failing call is not the cause: it has to make most others right, too.
        Most and not all, because some may have a fault of their own.
        """
        self.alike, some = alike, ""
        # In the order of the changes, but for what was said.
        for each in sorted(self._alternatives(self.call), key=self._is_news):
            if (self.of_number and each.moves) or not self._fails(each.where):
                continue
            right = [n for n, (_, other) in enumerate(each.calls) if self._is_right(other, each.excludes)]
            if 2 * len(right) <= len(each.calls):
                some = some or self._values(each, right)
                continue
            if each.moves and not all(self._tells(each.calls[n][1]) for n in right):
                continue
            explanation = self._of_shape(each, right[0]) if each.excludes is None else self._of_most(each, right)
            if explanation is not None:
                return explanation
        return Explanation(some, None, some) if some else None

    def holds_with(self, words: str) -> bool:
        """Whether the test holds with the choice of these words."""
        named = (call for each in self._alternatives(self.call) for name, call in each.calls if name == words)
        return any(self._outcome(call, REPEATS).holds for call in named)

    def _is_news(self, each: Alternative) -> bool:
        return all(words not in self.said for words, _ in each.calls)

    def _alternatives(self, call: Call) -> Iterator[Alternative]:
        """Other choices for a call. A test that moves the axis itself has none of another axis."""
        relations = getattr(self.function, "relations", {})
        moved = isinstance(relations.get(self.bench.tested.property_id), AlongAxis)
        return alternatives(self.function, call, moving_axis=not moved)

    def _of_shape(self, each: Alternative, right: int) -> Explanation | None:
        """What calls of another shape are right with, if most fail in the failing call's shape and none in theirs."""
        words, other = each.calls[right]
        failing = self._of_each_fill(self.call)
        if 2 * sum(map(self._fails, failing)) <= len(failing):
            return None
        if any(self._outcome(call).finding is not None for call in self._of_each_fill(other)):
            return None
        return Explanation(words := self._lengths(words, other), None, words)

    def _of_most(self, each: Alternative, right: Sequence[int]) -> Explanation | None:
        """The choice that makes most failing calls right."""
        assert each.excludes is not None
        shares = self._shares_right(each, right, [other for other in self._failing if each.excludes(other)])
        best = max(right, key=lambda n: (shares[n], each.calls[n][0] in self.said))
        if shares[best] <= 1 / 2:
            return None
        words, several = each.calls[best][0], [n for n in right if shares[n] > 1 / 2]
        return Explanation(words, each.excludes, self._all_values(each, several, words))

    def _values(self, each: Alternative, right: Sequence[int]) -> str:
        """The values of an argument with which a call is right, and those with which it is wrong; empty if unknown."""
        right = [n for n in right if each.value and self._tells(each.calls[n][1])]
        if not right or min(self._shares_right(each, right, self._failing).values()) <= 1 / 2:
            return ""
        return self._all_values(each, right, each.calls[right[0]][0])

    def _all_values(self, each: Alternative, right: Sequence[int], words: str) -> str:
        """The words of a value that is right, with the others that are, and those that are wrong as the call's is."""
        if not each.value or len(each.calls) < _SOME:
            return words
        others = [each.calls[n][0] for n in right if each.calls[n][0] != words]
        wrong = [said for n, (said, other) in enumerate(each.calls) if n not in right and self._fails(other)]
        listed = ", ".join([words, *map(_value, others)])
        return f"{listed}; wrong with {', '.join([each.value, *map(_value, wrong)])}"

    def _lengths(self, words: str, other: Call) -> str:
        """The lengths of one dimension with which calls are right, and wrong; the words if there are few of either."""
        dimension, calls = in_lengths(self.function, self.call, other)
        found = {str(n): self._outcome(each) for n, each in calls.items() if not self._late}
        right = [n for n, outcome in found.items() if outcome.holds]
        wrong = [n for n, outcome in found.items() if outcome.finding is not None]
        if min(len(right), len(wrong)) < _SOME:
            return words
        return f"lengths {', '.join(right)} {dimension}; wrong with {', '.join(wrong)}"

    # Runs of the test.

    @property
    def _late(self) -> bool:
        return self.bench.spent > self.until

    def _outcome(self, call: Call, examples: int = 1) -> Outcome:
        return self.bench.outcome(self.test, call, examples)

    def _fails(self, call: Call | None) -> bool:
        """Whether a call, if there is one, fails in the same way."""
        return call is None or self._outcome(call).is_like(self.finding)

    def _is_right(self, call: Call, excludes: Callable[[Call], bool] | None) -> bool:
        """Whether the test holds with this call, and does not fail with other values that are not excluded."""
        if self._late or not self._outcome(call, REPEATS).holds:
            return False
        others = filterfalse(excludes or (lambda _: False), self._with_other_values(call, _DRAWS))
        return all(self._outcome(other).finding is None for other in islice(others, _SEEDS))

    def _shares_right(self, each: Alternative, right: Sequence[int], among: Sequence[Call]) -> dict[int, float]:
        """The share of these failing calls that each of the choices makes right; 0 if too few can have it."""
        names = list(each.named)
        return {n: self._share_right(names[n], each.excludes, among) for n in right}

    def _share_right(self, name: str, excludes: Callable[[Call], bool] | None, among: Sequence[Call]) -> float:
        found = (
            next((each.named[name] for each in self._alternatives(call) if name in each.named), None) for call in among
        )
        right = [self._is_right(other, excludes) for other in found if other is not None]
        return sum(right) / len(right) if right else 0.0

    @cached_property
    def _failing(self) -> list[Call]:
        """Other calls that fail in the same way: known ones in different shapes, and the call with other values."""
        by_shapes = {tuple(t.shape for t in each.tensors): each for each in (*self.alike, self.call)}
        found = [each for each in by_shapes.values() if each != self.call][: _FAILING - 1]
        for other in self._with_other_values(self.call):
            if len(found) >= _FAILING or self._late:
                break
            if self._fails(other):
                found.append(other)
        return found

    # Calls with other values.

    def _with_other_values(self, call: Call, count: int = _SEEDS) -> Iterator[Call]:
        return (replace(varied(call, self.function), seed=call.seed + seed) for seed in range(1, count + 1))

    def _of_each_fill(self, call: Call) -> list[Call]:
        """The call with values of another kind each time."""
        found = [call]
        for _ in range(_SEEDS):
            found.append(varied(found[-1], self.function))
        return found[1:]

    def _tells(self, right: Call) -> bool:
        """Whether a right call has no gradient that is trivial there alone: 0, or equal to a cotangent."""
        trivial = attempted(lambda: [self._trivial(each) for each in (self.call, right)])
        return trivial is None or not any(there and not here for here, there in zip(*trivial, strict=True))

    def _trivial(self, call: Call) -> list[bool]:
        """Of each gradient, whether it is 0, or equal to a cotangent of which no two entries are equal."""
        given = tuple(g and replace(g, fill="ramp", layout="contiguous") for g in call.cotangents)
        example = self.bench.tested.made(replace(call, cotangents=given))
        _, gradients = example.run()
        cotangents = [g for g in copied(example.implementation, example.cotangents) if g is not None]
        found = copied(example.implementation, gradients)
        return [g is None or not np.any(g) or any(np.array_equal(g, c) for c in cotangents) for g in found]


def _value(words: str) -> str:
    """The value alone, of words such as `argument 1 (p) = 2`."""
    return words.partition(" = ")[2]
