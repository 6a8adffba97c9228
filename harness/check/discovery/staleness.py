"""Stale limitations: declared, but not seen in any call. They should be removed, so that more is checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from autograd_conformance.harness.check.oracle.oracle import Oracle
from autograd_conformance.harness.check.oracle.tolerances import NEAR
from autograd_conformance.harness.testing.attempts import attempted
from autograd_conformance.harness.testing.example import Example
from autograd_conformance.harness.testing.observe import copied
from autograd_conformance.reference.definitions import Array
from autograd_conformance.reference.ladder import Verdict, inner, judge, slope

if TYPE_CHECKING:
    from autograd_conformance.harness.check.declaration.declaration import Declaration


def stale(declaration: Declaration, examples: Sequence[Example], oracle: Oracle) -> Iterator[str]:
    """A sentence for each declared limitation that none of the examples shows.

    The examples run without the declaration's treatment. ``oracle`` is that of the plain call.
    """
    checks: dict[str, tuple[bool, Callable[[Example], bool], str]] = {
        "single_backward": (declaration.single_backward, _twice, "a second backward through one graph works"),
        "nonlinear": (declaration.nonlinear, _linear, "twice the cotangent gave twice the gradient"),
        "stochastic": (
            declaration.stochastic,
            _draws_nothing,
            "no random number was drawn, and two calls gave the same",
        ),
        "surrogate": (
            declaration.surrogate and declaration.soft is None,
            lambda example: _true(example, oracle),
            "the gradient is the derivative of the forward",
        ),
    }
    # A call that raises does have the limitation.
    for name, (declared, holds, sentence) in checks.items():
        if declared and examples and all(attempted(holds, example) for example in examples):
            yield f"{name}=True: {sentence} in all of {len(examples)} calls; remove it, so that more is checked"
    for slot, argument in enumerate(declaration.parsed.found):
        constant = isinstance(argument, Array) and argument.constant and argument.values != "binary"
        if constant and examples and all(attempted(_gets_gradient, slot, example) for example in examples):
            yield (
                f"constant: argument {slot} ({argument.name}) is declared constant, but backward returns a gradient "
                f"for it in all of {len(examples)} calls; drop constant from the declaration, so that the gradient is "
                "checked, or return None"
            )


def _gets_gradient(slot: int, example: Example) -> bool:
    f, seen = example.observed()
    outputs, pullback = example.implementation.vjp(f, example.primals, track=example.track)
    pullback(constant_cotangents(example, outputs))
    return seen.gradient_of(slot) is not None


def _gradients(example: Example, *factors: float) -> list[list[Any]]:
    """The gradients for constant cotangents, one for each factor, through one graph."""
    implementation = example.implementation
    outputs, pullback = implementation.vjp(example.f, example.primals, track=example.track)
    given = [constant_cotangents(example, outputs, factor) for factor in factors]
    return [copied(implementation, pullback(cotangents)) for cotangents in given]


def constant_cotangents(example: Example, outputs: Sequence[Any], factor: float = 1.0) -> list[Any]:
    """A cotangent with this value everywhere for each output that requires grad, None for the others."""
    implementation = example.implementation
    kinds = [implementation.describe(y) if implementation.requires_grad(y) else None for y in outputs]
    return [None if k is None else example.tensor(np.full(k.shape, factor), k.dtype) for k in kinds]


def _twice(example: Example) -> bool:
    return len(_gradients(example, 1.0, 1.0)) == 2


def _linear(example: Example) -> bool:
    once, twice, tiny = _gradients(example, 1.0, 2.0, 2.0**-20)
    return all(
        a is None or (np.allclose(2 * a, b, rtol=NEAR, atol=0) and np.allclose(2.0**-20 * a, c, rtol=NEAR, atol=0))
        for a, b, c in zip(once, twice, tiny, strict=True)
    )


def _draws_nothing(example: Example) -> bool:
    """Whether two calls have the same outputs and gradients, and no known state of random numbers changes."""
    states = example.implementation.random_states
    before = [state.get() for state in states]
    first, second = ([*copied(example.implementation, example.outputs()), *_gradients(example, 1.0)[0]] for _ in "12")
    pairs = zip(first, second, strict=True)
    same = all(a is b or np.array_equal(a, b, equal_nan=True) for a, b in pairs)
    return same and before == [state.get() for state in states]


def _true(example: Example, oracle: Oracle) -> bool:
    points = example.expected.points()
    outputs = oracle.forward(*example.expected.reference_arguments(exact=True))
    weights = tuple(np.ones(y.shape) if d else None for y, d in zip(outputs, oracle.differentiable, strict=True))
    gradients = oracle.vjp(weights, *example.expected.reference_arguments(exact=True))
    along = example.expected.directions(points)
    estimate = slope(lambda moved: oracle.forward(*example.expected.arguments_at(moved)), points, along, weights)
    claim = inner(tuple(gradients[slot] for slot in example.slots), along)
    return judge(claim, estimate, rounding=NEAR * abs(claim)) is Verdict.AGREES
