"""Hooks that scale or log what they get, and the right result of a chain of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import accumulate
from operator import mul
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st

from autograd_conformance.harness.testing.clauses import ClauseSubject, Run
from autograd_conformance.suites.dialects.torch._leaves import starts_of

# The factor by which a hook scales what it gets; None for a hook that returns nothing.
FACTORS = st.lists(st.sampled_from((None, 2, -1)), min_size=1, max_size=3)


def backward(run: Run, cotangents: Sequence[Any], *, downstream: bool = False, inputs: Any = None) -> None:
    """A pass that adds to ``.grad``, from the outputs themselves or from what was computed ``downstream`` of them."""
    outputs, given = starts_of(run.subject, run.polynomial, run.outputs, cotangents)
    starts = [y * 1 for y in outputs] if downstream else outputs
    torch.autograd.backward(starts, given, retain_graph=True, inputs=inputs)


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


def check_until_removed(
    factors: Sequence[int | None],
    removed: Collection[int],
    add: Callable[[int | None], Any],
    check: Callable[[list[int | None]], None],
) -> None:
    """``add`` a hook for each factor, and ``check`` a pass with all of them and one without those ``removed``."""
    handles = [add(factor) for factor in factors]
    check(list(factors))
    for i in removed:
        handles[i].remove()
    check([factor for i, factor in enumerate(factors) if i not in removed])


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
