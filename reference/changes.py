"""Generated Functions that change their arguments in place or return them, and views, with their NumPy references.

As in `reference.polynomials`, every number is a small integer and results are compared for equality.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from autograd_conformance.reference.generated import Printable, combination, integers, new_class

# Kinds of arguments: changed in place or only read, each with and without requires_grad.
ROLES = ("changed", "changed fixed", "tracked", "fixed")


@dataclass(frozen=True, repr=False)
class Change(Printable):
    """A Function that replaces each changed argument by a weighted sum of itself and the arguments that it only reads.

    ``returned`` has an entry for each output: the position of the changed argument that it is, or None for a new
    tensor, a weighted sum of all arguments. ``separate`` says that the body has a ``setup_context``, ``early`` that
    mark_dirty is called before the change, ``silent`` that it is not called; ``constant`` lists the positions of the
    arguments that are also marked non-differentiable.
    """

    always = ("arguments", "returned")

    arguments: tuple[str, ...] = ("changed",)
    returned: tuple[int | None, ...] = (0,)
    shape: tuple[int, ...] = ()
    separate: bool = False
    early: bool = False
    silent: bool = False
    constant: tuple[int, ...] = ()
    dtype: str = "float64"
    seed: int = 0

    @property
    def changed(self) -> tuple[int, ...]:
        """The positions of the arguments that are changed."""
        return tuple(i for i, role in enumerate(self.arguments) if role.startswith("changed"))

    @property
    def track(self) -> tuple[bool, ...]:
        """Whether each argument requires grad."""
        return tuple(role in ("changed", "tracked") for role in self.arguments)

    @cached_property
    def values(self) -> tuple[Any, ...]:
        """The arguments."""
        return tuple(integers((self.seed, 1 + i), self.shape) for i in range(len(self.arguments)))

    @cached_property
    def factors(self) -> Any:
        """The weight of each argument (columns) in the new value of each changed argument (rows)."""
        drawn = integers((self.seed, 0), (len(self.arguments), len(self.arguments)))
        rows, columns = np.indices(drawn.shape)
        drawn[(rows != columns) & np.isin(columns, self.changed)] = 0
        return drawn

    @cached_property
    def weights(self) -> Any:
        """The weight of each argument (columns) in each output (rows)."""
        new = integers((self.seed, 1000), (len(self.returned), len(self.arguments)))
        return np.stack([new[o] if i is None else self.factors[i] for o, i in enumerate(self.returned)])

    def cotangents(self, salt: int = 0) -> tuple[Any, ...]:
        """An array for each output."""
        return tuple(integers((self.seed, 2000 + salt + o), self.shape) for o in range(len(self.returned)))

    def forward(self) -> tuple[Any, ...]:
        """The outputs."""
        return tuple(combination(row, self.values, self.shape) for row in self.weights)

    def changes(self) -> tuple[Any, ...]:
        """The value of each argument after the call."""
        rows = self.factors
        return tuple(
            combination(rows[i], self.values, self.shape) if i in self.changed else x for i, x in enumerate(self.values)
        )

    def vjp(self, cotangents: Sequence[Any]) -> tuple[Any, ...]:
        """The gradient of each argument, None if it does not require grad."""
        given = [np.zeros(self.shape) if g is None else g for g in cotangents]
        columns = zip(self.weights.T, self.track, strict=True)
        return tuple(combination(column, given, self.shape) if need else None for column, need in columns)

    def body(self, ag: Any, seen: list[Any]) -> Any:
        """The Function over an autograd namespace; its ctx is appended to ``seen``."""
        factors, weights, count = self.factors.tolist(), self.weights.tolist(), len(self.arguments)
        read = [i for i in range(count) if i not in self.changed]

        def change(args: Sequence[Any]) -> tuple[Any, ...]:
            new = [None if i is not None else _sum(weights[o], args) for o, i in enumerate(self.returned)]
            for i in self.changed:
                x = args[i]
                x *= factors[i][i]
                for j in read:
                    x += factors[i][j] * args[j]
            return tuple(y if i is None else args[i] for y, i in zip(new, self.returned, strict=True))

        def mark(ctx: Any, args: Sequence[Any]) -> None:
            seen.append(ctx)
            if not self.silent:
                ctx.mark_dirty(*(args[i] for i in self.changed))
            if self.constant:
                ctx.mark_non_differentiable(*(args[i] for i in self.constant))

        def combined(ctx: Any, *args: Any) -> tuple[Any, ...]:
            if self.early:
                mark(ctx, args)
            outputs = change(args)
            if not self.early:
                mark(ctx, args)
            return outputs

        def forward(*args: Any) -> tuple[Any, ...]:
            return change(args)

        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:  # noqa: ARG001 - the protocol's
            mark(ctx, inputs)

        def backward(ctx: Any, *cotangents: Any) -> tuple[Any, ...]:  # noqa: ARG001
            return tuple(_sum([row[i] for row in weights], cotangents) for i in range(count))

        separate = {"forward": forward, "setup_context": setup_context}
        methods: dict[str, Any] = separate if self.separate else {"forward": combined}
        return new_class(ag, "Change", **methods, backward=backward)


# How an output may be made from an argument; the same for tensors and for arrays.
RECIPES: dict[str, Callable[[Any], Any]] = {
    "new": lambda x: x * 2,
    "itself": lambda x: x,
    "view": lambda x: x[...],
    "nested view": lambda x: x[None][0, ...],
    "view of a temporary": lambda x: (x * 2)[...],
    "nested view of a temporary": lambda x: (x * 2)[None][0, ...],
}


@dataclass(frozen=True, repr=False)
class Passing(Printable):
    """A Function that makes each output from one argument, by a recipe.

    ``outputs`` are pairs of a recipe (a key of RECIPES) and the position of an argument. The backward returns weighted
    sums of all cotangents, which are not the derivatives of the recipes.
    """

    always = ("arguments", "outputs")

    arguments: tuple[str, ...] = ("tracked",)
    outputs: tuple[tuple[str, int], ...] = (("itself", 0),)
    shape: tuple[int, ...] = ()
    separate: bool = False
    dtype: str = "float64"
    seed: int = 0

    @property
    def track(self) -> tuple[bool, ...]:
        """Whether each argument requires grad."""
        return tuple(role == "tracked" for role in self.arguments)

    @cached_property
    def values(self) -> tuple[Any, ...]:
        """The arguments."""
        return tuple(integers((self.seed, 1 + i), self.shape) for i in range(len(self.arguments)))

    @cached_property
    def weights(self) -> Any:
        """The weight of each cotangent (rows) in the gradient of each argument (columns)."""
        return integers((self.seed, 0), (len(self.outputs), len(self.arguments)))

    def cotangents(self) -> tuple[Any, ...]:
        """An array for each output."""
        return tuple(integers((self.seed, 2000 + o), self.shape) for o in range(len(self.outputs)))

    def forward(self) -> tuple[Any, ...]:
        """The outputs."""
        return tuple(np.asarray(RECIPES[recipe](self.values[i])) for recipe, i in self.outputs)

    def vjp(self, cotangents: Sequence[Any]) -> tuple[Any, ...]:
        """The gradient of each argument, None if it does not require grad."""
        columns = zip(self.weights.T, self.track, strict=True)
        return tuple(combination(column, cotangents, self.shape) if need else None for column, need in columns)

    def body(self, ag: Any, seen: list[Any]) -> Any:
        """The Function over an autograd namespace; its ctx is appended to ``seen``."""
        columns = self.weights.T.tolist()

        def forward(*args: Any) -> tuple[Any, ...]:
            return tuple(RECIPES[recipe](args[i]) for recipe, i in self.outputs)

        def combined(ctx: Any, *args: Any) -> tuple[Any, ...]:
            seen.append(ctx)
            return forward(*args)

        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:  # noqa: ARG001 - the protocol's
            seen.append(ctx)

        def backward(ctx: Any, *cotangents: Any) -> tuple[Any, ...]:  # noqa: ARG001
            return tuple(_sum(column, cotangents) for column in columns)

        separate = {"forward": forward, "setup_context": setup_context}
        methods: dict[str, Any] = separate if self.separate else {"forward": combined}
        return new_class(ag, "Passing", **methods, backward=backward)


@dataclass(frozen=True)
class View:
    """A view, in steps: each is a key to index with, or ``"mT"`` for the matrix transpose."""

    steps: tuple[Any, ...] = ()

    def __call__(self, tensor: Any) -> Any:
        """The view of a tensor or an array; the steps mean the same for both."""
        for step in self.steps:
            tensor = _transposed(tensor) if step == "mT" else tensor[step]
        return tensor


def _transposed(tensor: Any) -> Any:
    # Arrays have no mT before NumPy 2.
    return np.swapaxes(tensor, -1, -2) if isinstance(tensor, np.ndarray) else tensor.mT


def _sum(weights: Sequence[float], tensors: Sequence[Any]) -> Any:
    terms = [w * x for w, x in zip(weights, tensors, strict=True)]
    return sum(terms[1:], terms[0])
