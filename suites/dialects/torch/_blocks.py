"""Blocks of context managers that are left by their end or by an exception."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any

from hypothesis import strategies as st

from autograd_conformance.harness.testing.clauses import ClauseSubject

LEAVING = ("end", "exception")


class Left(Exception):
    """What ends a block early."""


def leave(leaving: str) -> None:
    """Leave a block so; to be called where the block ends."""
    if leaving == "exception":
        raise Left


def pass_blocks(
    subject: ClauseSubject, data: Any, enter: Callable[[Any], AbstractContextManager[Any]], options: Sequence[Any]
) -> None:
    """Enter and leave some blocks, each with one of these options. What they set must be over."""
    blocks = st.lists(st.tuples(st.sampled_from(options), st.sampled_from(LEAVING)), max_size=2)
    for option, leaving in subject.draw(data, blocks, "blocks before, which are over: what is set, left by"):
        with suppress(Left), enter(option):
            leave(leaving)
