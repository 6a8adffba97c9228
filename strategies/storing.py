"""Strategies for Functions that store tensors for backward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from autograd_conformance.reference.storing import KINDS, Storing
from autograd_conformance.strategies.polynomials import DTYPES, SHAPES


@st.composite
def storings(
    draw: Any,
    *,
    saved: bool | None = True,
    needed: Sequence[str] = KINDS,
    others: Sequence[str] = KINDS,
    reads: bool = True,
    shapes: Sequence[tuple[int, ...]] = SHAPES,
    dtypes: Sequence[str] = DTYPES,
) -> Storing:
    """A Function that stores one of the kinds ``needed`` among up to three ``others``; ``saved`` None is drawn."""
    more = draw(st.lists(st.sampled_from(tuple(others)), max_size=3))
    position = draw(st.integers(0, len(more)))
    return Storing(
        stored=(*more[:position], draw(st.sampled_from(tuple(needed))), *more[position:]),
        saved=draw(st.booleans()) if saved is None else saved,
        reads=reads,
        outputs=draw(st.integers(1, 3)),
        shape=draw(st.sampled_from(tuple(shapes))),
        separate=draw(st.booleans()),
        dtype=draw(st.sampled_from(tuple(dtypes))),
        seed=draw(st.integers(0, 99)),
    )
