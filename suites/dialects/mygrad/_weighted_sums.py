"""Generated operations: inputs of all kinds, each times a small integer, added."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
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

    def __repr__(self) -> str:
        return f"Sum({', '.join(f'{f.name}={getattr(self, f.name)!r}' for f in fields(self))})"

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

    def inputs(self) -> list[Any]:
        """New inputs."""
        return [_made(kind, values) for kind, values in zip(self.kinds, self.values, strict=True)]

    def operation(self, log: list[Any] | None = None) -> type[Operation]:
        """The operation; it notes the index and the gradient of each call of backward_var."""
        weights, noted = self.weights, [] if log is None else log

        class WeightedSum(Operation):
            def __call__(self, *variables: Any) -> Any:
                self.variables = variables
                return np.asarray(sum(w * x.data for w, x in zip(weights, variables, strict=True)))

            def backward_var(self, grad: Any, index: int, **kwargs: Any) -> Any:
                noted.append((index, np.copy(grad)))
                return weights[index] * grad

        return WeightedSum

    def call(self, inputs: Any, log: list[Any] | None = None, **options: Any) -> Any:
        """What execute_op gives for these inputs."""
        return mg.execute_op(self.operation(log), *inputs, **options)


def _made(kind: str, values: Any) -> Any:
    if kind in ("variable", "constant"):
        return mg.tensor(values, constant=kind == "constant")
    return {"array": values.copy, "list": values.tolist, "number": values.item}[kind]()


def summed(values: Any, shape: tuple[int, ...]) -> Any:
    """The values summed to a shape that was broadcast."""
    padded = (1,) * (values.ndim - len(shape)) + shape
    axes = tuple(i for i, n in enumerate(padded) if n == 1)
    return np.asarray(values.sum(axis=axes, keepdims=True)).reshape(shape)


def input_gradients(inputs: Any) -> list[Any]:
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


def similar_operation(drawn: Sum, salt: int) -> Sum:
    """Another operation on inputs like these."""
    return replace(drawn, seed=drawn.seed + 100 * salt)
