"""The settings of the process and its random numbers around a call, and what the call makes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from autograd_conformance.harness.testing.example import Example
from autograd_conformance.implementations.protocol import Implementation


@contextmanager
def kept(implementation: Implementation) -> Iterator[None]:
    """Set back every setting of the process that changes within this context."""
    before = [(setting, setting.get()) for setting in implementation.settings]
    try:
        yield
    finally:
        for setting, value in before:
            if setting.get() != value:
                setting.set(value)


def _stages(
    example: Example, look: Callable[[], Any], seeds: tuple[int, int] | None = None
) -> Iterator[tuple[str, Any, Any]]:  # fmt: skip
    """What ``look`` returns before and after forward, and before and after backward.

    Before each of them the random numbers are seeded with one of ``seeds``.
    """
    found, implementation = [], example.implementation
    with kept(implementation):
        # What they are may have to be found out by calls of the Function.
        cotangents = example.cotangents

    def around(stage: str, run: Callable[[], Any]) -> Any:
        if seeds is not None:
            implementation.reseed(seeds[stage == "backward"])
        before = look()
        result = run()
        found.append((stage, before, look()))
        return result

    def forward(*primals: Any) -> Any:
        return around("forward", lambda: example.f(*primals))

    _, pullback = implementation.vjp(forward, example.primals, track=example.track)
    if any(example.track):
        around("backward", lambda: pullback(cotangents))
    yield from found


def changed_settings(example: Example) -> list[str]:
    """The settings that forward or backward leaves changed, with both values."""
    settings = example.implementation.settings

    def look() -> list[Any]:
        return [setting.get() for setting in settings]

    return [
        f"{setting.name} by {stage}: {old} became {new}"
        for stage, before, after in _stages(example, look)
        for setting, old, new in zip(settings, before, after, strict=True)
        if old != new
    ]


def reseeding(example: Example) -> list[str]:
    """The random numbers whose state forward or backward sets: afterwards it does not depend on what it was before."""
    states = example.implementation.random_states

    def look() -> list[Any]:
        return [state.get() for state in states]

    runs = [list(_stages(example.of(example.call), look, seeds)) for seeds in ((1, 3), (2, 3), (1, 4))]
    return [
        f"{state.name} by {stage}"
        for number, state in enumerate(states)
        for stage, (one, other) in (("forward", (runs[0], runs[1])), ("backward", (runs[0], runs[2])))
        if _is_set(_of(stage, number, one), _of(stage, number, other))
    ]


def _of(stage: str, number: int, run: Sequence[tuple[str, Any, Any]]) -> tuple[Any, Any] | None:
    """One state before and after a stage."""
    return next(((before[number], after[number]) for name, before, after in run if name == stage), None)


def _is_set(one: tuple[Any, Any] | None, other: tuple[Any, Any] | None) -> bool:
    """Whether two different states became one."""
    return one is not None and other is not None and one[0] != other[0] and one[1] == other[1]


def results_from(example: Example, seed: int) -> tuple[Any, ...]:
    """Outputs and gradients after the random numbers were seeded, before forward and before backward."""
    implementation, primals, cotangents = example.implementation, example.primals, example.cotangents
    implementation.reseed(seed)
    outputs, pullback = implementation.vjp(example.f, primals, track=example.track)
    copies = [implementation.xp.copy(y) for y in outputs]
    implementation.reseed(seed)
    return (*copies, *pullback(cotangents))


def results_in_new_memory(example: Example, fill: bool) -> tuple[Any, ...]:
    """Outputs and gradients where memory that is allocated is filled with NaN, or with zeros."""
    implementation, primals, cotangents = example.implementation, example.primals, example.cotangents
    with implementation.new_memory(fill):
        outputs, pullback = implementation.vjp(example.f, primals, track=example.track)
        copies = [implementation.xp.copy(y) for y in outputs]
        return (*copies, *pullback(cotangents))
