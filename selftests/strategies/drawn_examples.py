"""The examples of a strategy: all of them, one that satisfies a predicate, or the simplest such."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, find, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from autograd_conformance.reference.definitions import Array, Function
from autograd_conformance.reference.functions import FUNCTIONS
from autograd_conformance.strategies.calls import Call

LINEAR, SQUARE = FUNCTIONS["LinearFunction"], FUNCTIONS["Square"]
SINH, TAKE = FUNCTIONS["Sinh"], FUNCTIONS["NumpyTake"]


def options(examples: int, *phases: Phase) -> settings:
    return settings(
        max_examples=examples,
        database=None,
        deadline=None,
        derandomize=False,
        phases=phases or (Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )


def always(strategy: st.SearchStrategy[Any], holds: Callable[[Any], Any], *, examples: int = 60) -> None:
    """Every example satisfies the predicate."""

    @seed(1)
    @options(examples)
    @given(strategy)
    def run(value: Any) -> None:
        assert holds(value), value

    run()


def reaches(strategy: st.SearchStrategy[Any], wanted: Callable[[Any], Any], *, examples: int = 1000) -> Any:
    """Some example satisfies the predicate."""
    return find(strategy, wanted, settings=options(examples), random=random.Random(0))


def never(strategy: st.SearchStrategy[Any], unwanted: Callable[[Any], Any], *, examples: int = 200) -> None:
    with pytest.raises(NoSuchExample):
        reaches(strategy, unwanted, examples=examples)


def minimal(strategy: st.SearchStrategy[Any], wanted: Callable[[Any], Any] = lambda _: True) -> Any:
    """The simplest example that satisfies the predicate."""
    return find(strategy, wanted, settings=options(1000, Phase.generate, Phase.shrink), random=random.Random(0))


def drawn(strategy: st.SearchStrategy[Any], count: int, number: int) -> list[Any]:
    """The examples that a seed gives."""
    found = []

    @seed(number)
    @options(count)
    @given(strategy)
    def run(value: Any) -> None:
        found.append(value)

    run()
    return found


def made(*dims: str, sizes: dict[str, tuple[int, ...]] | None = None) -> Function:
    """A Function of tensors of these dims."""
    arrays = tuple(Array(name=f"x{number}", dims=text) for number, text in enumerate(dims))
    return replace(SQUARE, name="Made", arguments=arrays, sizes=sizes or {})


def shapes(call: Call) -> tuple[tuple[int, ...], ...]:
    return tuple(tensor.shape for tensor in call.tensors)
