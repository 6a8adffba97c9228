"""Generated primitives: sums of weighted powers of small integers, whose derivatives are exact."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import autograd
import numpy as np
from autograd import extend
from hypothesis import strategies as st

from autograd_conformance.reference.polynomials import TENSORS

Rule = Callable[..., Any]


class HipsCase:
    """A drawn function of one to four arrays, some arguments by position, and the verbs of a test.

    ``argnums`` are the arguments that are differentiated, in any order; with an empty ``label`` they are all.
    """

    def __init__(self, subject: Any, data: Any, label: str = "differentiated", **restrictions: Any) -> None:
        usual = {"arguments": ("tracked",), "outputs": ("float",), "max_outputs": 1, "max_arguments": 4}
        self.subject, self.polynomial = subject, subject.polynomial(data, **{**usual, **restrictions})
        self.every, self.shape = self.polynomial.tensors, self.polynomial.shape
        self.argnums = self.some_of(data, label) if label else list(self.every)

    def some_of(self, data: Any, label: str) -> list[int]:
        """Some of the arrays, by position, in any order."""
        orders = st.lists(st.sampled_from(self.every), min_size=1, max_size=len(self.every), unique=True)
        return list(self.subject.draw(data, orders, label))

    @cached_property
    def xs(self) -> list[Any]:
        """The arguments; arrays have the drawn dtype."""
        pairs = zip(self.polynomial.arguments, self.polynomial.values, strict=True)
        return [self.subject.tensor(v, self.polynomial.dtype) if kind in TENSORS else v for kind, v in pairs]

    @cached_property
    def value(self) -> Any:
        """The right first output."""
        return self.polynomial.forward()[0]

    def cotangent(self, output: int = 0, salt: int = 0) -> Any:
        """An array like an output."""
        return self.subject.tensor(self.polynomial.cotangents(salt=salt)[output], self.polynomial.dtype)

    def expected(self, salt: int = 0, factor: float = 1.0) -> list[Any]:
        """The right gradients of the arguments for `cotangent`, times a factor."""
        found = self.polynomial.vjp(self.polynomial.cotangents(salt=salt))
        return [np.asarray(factor * found[i]) for i in self.argnums]

    def function(self, *xs: Any, output: int = 0, **named: Any) -> Any:
        """An output."""
        weights, power = self.polynomial.weights[output].tolist(), self.polynomial.power
        return sum(w * xs[i] ** power for w, i in zip(weights, self.polynomial.floating, strict=True))

    def slope(self, position: int, x: Any, output: int = 0) -> Any:
        """The derivative of an output with respect to the argument at a position, where that is x."""
        weight = self.polynomial.weights[output].tolist()[self.polynomial.floating.index(position)]
        return weight * self.polynomial.power * x ** (self.polynomial.power - 1)

    def vjp(self, position: int, factor: float = 1.0) -> Rule:
        """The VJP maker of an argument, as `defvjp` takes it, with a wrong factor if one is given."""
        return lambda ans, *xs, **named: lambda g: factor * (self.slope(position, xs[position]) * g)

    def jvp(self, position: int, factor: float = 1.0) -> Rule:
        """The JVP of an argument, as `defjvp` takes it."""
        return lambda g, ans, *xs, **named: factor * (self.slope(position, xs[position]) * g)

    def primitive(
        self, *, vjp: Callable[[int], Any] | None = None, jvp: Callable[[int], Any] | None = None, function: Any = None
    ) -> Any:
        """A function as a primitive; ``vjp(i)`` and ``jvp(i)`` are the rules of argument i, where they are given."""
        made, positions = extend.primitive(function or self.function), range(len(self.polynomial.arguments))
        if vjp:
            extend.defvjp(made, *map(vjp, positions))
        if jvp:
            extend.defjvp(made, *map(jvp, positions))
        return made

    def with_rules(self) -> Any:
        """The function as a primitive with all rules."""
        floating = self.polynomial.floating
        return self.primitive(
            vjp=lambda i: self.vjp(i) if i in floating else None, jvp=lambda i: self.jvp(i) if i in floating else None
        )

    def pulled(self, f: Any, **named: Any) -> Any:
        """The gradients for `cotangent`."""
        return autograd.make_vjp(f, self.argnums)(*self.xs, **named)[0](self.cotangent())

    def assert_gradients(self, got: Sequence[Any], salt: int = 0, factor: float = 1.0) -> None:
        """Assert that the gradients are right, up to a factor of the rules."""
        self.subject.assert_all_same("gradients", got=got, expected=self.expected(salt, factor))

    @cached_property
    def moves(self) -> tuple[Any, ...]:
        """A tangent for each argument that is differentiated."""
        return tuple(self.cotangent(salt=1 + i) for i in self.argnums)

    def pushed(self, f: Any, **named: Any) -> Any:
        """The value and the tangent for `moves`."""
        return autograd.make_jvp(f, self.argnums)(*self.xs, **named)(self.moves)

    def assert_tangent(self, got: Any, terms: Callable[[int, Any], Any] | None = None) -> None:
        """Assert that a tangent is the sum of what each move gives: by the derivatives, or by ``terms(i, move)``."""
        of_move = terms or (lambda i, t: self.slope(i, self.polynomial.values[i]) * t)
        found = (of_move(i, np.asarray(t, np.float64)) for i, t in zip(self.argnums, self.moves, strict=True))
        self.subject.assert_same("tangent", got=got, expected=np.asarray(sum(found, np.zeros(self.shape))))


def noted(rule: Rule, before: Callable[..., Any], after: Callable[..., Any] = lambda g: None) -> Rule:
    """A VJP maker that calls ``before(ans, *xs)`` when it runs, and whose VJP calls ``after(g)``."""

    def maker(ans: Any, *xs: Any, **named: Any) -> Any:
        before(ans, *xs, **named)
        made = rule(ans, *xs, **named)
        return lambda g: (after(g), made(g))[1]

    return maker


def with_vjps(function: Any, *vjps: Any) -> Any:
    """A function as a primitive with these VJP makers."""
    made = extend.primitive(function)
    extend.defvjp(made, *vjps)
    return made
