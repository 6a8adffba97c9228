"""Generated primitives: sums of weighted powers of small integers, whose derivatives are exact."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import autograd
import numpy as np
from autograd import extend
from hypothesis import strategies as st

from autograd_conformance.harness.checking.clauses import ClauseSubject
from autograd_conformance.reference.polynomials import TENSORS, Polynomial


def drawn_polynomial(subject: ClauseSubject, data: Any, **restrictions: Any) -> Polynomial:
    """A function of one to four arrays, with one output."""
    usual = {"arguments": ("tracked",), "outputs": ("float",), "max_outputs": 1, "max_arguments": 4}
    return subject.polynomial(data, **{**usual, **restrictions})


def some_of(subject: ClauseSubject, data: Any, polynomial: Polynomial, label: str = "differentiated") -> list[int]:
    """Some of the arguments, by position, in any order."""
    every = polynomial.tensors
    orders = st.lists(st.sampled_from(every), min_size=1, max_size=len(every), unique=True)
    return list(subject.draw(data, orders, label))


def arguments(subject: ClauseSubject, polynomial: Polynomial) -> list[Any]:
    """The arguments; arrays have the drawn dtype."""
    pairs = zip(polynomial.arguments, polynomial.values, strict=True)
    return [subject.tensor(v, polynomial.dtype) if kind in TENSORS else v for kind, v in pairs]


def cotangent(subject: ClauseSubject, polynomial: Polynomial, output: int = 0, salt: int = 0) -> Any:
    """An array like an output."""
    return subject.tensor(polynomial.cotangents(salt=salt)[output], polynomial.dtype)


def expected_gradients(polynomial: Polynomial, argnums: Sequence[int], salt: int = 0, factor: float = 1.0) -> list[Any]:
    """The right gradients of these arguments for `cotangent`, times a factor."""
    found = polynomial.vjp(polynomial.cotangents(salt=salt))
    return [np.asarray(factor * found[i]) for i in argnums]


def output_function(polynomial: Polynomial, output: int = 0) -> Callable[..., Any]:
    """An output as a function of all arguments."""
    weights, power = polynomial.weights[output].tolist(), polynomial.power
    return lambda *xs, **named: sum(w * xs[i] ** power for w, i in zip(weights, polynomial.floating, strict=True))


def slope(polynomial: Polynomial, position: int, x: Any, output: int = 0) -> Any:
    """The derivative of an output with respect to the argument at a position, where that is x."""
    weight = polynomial.weights[output].tolist()[polynomial.floating.index(position)]
    return weight * polynomial.power * x ** (polynomial.power - 1)


def vjp(polynomial: Polynomial, position: int, factor: float = 1.0) -> Callable[..., Any]:
    """The VJP maker of an argument, as `defvjp` takes it, with a wrong factor if one is given."""
    return lambda ans, *xs, **named: lambda g: factor * (slope(polynomial, position, xs[position]) * g)


def jvp(polynomial: Polynomial, position: int, factor: float = 1.0) -> Callable[..., Any]:
    """The JVP of an argument, as `defjvp` takes it."""
    return lambda g, ans, *xs, **named: factor * (slope(polynomial, position, xs[position]) * g)


def primitive_with_rules(polynomial: Polynomial) -> Any:
    """The polynomial's first output as a primitive with all rules."""
    made = extend.primitive(output_function(polynomial))
    positions = range(len(polynomial.arguments))
    extend.defvjp(made, *(vjp(polynomial, i) if i in polynomial.floating else None for i in positions))
    extend.defjvp(made, *(jvp(polynomial, i) if i in polynomial.floating else None for i in positions))
    return made


def pulled(f: Callable[..., Any], xs: Sequence[Any], argnums: Sequence[int], *cotangents: Any) -> list[Any]:
    """The gradients with respect to these arguments, for each cotangent in turn."""
    back, _ = autograd.make_vjp(f, list(argnums))(*xs)
    return [gradient for g in cotangents for gradient in back(g)]


def pushed(f: Callable[..., Any], xs: Sequence[Any], argnums: Sequence[int], tangents: Sequence[Any]) -> Any:
    """The value and the tangent for tangents of these arguments."""
    return autograd.make_jvp(f, list(argnums))(*xs)(tuple(tangents))


def tangents(subject: ClauseSubject, polynomial: Polynomial, argnums: Sequence[int]) -> list[Any]:
    """An array like each of these arguments."""
    return [cotangent(subject, polynomial, salt=1 + i) for i in argnums]


def expected_tangent(polynomial: Polynomial, argnums: Sequence[int], moves: Sequence[Any], output: int = 0) -> Any:
    """The right tangent of an output for these tangents."""
    pairs = zip(argnums, moves, strict=True)
    terms = [slope(polynomial, i, polynomial.values[i], output) * np.asarray(t, np.float64) for i, t in pairs]
    return np.asarray(sum(terms))
