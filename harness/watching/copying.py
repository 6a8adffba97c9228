"""Checks in the process of the program: copies of what a call has, and what a check must leave as it is."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from autograd_conformance.harness.testing.settings import kept as settings_kept
from autograd_conformance.harness.watching.given import Unwatched
from autograd_conformance.harness.watching.links import Memo, copied
from autograd_conformance.implementations.protocol import Implementation
from autograd_conformance.strategies import calls, scope, shapes

# How random numbers are read and set back.
_Generator = tuple[Callable[[], Any], Callable[[Any], object]]
_HOST: tuple[_Generator, ...] = (
    (random.getstate, random.setstate),
    (np.random.get_state, np.random.set_state),
)


@contextmanager
def kept(implementation: Implementation, generators: Sequence[_Generator]) -> Iterator[None]:
    """Set back settings and random numbers of the process that change within this context."""
    before = [(put_back, get()) for get, put_back in (*_HOST, *generators)]
    try:
        with settings_kept(implementation):
            yield
    finally:
        for put_back, state in before:
            put_back(state)
        # They hold the declarations of calls, and so their tensors.
        for module in (calls, scope, shapes):
            for function in vars(module).values():
                getattr(function, "cache_clear", lambda: None)()


def copies(args: Sequence[Any], implementation: Implementation) -> tuple[Any, ...]:
    """Copies of the arguments of a call, which share with each other what these do, and nothing with the program.

    Raises Unwatched if one cannot be copied.
    """
    memo: Memo = {}
    for value in args:
        # Others than leaves of a graph cannot be copied by themselves, and views not without what they are views of.
        if implementation.is_tensor(value) and type(value).__name__ == "Tensor":
            memo[id(value)] = implementation.xp.copy(value).detach().requires_grad_(implementation.requires_grad(value))
    return tuple(_copy(slot, value, memo) for slot, value in enumerate(args))


def _copy(slot: int, value: Any, memo: Memo) -> Any:
    try:
        return copied(value, memo)
    except Exception as problem:
        raise Unwatched(
            f"argument {slot} ({type(value).__name__}) cannot be copied, and no process can be forked that has it to "
            f"itself: {type(problem).__name__}: {problem}"
        ) from problem
