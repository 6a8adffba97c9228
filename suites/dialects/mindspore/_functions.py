"""Custom Functions and cells whose rule multiplies by the saved arguments, and what differentiates them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import nn

from autograd_conformance.suites.dialects.shared.linear import Case, Spelling


def several(found: Any) -> tuple[Any, ...]:
    """What a function returns, as a tuple: a single output is bare."""
    return found if isinstance(found, tuple) else (found,)


def _returned(outputs: tuple[Any, ...]) -> Any:
    return outputs if len(outputs) > 1 else outputs[0]


def subclass(**methods: Callable[..., Any]) -> Any:
    """A subclass of `mindspore._Function` with these methods."""
    return type("Custom", (ms._Function,), {name: staticmethod(method) for name, method in methods.items()})


def saving(forward: Any, materialize: bool | None = None) -> Any:
    """A ``forward`` that saves its arguments."""

    def run(ctx: Any, *xs: Any) -> Any:
        if materialize is not None:
            ctx.set_materialize_grads(materialize)
        ctx.save_for_backward(*xs)
        return _returned(forward(*xs))

    return run


def function(forward: Any, backward: Any, materialize: bool | None = None) -> Any:
    """The ``apply`` of a subclass that saves its arguments."""
    methods = {"backward": lambda ctx, *gs: backward(ctx.saved_tensors, gs)}
    return subclass(forward=saving(forward, materialize), **methods).apply


def cell(forward: Any, bprop: Any) -> Any:
    """A cell whose ``bprop(arguments, cotangents)`` is its rule."""

    class Custom(nn.Cell):  # type: ignore[misc]
        def construct(self, *xs: Any) -> Any:
            return _returned(forward(*xs))

        def bprop(self, *given: Any) -> Any:
            return bprop(given[:-2], several(given[-1]))

    return Custom()


def _pulled(subject: Any, f: Any, xs: Any, cotangents: Any) -> Any:
    """The outputs, and the gradients of those that have a cotangent."""

    def used(*xs: Any) -> Any:
        return _returned(tuple(y for y, g in zip(several(f(*xs)), cotangents, strict=True) if g is not None))

    outputs, pullback = ms.vjp(used, *xs)
    return several(outputs), pullback(*(g for g in cotangents if g is not None))


FUNCTIONS = {"function": Spelling(function, _pulled)}
CELLS = {"cell": Spelling(cell, _pulled)}


class MindSporeCase(Case):
    """A drawn linear function whose rule multiplies by the arguments, as a custom Function or as a cell."""

    def __init__(self, subject: Any, data: Any, spelled: Any = FUNCTIONS, **restrictions: Any) -> None:
        super().__init__(subject, data, spelled, **restrictions)

    def rule(self, xs: Sequence[Any], cotangents: Sequence[Any]) -> tuple[Any, ...]:
        """The gradients for tensors or arrays."""
        return self.products(xs, cotangents)

    def subclass(self, **methods: Any) -> Any:
        """A custom Function with the rule, or with other methods."""
        usual = {"forward": saving(self.linear.primal), "backward": lambda ctx, *gs: self.rule(ctx.saved_tensors, gs)}
        return subclass(**{**usual, **methods})

    @property
    def apply(self) -> Any:
        """The ``apply`` of a custom Function with the rule."""
        return self.subclass().apply

    @property
    def cell(self) -> Any:
        """A cell with the rule."""
        return cell(self.linear.primal, self.rule)

    def gradients(self, f: Any) -> Any:
        """The gradients of `mindspore.vjp` at the points, for the cotangents."""
        return ms.vjp(f, *self.points)[1](*self.cotangents)

    def expected(self, cotangents: Any = None, xs: Any = None) -> list[Any]:
        """The gradients in NumPy, for these cotangents at these arguments or for the drawn ones."""
        given = self.linear.cotangents if cotangents is None else cotangents
        return list(map(np.asarray, self.rule(self.linear.points if xs is None else xs, given)))

    def assert_gradients(self, got: Any, cotangents: Any = None, xs: Any = None) -> None:
        """Assert that the gradients are those of the rule."""
        self.subject.assert_all_same("gradients", got=got, expected=self.expected(cotangents, xs))
