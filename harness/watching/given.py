"""The declaration of a call that a program makes: its arguments are given, and are not described."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from autograd_conformance.harness.check.declaration.declaration import Declaration
from autograd_conformance.harness.check.declaration.naming import parameter_names
from autograd_conformance.harness.testing.source import Source
from autograd_conformance.implementations.protocol import Implementation, as_tuple
from autograd_conformance.reference.definitions import COMPLEX, FLOATING, Array, Static
from autograd_conformance.strategies.given import Given

# The dtype in which the derivative is compared with finite differences.
WIDE = {False: "float64", True: "complex128"}
# The most elements of all tensors of a call.
MOST_ELEMENTS = 2**20


class Unwatched(Exception):
    """Why a call cannot be checked; the message says it."""


class Observed(Declaration):
    """The declaration of a call that a program makes."""

    def source(self, composite: bool = True, referred: bool = True) -> Source | str:  # noqa: ARG002
        return "the call has objects and values of the program, which a script cannot make"


def declared(
    function: Any, args: Sequence[Any], implementation: Implementation, *, name: str, where: str, **options: Any
) -> Declaration:
    """The declaration of a Function whose arguments are these.

    A tensor of floating-point numbers keeps its shape, and its values as `strategies.given` says. It is constant unless
    it requires grad. Everything else is passed as it is. Raises Unwatched if a call has what cannot be made again.
    """
    names = parameter_names(function, len(args), implementation.name)
    rows = enumerate(zip(args, names, strict=True))
    found = [_argument(f"argument {n} ({given})", given, value, implementation) for n, (value, given) in rows]
    if not any(isinstance(each, Array) and each.differentiable for each in found):
        raise Unwatched("no argument requires grad")
    if sum(math.prod(implementation.describe(x).shape) for x in args if implementation.is_tensor(x)) > MOST_ELEMENTS:
        raise Unwatched(f"its tensors have more than {MOST_ELEMENTS} elements")
    return Observed(function, *found, name=name, where=where, implementation=implementation.name, **options)


def precision_of(args: Sequence[Any], implementation: Implementation) -> str:
    """The dtype of the floating tensors of a call. Raises Unwatched if they have several."""
    kinds = {implementation.describe(x).dtype for x in args if implementation.is_tensor(x)} & set(FLOATING)
    if len(kinds) > 1:
        raise Unwatched(f"its tensors have several dtypes: {', '.join(sorted(kinds))}")
    return next(iter(kinds), "")


def changed_in_place(function: Any, args: Sequence[Any], implementation: Implementation) -> tuple[int, ...]:
    """The positions of the tensors that a call changes and returns; none if it raises."""
    copies = [implementation.xp.copy(x) if implementation.is_tensor(x) else _fresh(x) for x in args]
    try:
        versions = {n: implementation.version(x) for n, x in enumerate(copies) if implementation.is_tensor(x)}
        with implementation.no_grad():
            outputs = as_tuple(getattr(function, "apply", function)(*copies))
        changed = [n for n, version in versions.items() if implementation.version(copies[n]) != version]
    except Exception:  # noqa: BLE001 - the tests report it
        return ()
    return tuple(n for n in changed if any(implementation.shares_memory(y, copies[n]) for y in outputs))


def _argument(shown: str, name: str, value: Any, implementation: Implementation) -> Array | Static:
    if not implementation.is_tensor(value):
        return Static(name=name, choices=lambda _: (0,), build=lambda _: _fresh(value))
    kind = type(value).__name__
    unusual = "" if kind in ("Tensor", "Parameter") else f"{kind} tensor"
    unusual = unusual or implementation.unusual(value)
    if unusual:
        raise Unwatched(f"{shown} is a {unusual}")
    about, values = implementation.describe(value), np.array(implementation.numpy(value))
    dims = " ".join(map(str, about.shape))
    if about.dtype not in FLOATING:
        return Array(name=name, dims=dims, dtype=about.dtype, make=lambda *_: values)
    given = Given(values)
    return Array(
        name=name, dims=dims, values=given.domain, recorded=given, constant=not implementation.requires_grad(value),
        real=about.dtype not in COMPLEX,
    )  # fmt: skip


def _fresh(value: Any) -> Any:
    """A copy, so that what a call changes is not changed for others; the object itself if it cannot be copied."""
    try:
        return copy.deepcopy(value)
    except Exception:  # noqa: BLE001 - an object may refuse to be copied in any way
        return value
