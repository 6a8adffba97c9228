"""Generated Functions that store tensors for backward, by save_for_backward or as attributes of ctx.

As in `reference.polynomials`, every number is a small integer and results are compared for equality.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from autograd_conformance.reference.generated import Printable, integers, new_class

# What a Function of two tensors may store. Only the first one requires grad. NOTHING stores None.
KINDS = ("input", "fixed input", "output", "intermediate")
NOTHING = "nothing"


def ignore(ctx: Any, tensors: Any) -> None:
    """Do nothing."""


@dataclass(frozen=True, repr=False)
class Storing(Printable):
    """A Function of two tensors that stores tensors for backward; its ``outputs`` are multiples of the first one.

    ``stored`` lists the kinds of tensors that are stored, in order: by save_for_backward if ``saved``, else as
    attributes of ctx. "output" is the last output. If backward ``reads`` what is stored, the gradient of the first
    input is the sum of the cotangents times (the first stored tensor + 2 times the second + 3 times the third ...);
    otherwise it is the sum of the cotangents.
    """

    always = ("stored", "saved")

    stored: tuple[str, ...] = ("input",)
    saved: bool = True
    reads: bool = True
    outputs: int = 1
    shape: tuple[int, ...] = ()
    separate: bool = False
    dtype: str = "float64"
    seed: int = 0

    @cached_property
    def values(self) -> dict[str, Any]:
        """The value of each kind of tensor."""
        x, fixed = (integers((self.seed, salt), self.shape) for salt in (1, 2))
        return {
            "input": x,
            "fixed input": fixed,
            "output": self.forward_of(x)[-1],
            "intermediate": np.asarray(x + fixed),
        }

    @cached_property
    def factors(self) -> Any:
        """The factor by which each output is a multiple of the first input."""
        return np.array([2.0, -1.0, 1.0][-self.outputs :])

    def cotangents(self) -> tuple[Any, ...]:
        """An array for each output."""
        return tuple(np.sign(integers((self.seed, 10 + o), self.shape)) for o in range(self.outputs))

    def forward(self) -> tuple[Any, ...]:
        """The outputs."""
        return self.forward_of(self.values["input"])

    def forward_of(self, x: Any) -> tuple[Any, ...]:
        """The outputs for another first input."""
        return tuple(np.asarray(factor * x) for factor in self.factors)

    def gradients(self, cotangents: Sequence[Any], changed: Mapping[str, float] | None = None) -> tuple[Any, ...]:
        """The gradients of both inputs, if the kinds in ``changed`` were set to a number after they were stored."""
        now = {kind: np.full(self.shape, (changed or {})[kind]) if kind in (changed or {}) else value
               for kind, value in self.values.items()}  # fmt: skip
        read = sum((k * now[kind] for k, kind in enumerate(self.stored, 1) if kind != NOTHING), np.zeros(self.shape))
        total = sum(cotangents, np.zeros(self.shape))
        return np.asarray(total * read if self.reads else total), None

    def body(
        self,
        ag: Any,
        on_store: Callable[[Any, Mapping[str, Any]], None] = ignore,
        on_read: Callable[[Any, Sequence[Any]], None] = ignore,
    ) -> Any:
        """The Function over an autograd namespace.

        It calls ``on_store(ctx, tensors by kind)`` when it stores, and ``on_read(ctx, tensors)`` when it reads.
        """
        factors, kinds = self.factors.tolist(), self.stored

        def forward(x: Any, _: Any) -> tuple[Any, ...]:
            return tuple(factor * x for factor in factors)

        def store(ctx: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
            known = {"input": inputs[0], "fixed input": inputs[1], "output": outputs[-1], NOTHING: None}
            known["intermediate"] = inputs[0] + inputs[1]
            tensors = [known[kind] for kind in kinds]
            if self.saved:
                ctx.save_for_backward(*tensors)
            else:
                for position, tensor in enumerate(tensors):
                    setattr(ctx, f"tensor_{position}", tensor)
            on_store(ctx, known)

        def combined(ctx: Any, x: Any, fixed: Any) -> tuple[Any, ...]:
            outputs = forward(x, fixed)
            store(ctx, (x, fixed), outputs)
            return outputs

        def stored(ctx: Any) -> Sequence[Any]:
            if self.saved:
                found: Sequence[Any] = ctx.saved_tensors
                return found
            return [getattr(ctx, f"tensor_{position}") for position in range(len(kinds))]

        def backward(ctx: Any, *cotangents: Any) -> tuple[Any, ...]:
            total = sum(cotangents[1:], cotangents[0])
            if not self.reads:
                return total, None
            tensors = stored(ctx)
            on_read(ctx, tensors)
            terms = [k * t for k, t in enumerate(tensors, 1) if t is not None]
            return total * sum(terms[1:], terms[0]) if terms else 0 * total, None

        separate = {"forward": forward, "setup_context": store}
        methods: dict[str, Any] = separate if self.separate else {"forward": combined}
        return new_class(ag, "Storing", **methods, backward=backward)
