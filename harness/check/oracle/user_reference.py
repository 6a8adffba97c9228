"""The user's reference as a referee: it judges the plain call of a Function, and no other call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from autograd_conformance.harness.check.oracle.oracle import Oracle, joined
from autograd_conformance.harness.testing.attempts import attempted
from autograd_conformance.harness.testing.example import Example
from autograd_conformance.harness.testing.own_faults import noticed
from autograd_conformance.implementations.protocol import as_tuple
from autograd_conformance.reference.deferred import Deferred
from autograd_conformance.reference.definitions import Array
from autograd_conformance.reference.rounding import Tracked
from autograd_conformance.strategies.values import DOMAINS

Arrays = tuple[Any, ...]
# The name of a result, its value in the plain call, and the reference's, with the errors of both.
Judged = tuple[str, Any, Tracked]


class Refuses(Exception):
    """The reference does not take a call."""


class Referee:
    """A reference of a Function, next to the Function's own oracle ``plain``.

    ``forward`` computes the reference's outputs. ``vjp`` computes its gradients; it is None if they do not count: for
    a surrogate gradient, and for a reference in NumPy.
    """

    def __init__(
        self, plain: Oracle, forward: Callable[..., Arrays], vjp: Callable[..., Arrays] | None = None
    ) -> None:  # fmt: skip
        self.plain, self._forward, self._vjp = plain, forward, vjp

    def forward(self, *given: Any) -> Arrays:
        """The reference's outputs; the Function's own where the reference refuses the call."""
        found = attempted(self._forward, *given)
        return self.plain.forward(*given) if found is None else found

    def vjp(self, cotangents: Sequence[Any], *given: Any) -> Arrays:
        """The reference's gradients; the Function's own where the reference refuses the call, or has none."""
        found = None if self._vjp is None else attempted(self._vjp, cotangents, *given)
        return self.plain.vjp(cotangents, *given) if found is None else found

    def outputs(self, example: Example) -> list[Judged]:
        """The outputs of a plain call. Raises Refuses."""
        found = _unless_refused(self._forward, *example.expected.reference_arguments())
        rows = zip(example.output_names, example.expected.outputs, found, strict=True)
        return [(name, mine.value, _with_both_errors(theirs, mine)) for name, mine, theirs in rows]

    def gradients(self, example: Example) -> list[Judged]:
        """The gradients of a plain call. Raises Refuses.

        Of a gradient only the part along its argument's domain counts: the symmetric part for a symmetric matrix, and
        the entries of a sparse tensor.
        """
        if self._vjp is None:
            return []
        expected = example.expected
        ends = expected.reference_cotangents(expected.cotangents)
        found = _unless_refused(self._vjp, ends, *expected.reference_arguments())
        rows = zip(example.names, example.slots, example.arguments, expected.gradients(), strict=True)
        return [
            (name, along(mine.value), _projected(_with_both_errors(found[slot], mine), along))
            for name, slot, argument, mine in rows
            if mine is not None
            for along in [partial(_along, argument, expected.values[slot])]
        ]


def _unless_refused(compute: Callable[..., Arrays], *given: Any) -> Arrays:
    try:
        return compute(*given)
    except Exception as raised:
        noticed(raised)
        raise Refuses from raised


def _with_both_errors(theirs: Any, mine: Tracked) -> Tracked:
    """The reference's values with the errors of both; NumPy's are taken for as exact as the plain call's."""
    return joined(theirs, mine) if isinstance(theirs, Deferred) else mine.around(np.asarray(theirs))


def _along(argument: Array, at: Any, gradient: Any) -> Any:
    return argument.entries(at, DOMAINS[argument.values].tangent(gradient))


def _projected(gradient: Tracked, along: Callable[[Any], Any]) -> Tracked:
    return gradient.mapped(along) if isinstance(gradient, Deferred) else gradient


def of_values(reference: Callable[..., Any]) -> Callable[..., tuple[Any, ...]]:
    """The user's NumPy reference as a function of values with errors."""

    def forward(*given: Any) -> tuple[Any, ...]:
        with np.errstate(all="ignore"):
            return as_tuple(reference(*(getattr(x, "value", x) for x in given)))

    return forward
