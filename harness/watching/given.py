"""The declaration of a call that a program makes: its arguments are given, and are not described."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from autograd_conformance.harness.check.declaration.calling import Treatment
from autograd_conformance.harness.check.declaration.declaration import Declaration
from autograd_conformance.harness.check.declaration.naming import parameter_names
from autograd_conformance.harness.testing.source import Source
from autograd_conformance.harness.watching.effects import Effects
from autograd_conformance.harness.watching.links import Links, Opaque, fresh
from autograd_conformance.implementations.protocol import Implementation
from autograd_conformance.reference.definitions import COMPLEX, FLOATING, REAL_OF, Array, Static
from autograd_conformance.strategies.given import Given

# The dtype in which the derivative is compared with finite differences.
WIDE = {False: "float64", True: "complex128"}
# Objects that are shown as they are.
_LITERALS = (bool, int, float, str, type(None))


_NO_GRADIENT = "no argument has a gradient"


class Unwatched(Exception):
    """Why a call cannot be checked; the message says it."""


class Observed(Declaration):
    """The declaration of a call that a program makes; ``links`` are between its arguments."""

    links: Callable[[Sequence[Any]], Sequence[Any]] = tuple

    def call(self, *given: Any) -> Any:
        return super().call(*self.links(given))

    @property
    def treatment(self) -> Treatment:
        return replace(super().treatment, linked=self.links)

    @property
    def untreated(self) -> Treatment:
        return replace(super().untreated, linked=self.links)

    def source(self, composite: bool = True, referred: bool = True) -> Source | str:  # noqa: ARG002
        if getattr(self.function, "__module__", "") == "__main__":
            return "the Function is defined in the main module of the program, which a script must not run"
        return "the call has objects or values of the program, and calls with drawn numbers did not show the fault"


def declared(
    function: Any, args: Sequence[Any], implementation: Implementation, effects: Effects, steady: Sequence[int], *,
    name: str, where: str, **options: Any,
) -> Declaration:  # fmt: skip
    """The declaration of a Function whose arguments are these, with what a call does to them.

    A tensor of floating-point numbers keeps its shape, and its values as `strategies.given` says. It is constant unless
    it requires grad. Everything else is passed as it is. Those of ``steady`` slots require grad in every call. Raises
    Unwatched if a call has what cannot be made again.
    """
    names = parameter_names(function, len(args), implementation.name)
    found = [_argument(given, value, implementation) for value, given in zip(args, names, strict=True)]
    links = Links(args, implementation, effects.consumed, steady)
    if links.beyond_copies:
        shown = ", ".join(f"argument {slot} ({names[slot]})" for slot in links.beyond_copies)
        raise Unwatched(f"{shown} has tensors that are passed beside it, and no copy of it could have others")
    for slot, each in enumerate(found):
        # The gradient of a tensor that is passed twice is that of the first.
        if isinstance(each, Array) and (slot in links.same or slot not in effects.tracked):
            found[slot] = replace(each, constant=True)
    if not any(isinstance(each, Array) and each.differentiable for each in found):
        opaque = (f"argument {n} ({names[n]}) is a {x.kind}" for n, x in enumerate(args) if isinstance(x, Opaque))
        raise Unwatched(next((f"{shown}, and no other argument has a gradient" for shown in opaque), _NO_GRADIENT))
    observed = Observed(
        function, *found, name=name, where=where, implementation=implementation.name, inplace=effects.inplace, **options
    )  # fmt: skip
    observed.links = links
    return observed


def drawn(
    function: Any, args: Sequence[Any], implementation: Implementation, effects: Effects, **options: Any
) -> Declaration | None:  # fmt: skip
    """The declaration of calls of the same kind whose floating-point numbers are drawn.

    None if a call has what a script of it cannot make: objects, and tensors that they hold or that are passed twice.
    """
    links = Links(args, implementation)
    literal = all(implementation.is_tensor(x) or isinstance(x, _LITERALS) for x in args)
    if not literal or links.same or effects.consumed or str(getattr(function, "__module__", "")) == "__main__":
        return None
    names = parameter_names(function, len(args), implementation.name)
    found = [_argument(name, value, implementation) for value, name in zip(args, names, strict=True)]
    for slot, each in enumerate(found):
        if isinstance(each, Array):
            found[slot] = replace(each, recorded=None, constant=each.constant or slot not in effects.tracked)
        else:
            found[slot] = replace(each, build=None)
    return Declaration(function, *found, implementation=implementation.name, inplace=effects.inplace, **options)


def with_opaque(args: Sequence[Any], implementation: Implementation) -> list[Any]:
    """The arguments of a call; tensors of a subclass and sparse ones are constants that are not looked into."""
    return [_seen(x, implementation) if implementation.is_tensor(x) else x for x in args]


def _seen(tensor: Any, implementation: Implementation) -> Any:
    name, is_own = type(tensor).__name__, type(tensor).__module__.partition(".")[0] == implementation.package.__name__
    kind = implementation.unusual(tensor) if is_own and name in ("Tensor", "Parameter") else name
    if not kind:
        return tensor
    return Opaque(tensor.detach() if implementation.requires_grad(tensor) else tensor, f"{kind} tensor")


def precision_of(args: Sequence[Any], implementation: Implementation) -> str:
    """The dtype of the floating tensors of a call; that of the complex ones if their precision is the same.

    It is empty if they have several.
    """
    kinds = {implementation.describe(x).dtype for x in args if implementation.is_tensor(x)} & set(FLOATING)
    kinds -= {REAL_OF[kind] for kind in kinds & set(COMPLEX)}
    return kinds.pop() if len(kinds) == 1 else ""


def widest_of(args: Sequence[Any], implementation: Implementation) -> str:
    """The dtype in which the derivative of a call is compared."""
    is_complex = any(implementation.describe(x).dtype in COMPLEX for x in args if implementation.is_tensor(x))
    return WIDE[is_complex]


def _argument(name: str, value: Any, implementation: Implementation) -> Array | Static:
    if not implementation.is_tensor(value):
        kind = value.kind if isinstance(value, Opaque) else type(value).__name__
        shown: Any = value if isinstance(value, _LITERALS) else f"<{kind}>"
        return Static(name=name, choices=lambda _: (shown,), build=lambda _: fresh(value))
    about, values = implementation.describe(value), np.array(implementation.numpy(value))
    dims = " ".join(map(str, about.shape))
    if about.dtype not in FLOATING:
        return Array(name=name, dims=dims, dtype=about.dtype, make=lambda *_: values)
    given = Given(values)
    return Array(name=name, dims=dims, values=given.domain, recorded=given, real=about.dtype not in COMPLEX)
