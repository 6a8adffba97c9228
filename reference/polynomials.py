"""Generated Functions whose every number is a small integer, so that all dtypes compute them without rounding.

The contract of ctx and engine does not depend on what a Function computes. These are drawn in everything that it does
depend on, and are compared for equality: there is no bound to choose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

# Kinds of arguments: tensors that require grad, that do not, that cannot; and what is no tensor.
TENSORS = ("tracked", "fixed", "integers")
STATICS: dict[str, Any] = {
    "None": None,
    "flag": True,
    "number": 2,
    "fraction": 0.5,
    "text": "text",
    "list": [1, 2],
    "dict": {"key": 1},
}
ARGUMENTS = (*TENSORS, *STATICS)

# Kinds of outputs: differentiable, marked non-differentiable, of a dtype that has no gradients, no tensor at all.
OUTPUTS = ("float", "marked", "integers", "static")
STATIC_OUTPUT = ("static",)


@dataclass(frozen=True)
class Polynomial:
    """A Function whose float outputs are ``sum of weight * x ** power`` over its floating tensors.

    All tensors have the same shape. Weights, values and cotangents are integers in [-3, 3] that ``seed`` determines,
    weights never 0. ``separate`` says that the body has a ``setup_context``, ``generous`` that backward returns a
    gradient for every floating tensor, needed or not.
    """

    arguments: tuple[str, ...] = ("tracked",)
    outputs: tuple[str, ...] = ("float",)
    shape: tuple[int, ...] = ()
    power: int = 1
    separate: bool = False
    materialize: bool = True
    generous: bool = False
    dtype: str = "float64"
    seed: int = 0

    def __repr__(self) -> str:
        given = [f for f in fields(self) if f.name == "arguments" or getattr(self, f.name) != f.default]
        return f"Polynomial({', '.join(f'{f.name}={getattr(self, f.name)!r}' for f in given)})"

    @property
    def tensors(self) -> tuple[int, ...]:
        """The positions of the tensor arguments."""
        return tuple(i for i, kind in enumerate(self.arguments) if kind in TENSORS)

    @property
    def floating(self) -> tuple[int, ...]:
        """The positions of the floating tensor arguments."""
        return tuple(i for i, kind in enumerate(self.arguments) if kind in ("tracked", "fixed"))

    @property
    def track(self) -> tuple[bool, ...]:
        """Of each tensor argument, whether it requires grad."""
        return tuple(self.arguments[i] == "tracked" for i in self.tensors)

    @property
    def needs(self) -> tuple[bool, ...]:
        """Of each argument, whether it requires grad."""
        return tuple(kind == "tracked" for kind in self.arguments)

    def _integers(self, salt: int, shape: tuple[int, ...]) -> Any:
        drawn = np.random.default_rng((self.seed, salt)).choice([-3, -2, -1, 1, 2, 3], size=shape)
        return np.asarray(drawn, dtype=np.float64)

    @cached_property
    def weights(self) -> Any:
        """The weight of each floating tensor (columns) in each output (rows)."""
        return self._integers(0, (len(self.outputs), len(self.floating)))

    @cached_property
    def values(self) -> tuple[Any, ...]:
        """The arguments: arrays for tensors, the objects themselves for the others."""
        return tuple(self._value(i, kind) for i, kind in enumerate(self.arguments))

    def _value(self, position: int, kind: str) -> Any:
        if kind in STATICS:
            return STATICS[kind]
        drawn = self._integers(1 + position, self.shape)
        return drawn.astype(np.int64) if kind == "integers" else drawn

    def cotangents(self, used: Sequence[bool] | None = None, salt: int = 0) -> tuple[Any, ...]:
        """An array for each float output that is ``used`` (default: all), None for the other outputs."""
        flags = [True] * len(self.outputs) if used is None else used
        return tuple(
            self._integers(1000 + salt + o, self.shape) if kind == "float" and flag else None
            for o, (kind, flag) in enumerate(zip(self.outputs, flags, strict=True))
        )

    def forward(self) -> tuple[Any, ...]:
        """The outputs: arrays for tensors, STATIC_OUTPUT for what is none."""
        return tuple(self._output(o, kind) for o, kind in enumerate(self.outputs))

    def _output(self, o: int, kind: str) -> Any:
        if kind == "static":
            return STATIC_OUTPUT
        if kind == "integers":
            return np.zeros(self.shape, np.int64)
        terms = (w * self.values[i] ** self.power for w, i in zip(self.weights[o], self.floating, strict=True))
        return np.asarray(sum(terms, np.zeros(self.shape)))

    def vjp(self, cotangents: Sequence[Any]) -> tuple[Any, ...]:
        """The gradient of each argument, None where it requires none; a cotangent None counts as zero."""
        return tuple(self._gradient(i, cotangents) if need else None for i, need in enumerate(self.needs))

    def _gradient(self, position: int, cotangents: Sequence[Any]) -> Any:
        column = self.floating.index(position)
        slope = self.power * self.values[position] ** (self.power - 1)
        terms = (self.weights[o, column] * slope * g for o, g in enumerate(cotangents) if g is not None)
        return np.asarray(sum(terms, np.zeros(self.shape)))

    def body(self, xp: Any, ag: Any) -> Any:
        """The Function over an array namespace and an autograd namespace."""
        power, weights, floating, kinds = self.power, self.weights.tolist(), self.floating, self.outputs
        # Compilers see what the methods refer to: plain values, not the object that they come from.
        materialize, wanted = self.materialize, tuple(self.generous or need for need in self.needs)

        def compute(args: Any) -> tuple[Any, ...]:
            return tuple(
                _computed(xp, kind, row, [args[i] for i in floating], power)
                for kind, row in zip(kinds, weights, strict=True)
            )

        def prepare(ctx: Any, args: Any, outputs: Any) -> None:
            ctx.count = len(args)
            ctx.save_for_backward(*(args[i] for i in floating))
            marked = [y for y, kind in zip(outputs, kinds, strict=True) if kind == "marked"]
            if marked:
                ctx.mark_non_differentiable(*marked)
            if not materialize:
                ctx.set_materialize_grads(False)

        def backward(ctx: Any, *cotangents: Any) -> tuple[Any, ...]:
            found: list[Any] = [None] * ctx.count
            for column, (i, x) in enumerate(zip(floating, ctx.saved_tensors, strict=True)):
                if not wanted[i]:
                    continue
                rows = zip(cotangents, kinds, weights, strict=True)
                given = [row[column] * g for g, kind, row in rows if kind == "float" and g is not None]
                slope = power * x if power == 2 else power
                found[i] = slope * sum(given[1:], given[0]) if given else None
            return tuple(found)

        def combined(ctx: Any, *args: Any) -> tuple[Any, ...]:
            outputs = compute(args)
            prepare(ctx, args, outputs)
            return outputs

        def forward(*args: Any) -> tuple[Any, ...]:
            return compute(args)

        methods: dict[str, Any] = {"forward": combined}
        if self.separate:
            methods = {"forward": forward, "setup_context": prepare}
        namespace: dict[str, Any] = {
            name: staticmethod(method) for name, method in {**methods, "backward": backward}.items()
        }
        return type(ag.Function)("Polynomial", (ag.Function,), namespace)


def _computed(xp: Any, kind: str, weights: Sequence[float], tensors: Sequence[Any], power: int) -> Any:
    if kind == "static":
        return STATIC_OUTPUT
    if kind == "integers":
        # Not every implementation's tensors have a device while it traces.
        placed = {"device": tensors[0].device} if hasattr(tensors[0], "device") else {}
        return xp.zeros(tensors[0].shape, dtype=xp.int64, **placed)
    terms = [w * (x * x if power == 2 else x) for w, x in zip(weights, tensors, strict=True)]
    return sum(terms[1:], terms[0])
