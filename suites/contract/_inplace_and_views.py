"""Calls of drawn Functions that change arguments in place or return views."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from autograd_conformance.reference.changes import Change, Passing, View
from autograd_conformance.strategies.generated_functions import changes, passings

IN_PLACE = ("inplace", "in-place", "in place")
# Shapes of tensors with elements, which have memory to share.
NONEMPTY = ((), (1,), (3,), (2, 3))
# Views of the same shape.
SAME_SHAPE = (View((...,)), View(((None, ...), (0, ...))), View(((..., None), (..., 0))))
# Recipes for outputs that are views of an argument, and of a tensor made in forward.
VIEWS = ("view", "nested view")
TEMPORARY = ("view of a temporary", "nested view of a temporary")


@dataclass(repr=False)
class Applied:
    """A call of a Function: its arguments, outputs and ctx."""

    # ``more`` are the further outputs, ``nodes`` the nodes that the arguments had before the call.
    arguments: tuple[Any, ...]
    outputs: tuple[Any, ...]
    ctx: Any
    more: tuple[Any, ...]
    nodes: tuple[Any, ...]
    implementation: Any
    gradients: Callable[[Sequence[Any]], tuple[Any, ...]]

    def __repr__(self) -> str:
        return f"outputs {self.outputs}"

    @property
    def identities(self) -> tuple[int | None, ...]:
        """For each output, the position of the argument that it is, None for another tensor."""
        return positions(self.outputs, self.arguments, operator.is_)

    @property
    def sharing(self) -> tuple[int | None, ...]:
        """For each output, the position of the argument whose memory it shares, None if there is none."""
        return positions(self.outputs, self.arguments, self.implementation.shares_memory)

    @property
    def kept(self) -> tuple[bool, ...]:
        """For each argument, whether it still has the node that it had before the call."""
        now = map(self.implementation.node, self.arguments)
        return tuple(node is before for node, before in zip(now, self.nodes, strict=True))


def positions(tensors: Sequence[Any], among: Sequence[Any], alike: Callable[[Any, Any], bool]) -> tuple[Any, ...]:
    """For each tensor, the position of the first of ``among`` that is ``alike``, None if there is none."""
    return tuple(next((i for i, x in enumerate(among) if alike(y, x)), None) for y in tensors)


def with_history(x: Any) -> Any:
    """The same values as the result of an operation, so that they have a node."""
    return x * 1


def drawn_preparation(subject: Any, data: Any) -> Callable[[Any], Any]:
    """Draw what a leaf becomes before it is an argument: itself, or the result of an operation."""
    kinds = {"leaves": lambda x: x, "results": with_history}
    made: Callable[[Any], Any] = kinds[subject.draw(data, kinds, "tensor arguments")]
    return made


def double_in_place(x: Any) -> None:
    """Double a tensor in place, recorded."""
    x *= 2


def applied(
    subject: Any,
    function: Change | Passing,
    prepare: Callable[[int, Any], Any] = lambda _, x: with_history(x),
    under: Callable[[], Any] = nullcontext,
    also: Callable[[Sequence[Any]], tuple[Any, ...]] = lambda _: (),
    values: Mapping[int, Any] | None = None,
    wrap: Callable[[Any], Any] = lambda cls: cls,
) -> Applied:
    """Call the Function with ``prepare(position, leaf)`` for each leaf.

    Cotangents come first for ``also(arguments)``, which is computed before the call, then for the outputs. ``values``
    replaces the values of leaves, and ``wrap`` changes the Function's class.
    """
    implementation = subject.implementation
    contexts, arguments, nodes, more = [], [], [], []
    apply = implementation.function(wrap(function.body(implementation.ag, contexts)))

    def f(*leaves: Any) -> Any:
        arguments.extend(prepare(i, x) for i, x in enumerate(leaves))
        nodes.extend(map(implementation.node, arguments))
        more.extend(also(arguments))
        with under():
            return (*more, *apply(*arguments))

    arrays = [(values or {}).get(i, x) for i, x in enumerate(function.values)]
    primals = subject.tensors(arrays, function.dtype)
    outputs, pullback = implementation.vjp(f, primals, track=function.track)
    return Applied(
        tuple(arguments),
        outputs[len(more) :],
        contexts[-1],
        outputs[: len(more)],
        tuple(nodes),
        implementation,
        lambda cotangents: pullback(subject.tensors(cotangents, function.dtype)),
    )


def drawn_change(subject: Any, data: Any, **restrictions: Any) -> Change:
    """Draw a Function that changes arguments in place, in the dtypes of the run."""
    change: Change = subject.draw(data, changes(dtypes=subject.dtypes, **restrictions), "function")
    return change


def drawn_passing(subject: Any, data: Any, *needed: str, **restrictions: Any) -> Passing:
    """Draw a Function whose outputs are made by recipes, at least one of these ``needed``, in the dtypes of the run."""
    most = 3 if "tuples" in subject.implementation.capabilities else 1
    strategy = passings(needed=needed, dtypes=subject.dtypes, max_outputs=most, **restrictions)
    function: Passing = subject.draw(data, strategy, "function")
    return function
