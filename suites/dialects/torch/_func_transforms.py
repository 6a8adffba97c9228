"""Generated Functions as transforms of torch.func take them: from floating tensors to floating tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st

from autograd_conformance.harness.testing.clauses import ClauseSubject
from autograd_conformance.reference.polynomials import Polynomial
from autograd_conformance.suites.contract._jvp_functions import with_jvp

# Kinds of arguments: the tensors that are transformed, and others.
KINDS = ("tracked", "integers", "None", "number", "text")

# Transforms of an elementwise function of one tensor. Each differentiates it once.
REVERSE: dict[str, Any] = {
    "grad": lambda f: torch.func.grad(lambda x: torch.sum(f(x))),
    "vjp": lambda f: lambda x: torch.func.vjp(f, x)[1](torch.ones_like(x))[0],
    "jacrev": lambda f: torch.func.jacrev(lambda x: torch.sum(f(x))),
}
FORWARD: dict[str, Any] = {
    "jvp": lambda f: lambda x: torch.func.jvp(f, (x,), (torch.ones_like(x),))[1],
    "jacfwd": lambda f: torch.func.jacfwd(lambda x: torch.sum(f(x))),
}

# Transforms of such a function that give what it returns itself.
VALUES: dict[str, Any] = {
    "output of vjp": lambda f: lambda x: torch.func.vjp(f, x)[0],
    "output of jvp": lambda f: lambda x: torch.func.jvp(f, (x,), (torch.ones_like(x),))[0],
    "aux of vjp": lambda f: lambda x: torch.func.vjp(lambda x: (torch.sum(x), f(x)), x, has_aux=True)[2],
    "aux of jvp": lambda f: lambda x: torch.func.jvp(lambda x: (x, f(x)), (x,), (torch.ones_like(x),), has_aux=True)[2],
    "aux of grad": lambda f: lambda x: torch.func.grad(lambda x: (torch.sum(x), f(x)), has_aux=True)(x)[1],
    "value of grad_and_value": lambda f: lambda x: torch.func.grad_and_value(_twice(f), has_aux=True)(x)[1][1],
}


def _twice(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What ``grad_and_value`` takes with ``has_aux``: the sum, and the function itself."""

    def both(x: Any) -> Any:
        y = f(x)
        return torch.sum(y), y

    return both


def drawn_function(subject: ClauseSubject, data: Any, **restrictions: Any) -> Polynomial:
    """A generated Function whose floating tensors can all be transformed."""
    restricted = {"arguments": KINDS, "separate": True, "max_arguments": 4, **restrictions}
    return subject.polynomial(data, **restricted)


def transformable(
    subject: ClauseSubject, polynomial: Polynomial, *, backward: float = 1, jvp: float = 1, rule: bool = True
) -> Any:
    """The Function with a jvp and, unless ``rule`` is False, a generated batching rule.

    Its backward and its jvp are off by factors, so that a result shows which of them was used.
    """
    cls = with_jvp(subject, polynomial)
    methods = {"backward": _scaled(backward, cls.backward), "jvp": _scaled(jvp, cls.jvp)}
    return subject.define(cls, name="Transformable", **methods, generate_vmap_rule=rule)


def _scaled(factor: float, method: Callable[..., Any]) -> Callable[..., tuple[Any, ...]]:
    return lambda *given: tuple(None if t is None else factor * t for t in method(*given))


def float_function(subject: ClauseSubject, polynomial: Polynomial, cls: Any) -> Callable[..., tuple[Any, ...]]:
    """A function from its floating tensors to its floating outputs."""
    values = [subject.tensor(v) if isinstance(v, np.ndarray) else v for v in polynomial.values]
    floats = polynomial.float_outputs

    def f(*tensors: Any) -> tuple[Any, ...]:
        given = dict(zip(polynomial.floating, tensors, strict=True))
        outputs = cls.apply(*(given.get(i, value) for i, value in enumerate(values)))
        return tuple(outputs[o] for o in floats)

    return f


def float_primals(subject: ClauseSubject, polynomial: Polynomial) -> tuple[Any, ...]:
    """Its floating tensors."""
    return subject.tensors([polynomial.values[i] for i in polynomial.floating], polynomial.dtype)


def expected_floats(polynomial: Polynomial) -> list[Any]:
    """Its floating outputs, as arrays."""
    return [polynomial.forward()[o] for o in polynomial.float_outputs]


def weighted_loss(
    subject: ClauseSubject, polynomial: Polynomial, cls: Any, cotangents: Sequence[Any]
) -> Callable[..., Any]:
    """The sum of its floating outputs, weighted with these cotangents."""
    f, given = float_function(subject, polynomial, cls), weights_of(subject, polynomial, cotangents)
    return lambda *tensors: sum(torch.sum(y * g) for y, g in zip(f(*tensors), given, strict=True))


def weights_of(subject: ClauseSubject, polynomial: Polynomial, cotangents: Sequence[Any]) -> tuple[Any, ...]:
    """The cotangents of its floating outputs."""
    return subject.tensors([g for g in cotangents if g is not None], polynomial.dtype)


def positions_of(polynomial: Polynomial) -> range:
    """Its floating tensors, counted from 0."""
    return range(len(polynomial.floating))


def some_positions(polynomial: Polynomial) -> st.SearchStrategy[tuple[int, ...]]:
    """Some of its floating tensors in any order."""
    return st.lists(st.sampled_from(positions_of(polynomial)), min_size=1, unique=True).map(tuple)


def assert_jacobians(subject: ClauseSubject, polynomial: Polynomial, wanted: Sequence[int], got: Any) -> None:
    """For each floating output a Jacobian for each of the wanted tensors."""
    power, floats = polynomial.power, polynomial.float_outputs
    slopes = {i: power * polynomial.values[polynomial.floating[i]] ** (power - 1) for i in wanted}
    expected = [_diagonal(polynomial.weights[o, i] * slopes[i]) for o in floats for i in wanted]
    subject.assert_all_same("Jacobians", got=[block for row in got for block in row], expected=expected)


def assert_hessians(
    subject: ClauseSubject, polynomial: Polynomial, wanted: Sequence[int], cotangents: Sequence[Any], got: Any
) -> None:
    """For each pair of the wanted tensors the second derivatives of the loss with these cotangents."""
    slopes, power = replace(polynomial, power=1).vjp(cotangents), polynomial.power
    diagonals = {i: _diagonal(power * (power - 1) * slopes[polynomial.floating[i]]) for i in wanted}
    zeros = np.zeros((*polynomial.shape, *polynomial.shape))
    expected = [diagonals[i] if i == j else zeros for i in wanted for j in wanted]
    subject.assert_all_same("Hessians", got=[block for row in got for block in row], expected=expected)


def _diagonal(values: Any) -> Any:
    """The Jacobian of a function of each element with these slopes."""
    values = np.asarray(values)
    return np.diag(values.reshape(-1)).reshape((*values.shape, *values.shape))
