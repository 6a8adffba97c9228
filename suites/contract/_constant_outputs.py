"""A Function whose outputs a test draws one by one: dtype, shape, layout and whether they are marked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from autograd_conformance.harness.testing.clauses import ClauseSubject
from autograd_conformance.reference.definitions import FLOATING
from autograd_conformance.suites.contract._ctx_observers import nothing
from autograd_conformance.suites.contract._grad_and_backward import GRAD, gradients_of

SHAPES = ((), (1,), (3,), (2, 3), (0,))


class Output(NamedTuple):
    """A constant output of a Function; a ``transposed`` one is not contiguous."""

    dtype: str
    shape: tuple[int, ...]
    marked: bool = False
    transposed: bool = False

    @property
    def differentiable(self) -> bool:
        """Whether backward can be given a cotangent for it."""
        return self.dtype in FLOATING and not self.marked

    def __repr__(self) -> str:
        return f"{self.dtype}{list(self.shape)}{' marked' * self.marked}{' transposed' * self.transposed}"


@st.composite
def output_lists(
    draw: Any,
    dtypes: Sequence[str],
    *,
    marked: bool = False,
    transposed: bool = False,
    integers: bool = False,
    twice: bool = False,
    shapes: Sequence[tuple[int, ...]] = SHAPES,
) -> list[Output]:
    """Two or more outputs of these dtypes: one or more are differentiable and, with ``marked``, one or more are marked.

    With ``integers`` the marked one is of an integer dtype, if there is one; with ``twice`` another one is marked.
    """
    flags, layouts = st.booleans() if marked else st.just(False), st.booleans() if transposed else st.just(False)

    def some(kinds: Sequence[str], flags: st.SearchStrategy[bool]) -> st.SearchStrategy[Output]:
        return st.builds(Output, st.sampled_from(kinds), st.sampled_from(shapes), flags, layouts)

    plain = draw(some([d for d in dtypes if d in FLOATING], st.just(False)))
    whole = [d for d in dtypes if d not in FLOATING] if integers else []
    specials = [draw(some(whole or dtypes, st.just(marked))) for _ in range(1 + twice)]
    return draw(st.permutations([plain, *specials, *draw(st.lists(some(dtypes, flags), max_size=2))]))


def uses(outputs: Sequence[Output]) -> st.SearchStrategy[set[int]]:
    """Positions of differentiable outputs, at least one, and not all if there are several."""
    positions = [i for i, output in enumerate(outputs) if output.differentiable]
    return st.sets(st.sampled_from(positions), min_size=1, max_size=max(1, len(positions) - 1))


@dataclass
class Constants:
    """A Function of one tensor that returns the given constants; ``configure(ctx)`` runs where ctx is set up.

    Its gradient is 1 everywhere. ``cotangents`` records what backward got.
    """

    subject: ClauseSubject
    given: Sequence[Output]
    configure: Callable[[Any], None] = nothing
    separate: bool = False
    cotangents: list[tuple[Any, ...]] = field(default_factory=list)

    def constant(self, output: Output) -> Any:
        """A new tensor of ones for this output."""
        implementation, shape = self.subject.implementation, output.shape
        if not output.transposed:
            return implementation.array(np.ones(shape), output.dtype, self.subject.device)
        reverse = tuple(range(len(shape)))[::-1]
        ones = implementation.array(np.ones(shape[::-1]), output.dtype, self.subject.device)
        return implementation.xp.permute_dims(ones, reverse)

    def _prepare(self, ctx: Any, _: Any, outputs: Sequence[Any]) -> None:
        marked = [y for y, output in zip(outputs, self.given, strict=True) if output.marked]
        if marked:
            ctx.mark_non_differentiable(*marked)
        self.configure(ctx)

    def _backward(self, _: Any, *cotangents: Any) -> Any:
        self.cotangents.append(cotangents)
        return self.subject.tensor(np.ones(2))

    @property
    def apply(self) -> Callable[..., Any]:
        """The callable through which users call it."""
        return self.subject.custom(
            forward=lambda _: tuple(self.constant(output) for output in self.given),
            setup_context=self._prepare,
            backward=self._backward,
            separate=self.separate,
        )

    def call(self) -> tuple[tuple[Any, ...], Callable[..., Any]]:
        """The outputs and the pullback of a recorded call."""
        return self.subject.implementation.vjp(self.apply, self.subject.tensors([np.ones(2)]))

    def pull(self, used: Collection[int], way: str = GRAD) -> list[Any]:
        """Call it and pull back ones for the outputs ``used``; returns these cotangents, None for the other outputs."""
        ones = self.ones(used)
        gradients_of(self.subject, way, self.apply, self.subject.tensors([np.ones(2)]), ones)
        return ones

    def ones(self, used: Collection[int]) -> list[Any]:
        """A cotangent for each of the outputs ``used``, None for the others."""
        return [self.constant(output) if i in used else None for i, output in enumerate(self.given)]

    def materialized(self, cotangents: Sequence[Any]) -> list[Any]:
        """The cotangents with zeros for None."""
        pairs = zip(cotangents, self.given, strict=True)
        return [self.zeros(output) if g is None else g for g, output in pairs]

    def zeros(self, output: Output) -> Any:
        """Zeros like an output, contiguous."""
        return self.subject.implementation.array(np.zeros(output.shape), output.dtype, self.subject.device)

    def assert_given(self, expected: Sequence[Any]) -> None:
        """Backward ran once, and got these tensors: values, shapes and dtypes."""
        subject = self.subject
        subject.assert_equal("number of calls of backward", got=len(self.cotangents), expected=1)
        got = self.cotangents[0]
        subject.assert_all_same("cotangents in backward", got=got, expected=expected)
        subject.assert_equal(
            "shapes and dtypes of the cotangents", got=self._facts(got), expected=self._facts(expected)
        )

    def _facts(self, tensors: Sequence[Any]) -> list[Any]:
        return [None if g is None else self.subject.implementation.describe(g)[:2] for g in tensors]
