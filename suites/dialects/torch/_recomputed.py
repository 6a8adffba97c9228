"""A Function that multiplies by a factor of each run, for what happens if it runs again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from autograd_conformance.harness.testing.clauses import ClauseSubject
from autograd_conformance.reference.generated import integers


def multiplying(
    subject: ClauseSubject, factor: Callable[[Any], Any], change: Callable[[Any], Any] = lambda factor: factor
) -> tuple[Any, list[Any]]:
    """A Function of a tensor ``x`` that multiplies it by ``factor(x)``, and the list of the factors that it saved.

    From its second run on it saves ``change`` of the factor.
    """
    factors: list[Any] = []

    def forward(ctx: Any, x: Any) -> Any:
        used = factor(x)
        factors.append(change(used) if factors else used)
        ctx.save_for_backward(factors[-1])
        return x * used

    return subject.custom(forward=forward, backward=lambda ctx, g: g * ctx.saved_tensors[0]), factors


def drawn_pair(subject: ClauseSubject, data: Any) -> tuple[Any, Any]:
    """A leaf that requires grad, and a cotangent of its shape."""
    shape = subject.draw(data, st.sampled_from(((), (3,), (2, 3), (0,))), "shape")
    seed = subject.draw(data, st.integers(0, 99), "seed")
    x, g = (subject.tensor(integers((seed, salt), shape)) for salt in range(2))
    return x.requires_grad_(), g
