"""Hooks that scale or log what they get, and the right result of a chain of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from operator import mul
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st

from autograd_conformance.harness.checking.clauses import ClauseSubject, Run
from autograd_conformance.reference.polynomials import Polynomial
from autograd_conformance.suites.contract._derivatives import drawn_cotangents

# The factor by which a hook scales what it gets; None for a hook that returns nothing.
FACTORS = st.lists(st.sampled_from((None, 2, -1)), min_size=1, max_size=3)


def some_cotangents(subject: ClauseSubject, data: Any, polynomial: Polynomial) -> tuple[Any, ...]:
    """Cotangents for some of the float outputs, None for the other outputs."""
    return drawn_cotangents(subject, data, polynomial, "outputs with a cotangent")


def floats_of(run: Run) -> list[Any]:
    """The outputs that a pass can start from."""
    return [y for y, kind in zip(run.outputs, run.polynomial.outputs, strict=True) if kind == "float"]


def node_of(run: Run) -> Any:
    """The node of the call."""
    return floats_of(run)[0].grad_fn


def leaves_of(run: Run) -> list[Any]:
    """The leaves that require grad, on which the call ran."""
    return [node.variable for node, _ in node_of(run).next_functions if node is not None]


def tracked(polynomial: Polynomial, gradients: Sequence[Any]) -> list[Any]:
    """The gradients of the arguments that require one."""
    return [g for g, need in zip(gradients, polynomial.needs, strict=True) if need]


def backward(run: Run, cotangents: Sequence[Any], *, downstream: bool = False, inputs: Any = None) -> None:
    """A pass that adds to ``.grad``, from the outputs themselves or from what was computed ``downstream`` of them."""
    pairs = zip(run.outputs, run.subject.tensors(cotangents, run.polynomial.dtype), strict=True)
    used = [(y * 1 if downstream else y, g) for y, g in pairs if g is not None]
    torch.autograd.backward([y for y, _ in used], [g for _, g in used], retain_graph=True, inputs=inputs)


def times(values: Sequence[Any], factor: int | None) -> Any:
    """The result of a node's hook that scales the values it gets."""
    return None if factor is None else tuple(None if v is None else factor * v for v in values)


def scaled(factor: int | None, gradient: Any) -> Any:
    """The result of a tensor's hook that scales its gradient."""
    return None if factor is None else factor * gradient


def passed(values: Sequence[Any], factors: Sequence[int | None]) -> list[tuple[Any, ...]]:
    """The arrays that each hook of a chain gets, and those after the last one."""
    so_far = accumulate((1 if factor is None else factor for factor in factors), mul, initial=1)
    return [tuple(None if v is None else np.asarray(factor * v) for v in values) for factor in so_far]


def assert_got(subject: ClauseSubject, hook: str, values: str, got: Sequence[Any], expected: Sequence[Any]) -> None:
    """Each hook was called once, in this order, with a tuple of these ``values``: gradients or cotangents."""
    __tracebackhide__ = True
    subject.assert_equal(f"number of calls of {hook}s", got=len(got), expected=len(expected))
    subject.assert_equal(
        f"types of the {values} that {hook}s get", got=[type(g) for g in got], expected=[tuple for _ in expected]
    )
    for number, (mine, theirs) in enumerate(zip(got, expected, strict=True)):
        subject.assert_all_same(f"{values} that {hook} {number} gets", got=mine, expected=theirs)


def register(kind: str, tensor: Any, node: Any, act: Callable[[], Any]) -> None:
    """Register a hook of this kind that calls ``act`` and returns nothing."""
    add = {
        "tensor's hook": lambda: tensor.register_hook(lambda _: act()),
        "pre-hook": lambda: node.register_prehook(lambda _: act()),
        "post-hook": lambda: node.register_hook(lambda *_: act()),
        "post-accumulate hook": lambda: tensor.register_post_accumulate_grad_hook(lambda _: act()),
    }
    add[kind]()


def _nothing(_: Any) -> None:
    pass


def watched(
    subject: ClauseSubject, polynomial: Polynomial, *, forward: Callable[[Any], Any] = _nothing,
    backward: Callable[[Any], Any] = _nothing,
) -> Any:  # fmt: skip
    """The generated Function; it calls ``forward(ctx)`` and ``backward(ctx)`` when its forward and backward start."""
    body = subject.body(polynomial)
    entry = "setup_context" if polynomial.separate else "forward"

    def enter(ctx: Any, *args: Any, **named: Any) -> Any:
        forward(ctx)
        return getattr(body, entry)(ctx, *args, **named)

    def leave(ctx: Any, *cotangents: Any) -> Any:
        backward(ctx)
        return body.backward(ctx, *cotangents)

    return type(body)("Watched", (body,), {entry: staticmethod(enter), "backward": staticmethod(leave)})
