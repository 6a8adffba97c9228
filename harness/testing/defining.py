"""The tensors and Functions that the test of a clause makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from autograd_conformance.harness.testing.examined import Examined
from autograd_conformance.reference.polynomials import Polynomial


class Defining(Examined):
    """A subject that makes tensors and Functions for its test."""

    def tensor(self, values: Any, dtype: str | None = None) -> Any:
        """A tensor on the subject's device; integers keep their own dtype."""
        array = np.asarray(values)
        kind = array.dtype.name if array.dtype.kind in "iub" else dtype or self.usual
        return self.implementation.array(array, self.supported(kind), self.device)

    def tensors(self, arrays: Sequence[Any], dtype: str | None = None) -> tuple[Any, ...]:
        """A tensor for each array, None for None."""
        return tuple(None if a is None else self.tensor(a, dtype) for a in arrays)

    def body(self, polynomial: Polynomial) -> Any:
        """The generated Function as the implementation's own class."""
        return polynomial.body(self.implementation.xp, self.implementation.ag)

    def define(self, *bases: Any, name: str = "Custom", separate: bool | None = None, **members: Any) -> Any:
        """A Function with these methods and flags, derived from ``bases`` or from the implementation's base class.

        Unless ``separate`` is None, ``forward`` takes no ctx, and what it leaves to ``setup_context`` (by default
        nothing) is done there if ``separate`` is true, and at the end of a forward that takes ctx if it is false. A
        member of None is left out.
        """
        base = self.implementation.ag.Function
        if separate is not None:
            members = {"setup_context": _nothing, **members}
        if separate is False:
            members["forward"] = _combined(members["forward"], members.pop("setup_context"))
        given = {key: member for key, member in members.items() if member is not None}
        namespace = {key: staticmethod(member) if callable(member) else member for key, member in given.items()}
        return type(base)(name, bases or (base,), namespace)

    def custom(self, *bases: Any, **members: Any) -> Callable[..., Any]:
        """The apply of a Function that `define` makes of these."""
        return self.implementation.function(self.define(*bases, **members))

    def primals(self, polynomial: Polynomial) -> tuple[Any, ...]:
        """A new tensor for each tensor argument of the generated Function."""
        return self.tensors([polynomial.values[i] for i in polynomial.tensors], polynomial.dtype)

    def call_of(self, polynomial: Polynomial, cls: Any = None) -> Callable[..., Any]:
        """The generated Function, or another class with its arguments, as a function of its tensor arguments alone."""
        function, made = self.implementation.function, cls or self.body(polynomial)
        values, positions = polynomial.values, polynomial.tensors

        def call(*tensors: Any) -> Any:
            given = dict(zip(positions, tensors, strict=True))
            return function(made)(*(given.get(i, value) for i, value in enumerate(values)))

        return call


def _nothing(*_: Any) -> None:
    """Do nothing."""


def _combined(forward: Callable[..., Any], setup_context: Callable[..., Any]) -> Callable[..., Any]:
    """A forward that takes ctx and does what both methods do."""

    def combined(ctx: Any, *args: Any) -> Any:
        output = forward(*args)
        setup_context(ctx, args, output)
        return output

    return combined
