"""Linear functions whose rule is not their derivative, so that a result shows which of the two was used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from hypothesis import strategies as st

SHAPES = ((), (3,), (2, 3))
DTYPES = ("float64", "float32")
WEIGHTS = st.integers(1, 3)


def combined(weights: Sequence[int], arrays: Sequence[Any]) -> Any:
    """The weighted sum of arrays, of NumPy or of JAX."""
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
        """The arguments' cotangents by the rule."""
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

    def with_vjp(self, *, forward: Callable[..., Any] | None = None, backward: Callable[..., Any] | None = None) -> Any:
        """The function as a `jax.custom_vjp`."""
        function = jax.custom_vjp(lambda *xs: self.primal(*xs))
        function.defvjp(
            forward or (lambda *xs: (self.primal(*xs), None)), backward or (lambda _, cts: self.pulled(*cts))
        )
        return function

    def with_jvp(self, rule: Callable[..., Any] | None = None) -> Any:
        """The function as a `jax.custom_jvp`."""
        function = jax.custom_jvp(lambda *xs: self.primal(*xs))
        function.defjvp(rule or (lambda primals, tangents: (self.primal(*primals), self.pushed(*tangents))))
        return function


@st.composite
def linears(draw: Any, *, max_arguments: int = 3, max_outputs: int = 2, shapes: Any = SHAPES) -> Linear:
    """A function of one to three arguments with one or two outputs."""
    columns, rows = draw(st.integers(1, max_arguments)), draw(st.integers(1, max_outputs))
    matrices = st.tuples(*[st.tuples(*[WEIGHTS] * columns)] * rows)
    negative = tuple(tuple(-w for w in row) for row in draw(matrices))
    return Linear(draw(matrices), negative, draw(st.sampled_from(shapes)), draw(st.sampled_from(DTYPES)),
                  draw(st.integers(0, 99)))  # fmt: skip


# Ways to put a list of leaves into containers, which JAX flattens in the same order.
PACKS: dict[str, Callable[[Sequence[Any]], Any]] = {
    "tuple": tuple,
    "list": list,
    "dict": lambda leaves: {f"key {i}": leaf for i, leaf in enumerate(leaves)},
    "nested": lambda leaves: {"first": leaves[0], "others": (list(leaves[1:]), {})},
}


def leaves(tree: Any) -> list[Any]:
    """The leaves of a pytree."""
    return jax.tree_util.tree_leaves(tree)


def jax_arrays(subject: Any, linear: Linear, arrays: Sequence[Any]) -> list[Any]:
    """The arrays as JAX arrays of the function's dtype."""
    return list(subject.tensors(arrays, linear.dtype))


def argument_of(linear: Linear) -> st.SearchStrategy[int]:
    """The position of an argument."""
    return st.integers(0, linear.arguments - 1)
