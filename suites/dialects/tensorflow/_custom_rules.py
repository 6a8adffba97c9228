"""Functions with a custom gradient that is not their derivative, so that a result shows which of the two was used."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import tensorflow as tf
from hypothesis import strategies as st

# Where a function runs: eagerly, compiled under an eager tape, or compiled together with its tape.
EAGER, COMPILED, WITHIN = "eager", "under tf.function", "with its tape under tf.function"
MODES = (EAGER, COMPILED, WITHIN)
SHAPES = ((), (1,), (3,), (2, 3), (0,))


@dataclass(frozen=True)
class Rule:
    """Each output is a weighted sum of the inputs; each gradient a sum of the cotangents with weights of its own.

    All are small integers that ``seed`` determines; no weight is 0, and backward has other weights than forward.
    """

    inputs: int = 1
    outputs: int = 1
    shape: tuple[int, ...] = ()
    dtype: str = "float64"
    seed: int = 0

    def _integers(self, salt: int, shape: tuple[int, ...], low: int = -3, high: int = 4) -> Any:
        drawn = np.random.default_rng((self.seed, salt)).choice([n for n in range(low, high) if n], size=shape)
        return np.asarray(drawn, dtype=np.float64)

    @cached_property
    def forward(self) -> Any:
        """The weight of each input (columns) in each output (rows)."""
        return self._integers(0, (self.outputs, self.inputs))

    @cached_property
    def backward(self) -> Any:
        """The weight of each output's cotangent (rows) in each input's gradient (columns)."""
        return self._integers(1, (self.outputs, self.inputs), 4, 8)

    @cached_property
    def values(self) -> list[Any]:
        return [self._integers(10 + i, self.shape) for i in range(self.inputs)]

    @cached_property
    def cotangents(self) -> list[Any]:
        return [self._integers(100 + o, self.shape) for o in range(self.outputs)]

    @property
    def ones(self) -> list[Any]:
        """The cotangents that a tape uses by default."""
        return [np.ones(self.shape)] * self.outputs

    def expected_outputs(self) -> list[Any]:
        return [np.asarray(sum(map(np.multiply, row, self.values))) for row in self.forward]

    def expected_gradients(self, cotangents: Sequence[Any]) -> list[Any]:
        """The gradients that the custom rule gives."""
        return [np.asarray(sum(map(np.multiply, column, cotangents))) for column in self.backward.T]

    def compute(self, tensors: Sequence[Any]) -> tuple[Any, ...]:
        """The outputs for tensors."""
        return tuple(_weighted(row, tensors) for row in self.forward.tolist())

    def pull(self, cotangents: Sequence[Any]) -> tuple[Any, ...]:
        """The gradients that the custom rule gives for tensors."""
        return tuple(_weighted(column, cotangents) for column in self.backward.T.tolist())

    def function(self, shown: Callable[..., Any] = lambda *_: None) -> Callable[..., Any]:
        """The decorated function of the inputs; ``shown`` is called with the cotangents of each backward pass."""

        @tf.custom_gradient  # type: ignore[untyped-decorator]
        def combined(*tensors: Any) -> Any:
            def grad_fn(*cotangents: Any) -> Any:
                shown(*cotangents)
                return self.pull(cotangents)

            return self.compute(tensors), grad_fn

        function: Callable[..., Any] = combined
        return function


def _weighted(weights: Sequence[float], tensors: Sequence[Any]) -> Any:
    terms = [w * x for w, x in zip(weights, tensors, strict=True)]
    return sum(terms[1:], terms[0])


def drawn_rule(subject: Any, data: Any, **fixed: Any) -> Rule:
    """A rule with one to three inputs and outputs, of any shape and dtype that is not ``fixed``."""
    parts = {
        "inputs": st.integers(1, 3),
        "outputs": st.integers(1, 3),
        "shape": st.sampled_from(SHAPES),
        "dtype": st.sampled_from(subject.dtypes),
        "seed": st.integers(0, 99),
        **{name: st.just(value) for name, value in fixed.items()},
    }
    rule: Rule = subject.draw(data, st.builds(Rule, **parts), "function")
    return rule


def outputs_and_gradients(
    f: Callable[..., Any], inputs: Any, cotangents: Any = None, mode: str = EAGER, **options: Any
) -> tuple[Any, Any]:
    """The outputs and the gradients of a function of these inputs, in a mode."""
    compiled = tf.function(f, autograph=False) if mode == COMPILED else f

    def run() -> tuple[Any, Any]:
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            outputs = compiled(*inputs)
        return outputs, tape.gradient(outputs, inputs, cotangents, **options)

    result: tuple[Any, Any] = (tf.function(run, autograph=False) if mode == WITHIN else run)()
    return result


def taped(f: Callable[..., Any], inputs: Any, **options: Any) -> tuple[Any, Any]:
    """A tape that watches the inputs, and the function's outputs under it."""
    with tf.GradientTape(**options) as tape:
        tape.watch(inputs)
        outputs = f(*inputs)
    return tape, outputs
