"""Strategies for generated Functions: number, kinds and order of arguments and outputs, shape, dtype and style."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from autograd_conformance.reference.polynomials import ARGUMENTS, OUTPUTS, Polynomial

# Those in which NumPy and the implementations compute small integers exactly.
DTYPES = ("float64", "float32", "float16", "bfloat16")
SHAPES = ((), (1,), (3,), (2, 3), (0,), (3, 1, 2))


@st.composite
def polynomials(
    draw: Any,
    *,
    arguments: Sequence[str] = ARGUMENTS,
    outputs: Sequence[str] = OUTPUTS,
    max_arguments: int = 5,
    max_outputs: int = 3,
    powers: Sequence[int] = (1, 2),
    separate: bool | None = None,
    materialize: bool | None = True,
    generous: bool = False,
    shapes: Sequence[tuple[int, ...]] = SHAPES,
    dtypes: Sequence[str] = DTYPES,
) -> Polynomial:
    """A Function with at least one tracked argument and one float output, each at any position.

    ``arguments`` and ``outputs`` restrict the kinds of the others; a ``separate`` or ``materialize`` of None is drawn.
    Shrinks to one tracked scalar, one output, power 1, the combined style.
    """
    others = st.lists(st.sampled_from(tuple(arguments)), max_size=max_arguments - 1)
    more = st.lists(st.sampled_from(tuple(outputs)), max_size=max_outputs - 1)
    return Polynomial(
        arguments=_with(draw, "tracked", draw(others)),
        outputs=_with(draw, "float", draw(more)),
        shape=draw(st.sampled_from(tuple(shapes))),
        power=draw(st.sampled_from(tuple(powers))),
        separate=draw(st.booleans()) if separate is None else separate,
        materialize=draw(st.booleans()) if materialize is None else materialize,
        generous=generous,
        dtype=draw(st.sampled_from(tuple(dtypes))),
        seed=draw(st.integers(0, 99)),
    )


def _with(draw: Any, needed: str, others: list[str]) -> tuple[str, ...]:
    position = draw(st.integers(0, len(others)))
    return (*others[:position], needed, *others[position:])
