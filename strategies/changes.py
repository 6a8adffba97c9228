"""Strategies for Functions that change their arguments in place or return them, and for views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from autograd_conformance.reference.changes import ROLES, Change, Passing, View
from autograd_conformance.strategies.polynomials import DTYPES, SHAPES

# Basic indexing that NumPy and strided frameworks read alike, by the number of dimensions that it needs.
KEYS: dict[int, tuple[Any, ...]] = {
    0: ((...,), (None, ...)),
    1: (
        (slice(0, 2), ...),
        (slice(1, None), ...),
        (slice(None, None, 2), ...),
        (..., slice(0, 1)),
        (..., slice(0, 0)),
        (0, ...),
        (..., -1),
    ),
    2: ("mT", (slice(None), None, 0), (..., 0, slice(1, None))),
}


@st.composite
def changes(
    draw: Any,
    *,
    arguments: Sequence[str] = ROLES,
    needed: str = "changed",
    before: int | None = None,
    max_arguments: int = 4,
    outputs: int = 1,
    new_outputs: int = 2,
    separate: bool | None = None,
    shapes: Sequence[tuple[int, ...]] = SHAPES,
    dtypes: Sequence[str] = DTYPES,
) -> Change:
    """A Function that changes at least one argument of the kind ``needed`` in place.

    ``arguments`` restricts the kinds of the others, of which ``before`` come before it (default: any number). There are
    at least ``outputs`` outputs, as far as up to ``new_outputs`` new tensors make them. Shrinks to one scalar that is
    changed in the combined style.
    """
    others = draw(st.lists(st.sampled_from(tuple(arguments)), min_size=before or 0, max_size=max_arguments - 1))
    position = draw(st.integers(0, len(others))) if before is None else before
    roles = (*others[:position], needed, *others[position:])
    changed = [i for i, role in enumerate(roles) if role.startswith("changed")]
    new = [None] * draw(st.integers(min(new_outputs, max(0, outputs - len(changed))), new_outputs))
    apart = draw(st.booleans()) if separate is None else separate
    return Change(
        arguments=roles,
        returned=tuple(draw(st.permutations([*changed, *new]))),
        shape=draw(st.sampled_from(tuple(shapes))),
        separate=apart,
        early=not apart and draw(st.booleans()),
        dtype=draw(st.sampled_from(tuple(dtypes))),
        seed=draw(st.integers(0, 99)),
    )


@st.composite
def passings(
    draw: Any,
    *,
    needed: Sequence[str],
    argument: str = "tracked",
    outputs: int = 1,
    max_outputs: int = 3,
    others: Sequence[str] = ("new",),
    arguments: Sequence[str] = ("tracked", "fixed"),
    shapes: Sequence[tuple[int, ...]] = SHAPES,
    dtypes: Sequence[str] = DTYPES,
) -> Passing:
    """A Function that makes an output by one of the recipes ``needed`` from an argument of the kind ``argument``.

    ``others`` are the recipes of the other outputs, ``arguments`` the kinds of the other arguments. There are at least
    ``outputs`` outputs, and at most ``max_outputs``.
    """
    roles = draw(st.lists(st.sampled_from(tuple(arguments)), max_size=2))
    place = draw(st.integers(0, len(roles)))
    roles.insert(place, argument)
    pairs = st.tuples(st.sampled_from(tuple(others)), st.integers(0, len(roles) - 1))
    made = draw(st.lists(pairs, min_size=outputs - 1, max_size=max_outputs - 1))
    made.insert(draw(st.integers(0, len(made))), (draw(st.sampled_from(tuple(needed))), place))
    return Passing(
        arguments=tuple(roles),
        outputs=tuple(made),
        shape=draw(st.sampled_from(tuple(shapes))),
        separate=draw(st.booleans()),
        dtype=draw(st.sampled_from(tuple(dtypes))),
        seed=draw(st.integers(0, 99)),
    )


@st.composite
def views(draw: Any, shape: tuple[int, ...], *, empty: bool = True, max_steps: int = 2) -> View:
    """A view of a tensor of this shape, of one to ``max_steps`` steps, without elements only if it may be ``empty``."""
    seen, steps = np.empty(shape), []
    for _ in range(draw(st.integers(1, max_steps))):
        options = [key for ndim, keys in KEYS.items() if ndim <= seen.ndim for key in keys]
        fitting = [key for key in options if _fits(seen, key, empty)]
        steps.append(draw(st.sampled_from(fitting)))
        seen = View((steps[-1],))(seen)
    return View(tuple(steps))


def _fits(array: Any, key: Any, empty: bool) -> bool:
    if 0 in array.shape and key != "mT" and any(k in (0, -1) for k in key if isinstance(k, int)):
        return False
    return empty or View((key,))(array).size > 0
