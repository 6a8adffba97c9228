"""Generated operations: inputs of all kinds, each times a small integer, added."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import mygrad as mg
import numpy as np
from hypothesis import strategies as st
from mygrad.operation_base import Operation

SHAPES = ((), (1,), (3,), (2, 3), (0,))
# Shapes to which others can be broadcast.
WIDE = ((3,), (2, 3), (0,), (2, 1, 3))
KINDS = ("variable", "constant", "array", "list", "number")


@dataclass(frozen=True)
class Sum:
    """An operation that adds its inputs, each times its weight; ``shapes`` are those of the inputs."""

    kinds: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    dtype: str = "float64"
    seed: int = 0

    def integers(self, salt: int, shape: tuple[int, ...]) -> Any:
        drawn = np.random.default_rng((self.seed, salt)).choice([-3, -2, -1, 1, 2, 3], size=shape)
        return np.asarray(drawn, dtype=self.dtype)

    @cached_property
    def weights(self) -> list[float]:
        return self.integers(0, (len(self.kinds),)).tolist()

    @cached_property
    def values(self) -> list[Any]:
        return [self.integers(1 + i, shape) for i, shape in enumerate(self.shapes)]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the output."""
        return np.broadcast_shapes(*self.shapes)

    @property
    def variables(self) -> list[int]:
        """The positions of the inputs that get a gradient."""
        return [i for i, kind in enumerate(self.kinds) if kind == "variable"]

    @property
    def output(self) -> Any:
        return np.asarray(sum(w * x for w, x in zip(self.weights, self.values, strict=True)))

    def cotangent(self, salt: int = 0) -> Any:
        return self.integers(100 + salt, self.shape)

    def gradients(self, cotangent: Any) -> list[Any]:
        """The gradient of each input, None for those that get none."""
        return [
            summed(w * cotangent, shape) if kind == "variable" else None
            for w, shape, kind in zip(self.weights, self.shapes, self.kinds, strict=True)
        ]


def _made(kind: str, values: Any) -> Any:
    if kind in ("variable", "constant"):
        return mg.tensor(values, constant=kind == "constant")
    return {"array": values.copy, "list": values.tolist, "number": values.item}[kind]()


def summed(values: Any, shape: tuple[int, ...]) -> Any:
    """The values summed to a shape that was broadcast."""
    padded = (1,) * (values.ndim - len(shape)) + shape
    axes = tuple(i for i, n in enumerate(padded) if n == 1)
    return np.asarray(values.sum(axis=axes, keepdims=True)).reshape(shape)


def gradients_of(inputs: Any) -> list[Any]:
    """The gradient of each input, None for non-tensors."""
    return [x.grad if isinstance(x, mg.Tensor) else None for x in inputs]


@st.composite
def sums(draw: Any, *, kinds: Any = KINDS, least: int = 1, broadcast: bool = False, dtypes: Any = ("float64",)) -> Sum:
    """An operation with at least one variable, at any position, of ``least`` or more inputs; numbers are scalars."""
    others = draw(st.lists(st.sampled_from(kinds), min_size=least - 1, max_size=3))
    place = draw(st.integers(0, len(others)))
    roles = (*others[:place], "variable", *others[place:])
    shape = draw(st.sampled_from(WIDE if broadcast else SHAPES))
    smaller = sorted({shape[k:] for k in range(len(shape) + 1)} | {(1, *shape[1:]), (1,) * len(shape)})
    shapes = tuple(() if kind == "number" else draw(st.sampled_from(smaller)) if broadcast else shape for kind in roles)
    return Sum(roles, shapes, draw(st.sampled_from(dtypes)), draw(st.integers(0, 99)))


class MyGradCase:
    """A drawn operation, inputs for it, and the verbs of a test; ``g`` is an array like its output."""

    def __init__(self, subject: Any, data: Any, **restrictions: Any) -> None:
        drawn: Sum = subject.draw(data, sums(**restrictions), "operation")
        self._use(subject, drawn)

    def _use(self, subject: Any, drawn: Sum) -> None:
        self.subject, self.drawn, self.g = subject, drawn, drawn.cotangent()
        # The index and the gradient of each call of backward_var.
        self.log: list[Any] = []
        self.inputs = self.new_inputs()

    def similar(self, salt: int) -> MyGradCase:
        """A case with another operation on inputs like these."""
        case = copy(self)
        case._use(self.subject, replace(self.drawn, seed=self.drawn.seed + 100 * salt))
        return case

    def new_inputs(self) -> list[Any]:
        """More inputs like the case's own."""
        return [_made(kind, values) for kind, values in zip(self.drawn.kinds, self.drawn.values, strict=True)]

    def operation(self, **methods: Any) -> type[Operation]:
        """The operation, which notes each call of backward_var, with these methods in place of its own."""
        weights, log = self.drawn.weights, self.log

        class WeightedSum(Operation):
            def __call__(self, *variables: Any) -> Any:
                self.variables = variables
                return np.asarray(sum(w * x.data for w, x in zip(weights, variables, strict=True)))

            def backward_var(self, grad: Any, index: int, **kwargs: Any) -> Any:
                log.append((index, np.copy(grad)))
                return weights[index] * grad

        return type("Changed", (WeightedSum,), methods) if methods else WeightedSum

    def returning(self, change: Callable[[int, Any], Any]) -> type[Operation]:
        """The operation with a backward_var that returns ``change(index, gradient)``."""
        weights = self.drawn.weights
        return self.operation(backward_var=lambda _, grad, index, **kwargs: change(index, weights[index] * grad))

    def call(self, inputs: Any = None, **options: Any) -> Any:
        """What execute_op gives for these inputs, or for the case's own."""
        return mg.execute_op(self.operation(), *(self.inputs if inputs is None else inputs), **options)

    def assert_gradients(self, expected: Any = None, *, cotangent: Any = None, what: str = "gradients") -> None:
        """Assert that the inputs' gradients are these, or those for a cotangent, which is ``g`` by default."""
        right = self.drawn.gradients(self.g if cotangent is None else cotangent)
        wanted = right if expected is None else expected
        self.subject.assert_all_same(what, got=gradients_of(self.inputs), expected=wanted)
