"""Generated Functions that compute with small integers only, so that no dtype rounds.

The contract of ctx and engine does not depend on what a Function computes. `strategies.generated_functions` varies
everything that it does depend on. Results are compared for equality: no bound is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from autograd_conformance.reference.generated import Printable, integers, new_class

# Kinds of arguments: tensors that require grad, do not, or cannot; and objects that are not tensors.
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

# Kinds of outputs: differentiable, marked non-differentiable, of a dtype without gradients, not a tensor.
OUTPUTS = ("float", "marked", "integers", "static")
STATIC_OUTPUT = ("static",)


@dataclass(frozen=True, repr=False)
class Polynomial(Printable):
    """A Function whose float outputs are ``sum of weight * x ** power`` over its floating tensors.

    All tensors have the same shape. Weights, values and cotangents are integers in [-3, 3] that ``seed`` determines,
    without 0. ``separate`` says that the body has a ``setup_context``, ``generous`` that backward returns a gradient
    for every floating tensor, whether it is needed or not.
    """

    always = ("arguments",)

    arguments: tuple[str, ...] = ("tracked",)
    outputs: tuple[str, ...] = ("float",)
    shape: tuple[int, ...] = ()
    power: int = 1
    separate: bool = False
    materialize: bool = True
    generous: bool = False
    dtype: str = "float64"
    seed: int = 0

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
        """Whether each tensor argument requires grad."""
        return tuple(self.arguments[i] == "tracked" for i in self.tensors)

    @property
    def needs(self) -> tuple[bool, ...]:
        """Whether each argument requires grad."""
        return tuple(kind == "tracked" for kind in self.arguments)

    @property
    def tracked(self) -> tuple[int, ...]:
        """The positions of the arguments that require grad."""
        return tuple(i for i, kind in enumerate(self.arguments) if kind == "tracked")

    @property
    def float_outputs(self) -> tuple[int, ...]:
        """The positions of the floating outputs."""
        return tuple(o for o, kind in enumerate(self.outputs) if kind == "float")

    @cached_property
    def weights(self) -> Any:
        """The weight of each floating tensor (columns) in each output (rows)."""
        return integers((self.seed, 0), (len(self.outputs), len(self.floating)))

    @cached_property
    def values(self) -> tuple[Any, ...]:
        """The arguments: arrays for tensors, the objects themselves for the others."""
        return tuple(self._value(i, kind) for i, kind in enumerate(self.arguments))

    def _value(self, position: int, kind: str) -> Any:
        if kind in STATICS:
            return STATICS[kind]
        drawn = integers((self.seed, 1 + position), self.shape)
        return drawn.astype(np.int64) if kind == "integers" else drawn

    def cotangents(self, used: Sequence[bool] | None = None, salt: int = 0) -> tuple[Any, ...]:
        """An array for each float output that is ``used`` (default: all), None for the other outputs."""
        flags = [True] * len(self.outputs) if used is None else used
        return tuple(
            integers((self.seed, 1000 + salt + o), self.shape) if kind == "float" and flag else None
            for o, (kind, flag) in enumerate(zip(self.outputs, flags, strict=True))
        )

    def forward(self) -> tuple[Any, ...]:
        """The outputs: arrays for tensors, STATIC_OUTPUT for the others."""
        return tuple(self._output(o, kind) for o, kind in enumerate(self.outputs))

    def _output(self, o: int, kind: str) -> Any:
        if kind == "static":
            return STATIC_OUTPUT
        if kind == "integers":
            return np.zeros(self.shape, np.int64)
        terms = (w * self.values[i] ** self.power for w, i in zip(self.weights[o], self.floating, strict=True))
        return np.asarray(sum(terms, np.zeros(self.shape)))

    def vjp(self, cotangents: Sequence[Any]) -> tuple[Any, ...]:
        """The gradient of each argument, None if it does not require grad. A cotangent None counts as zero."""
        return tuple(self._gradient(i, cotangents) if need else None for i, need in enumerate(self.needs))

    def _gradient(self, position: int, cotangents: Sequence[Any]) -> Any:
        column = self.floating.index(position)
        slope = self.power * self.values[position] ** (self.power - 1)
        terms = (self.weights[o, column] * slope * g for o, g in enumerate(cotangents) if g is not None)
        return np.asarray(sum(terms, np.zeros(self.shape)))

    def body(self, xp: Any, ag: Any) -> Any:
        """The Function over an array namespace and an autograd namespace."""
        power, weights, floating, kinds = self.power, self.weights.tolist(), self.floating, self.outputs
        # The methods refer to plain values instead of self, because compilers see what they refer to.
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

        separate = {"forward": forward, "setup_context": prepare}
        methods = separate if self.separate else {"forward": combined}
        return new_class(ag, "Polynomial", **methods, backward=backward)


def _computed(xp: Any, kind: str, weights: Sequence[float], tensors: Sequence[Any], power: int) -> Any:
    if kind == "static":
        return STATIC_OUTPUT
    if kind == "integers":
        # While an implementation traces, its tensors may have no device.
        placed = {"device": tensors[0].device} if hasattr(tensors[0], "device") else {}
        return xp.zeros(tensors[0].shape, dtype=xp.int64, **placed)
    terms = [w * (x * x if power == 2 else x) for w, x in zip(weights, tensors, strict=True)]
    return sum(terms[1:], terms[0])
