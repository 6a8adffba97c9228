"""Linear functions whose rule is not their derivative, so that a result shows which of the two was used."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from hypothesis import strategies as st

from autograd_conformance.harness.testing.clauses import ClauseSubject

SHAPES = ((), (1,), (3,), (2, 3))
WEIGHTS = st.integers(1, 3)
# Ways to put a list of leaves into containers.
CONTAINERS: dict[str, Callable[[Sequence[Any]], Any]] = {
    "tuple": tuple,
    "list": list,
    "dict": lambda leaves: {f"key {i}": leaf for i, leaf in enumerate(leaves)},
    "nested": lambda leaves: {"first": leaves[0], "rest": [tuple(leaves[1:])]},
}
# The outputs of a function, or the gradients that its rule gives, for tensors.
Forward = Callable[..., tuple[Any, ...]]
Backward = Callable[[Sequence[Any], Sequence[Any]], tuple[Any, ...]]


def combined(weights: Sequence[float], arrays: Sequence[Any]) -> Any:
    """The weighted sum of arrays, of NumPy or of a framework."""
    terms = [w * x for w, x in zip(weights, arrays, strict=True)]
    return sum(terms[1:], terms[0])


@dataclass(frozen=True)
class Linear:
    """A linear function with a rule that is not its derivative: rows of weights are outputs, columns arguments.

    Weights are in [1, 3], those of the rule in [-3, -1]; values, cotangents and tangents are small integers.
    """

    weights: tuple[tuple[int, ...], ...]
    rule: tuple[tuple[int, ...], ...]
    shape: tuple[int, ...]
    dtype: str
    seed: int

    @property
    def arguments(self) -> int:
        return len(self.weights[0])

    @property
    def outputs(self) -> int:
        return len(self.weights)

    def primal(self, *xs: Any) -> tuple[Any, ...]:
        """The outputs."""
        return tuple(combined(row, xs) for row in self.weights)

    def pushed(self, *tangents: Any) -> tuple[Any, ...]:
        """The outputs' tangents by the rule."""
        return tuple(combined(row, tangents) for row in self.rule)

    def pulled(self, *cotangents: Any) -> tuple[Any, ...]:
        """The arguments' gradients by the rule."""
        return tuple(combined(column, cotangents) for column in zip(*self.rule, strict=True))

    def arrays(self, count: int, salt: int = 0) -> list[Any]:
        """This many arrays of small integers, different for each ``salt``."""
        rng = np.random.default_rng((self.seed, salt))
        return [np.asarray(rng.choice([-3, -2, -1, 1, 2, 3], size=self.shape), np.float64) for _ in range(count)]

    @property
    def points(self) -> list[Any]:
        return self.arrays(self.arguments)

    @property
    def tangents(self) -> list[Any]:
        return self.arrays(self.arguments, 1)

    @property
    def cotangents(self) -> list[Any]:
        return self.arrays(self.outputs, 2)

    @property
    def zeros(self) -> Any:
        return np.zeros(self.shape)

    @property
    def ones(self) -> list[Any]:
        """The cotangents by which a framework starts unless it is given others."""
        return [np.ones(self.shape)] * self.outputs


@st.composite
def linears(
    draw: Any, *, dtypes: Sequence[str], shapes: Sequence[tuple[int, ...]] = SHAPES, arguments: int | None = None,
    min_arguments: int = 1, max_arguments: int = 3, outputs: int | None = None, min_outputs: int = 1,
    max_outputs: int = 3,
) -> Linear:  # fmt: skip
    """A function of one to three arguments with one to three outputs, or of given numbers."""
    columns = arguments or draw(st.integers(min_arguments, max_arguments))
    rows = outputs or draw(st.integers(min_outputs, max_outputs))
    matrices = st.tuples(*[st.tuples(*[WEIGHTS] * columns)] * rows)
    negative = tuple(tuple(-w for w in row) for row in draw(matrices))
    return Linear(draw(matrices), negative, draw(st.sampled_from(shapes)), draw(st.sampled_from(dtypes)),
                  draw(st.integers(0, 99)))  # fmt: skip


def by_adapter(subject: ClauseSubject, f: Any, xs: Sequence[Any], cotangents: Sequence[Any]) -> tuple[Any, Any]:
    """The outputs of a function and the gradients of its arguments; an output without a cotangent is not used."""
    outputs, pullback = subject.implementation.vjp(f, xs)
    return outputs, pullback(cotangents)


@dataclass(frozen=True)
class Spelling:
    """How a framework writes a function with a rule, ``custom(forward, backward)``, and how it differentiates it.

    ``forward(*xs)`` gives the outputs, ``backward(xs, cotangents)`` the gradients. ``wordless``: its errors need not
    name what is wrong.
    """

    custom: Callable[..., Any]
    pulled: Callable[[ClauseSubject, Any, Sequence[Any], Sequence[Any]], tuple[Any, Any]] = by_adapter
    wordless: bool = False


Spellings = Mapping[str, Spelling]


def drawn_spelling(subject: ClauseSubject, data: Any, spellings: Spellings) -> Spelling:
    """One of the spellings; a single one is not drawn."""
    name = subject.draw(data, tuple(spellings), "spelling") if len(spellings) > 1 else next(iter(spellings))
    return spellings[name]


class Case:
    """A drawn linear function in a framework's spelling, with the verbs of a test."""

    def __init__(self, subject: ClauseSubject, data: Any, spellings: Spellings, **restrictions: Any) -> None:
        self.subject, self.spelling = subject, drawn_spelling(subject, data, spellings)
        function: Linear = subject.draw(data, linears(**{"dtypes": subject.dtypes, **restrictions}), "function")
        self.linear = function

    def rule(self, xs: Sequence[Any], cotangents: Sequence[Any]) -> tuple[Any, ...]:
        """The gradients by the rule."""
        return self.linear.pulled(*cotangents)

    def products(self, xs: Sequence[Any], cotangents: Sequence[Any]) -> tuple[Any, ...]:
        """The gradients by a rule that multiplies by the arguments, for tensors or arrays."""
        return tuple(x * g for x, g in zip(xs, self.linear.pulled(*cotangents), strict=True))

    def custom(self, backward: Backward | None = None, forward: Forward | None = None, **options: Any) -> Any:
        """The function with its rule, or with another one."""
        return self.spelling.custom(forward or self.linear.primal, backward or self.rule, **options)

    def tensors(self, arrays: Sequence[Any]) -> list[Any]:
        """The arrays as tensors of the function's dtype; None stays None."""
        return list(self.subject.tensors(arrays, self.linear.dtype))

    @cached_property
    def points(self) -> list[Any]:
        """The arguments as tensors, the same in every call."""
        return self.tensors(self.linear.points)

    @cached_property
    def cotangents(self) -> tuple[Any, ...]:
        """A tensor like each output."""
        return tuple(self.tensors(self.linear.cotangents))

    def some(self, data: Any, label: str) -> set[int]:
        """The positions of some arguments."""
        drawn: set[int] = self.subject.draw(data, st.sets(st.integers(0, self.linear.arguments - 1), min_size=1), label)
        return drawn

    def pulled(self, f: Any, cotangents: Sequence[Any] | None = None) -> tuple[Any, Any]:
        """The outputs at the points, and the gradients for these cotangents in NumPy."""
        given = self.linear.cotangents if cotangents is None else cotangents
        return self.spelling.pulled(self.subject, f, self.points, self.tensors(given))

    def assert_outputs(self, got: Any) -> None:
        """Assert that the outputs are those of the function."""
        self.subject.assert_all_same("outputs", got=got, expected=self.linear.primal(*self.linear.points))

    def assert_gradients(self, got: Any, cotangents: Sequence[Any] | None = None) -> None:
        """Assert that the gradients are those of the rule."""
        given = self.linear.cotangents if cotangents is None else cotangents
        self.subject.assert_all_same("gradients", got=got, expected=self.linear.pulled(*given))

    def assert_dtypes(self, what: str, got: Sequence[Any]) -> None:
        """Assert that the tensors have the function's dtype."""
        kept = [self.subject.implementation.describe(g).dtype for g in got]
        self.subject.assert_equal(f"dtypes of the {what}", got=kept, expected=[self.linear.dtype] * len(kept))
