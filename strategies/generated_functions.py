"""Strategies for generated Functions: those of `reference.polynomials`, `reference.changes` and `reference.storing`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from autograd_conformance.reference.changes import ROLES, Change, Passing, View
from autograd_conformance.reference.polynomials import ARGUMENTS, OUTPUTS, Polynomial
from autograd_conformance.reference.storing import KINDS, Storing

# In these, NumPy and the implementations compute small integers exactly.
DTYPES = ("float64", "float32", "float16", "bfloat16")
SHAPES = ((), (1,), (3,), (2, 3), (0,), (3, 1, 2))

# Basic indexing with the same meaning in NumPy and in frameworks with strides, by the number of dimensions it needs.
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


def flags(count: int) -> st.SearchStrategy[tuple[bool, ...]]:
    """A bool for each of so many things."""
    return st.lists(st.booleans(), min_size=count, max_size=count).map(tuple)


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

    ``arguments`` and ``outputs`` restrict the kinds of the others. ``separate`` and ``materialize`` are drawn if None.

    Shrinks towards one tracked scalar, one output, power 1, and a forward that takes ctx.

    >>> polynomials().example()
    Polynomial(arguments=('flag', 'tracked'), outputs=('static', 'float'), power=2, dtype='bfloat16', seed=55)
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

    ``arguments`` restricts the kinds of the others; ``before`` of them come before the needed one (default: any
    number). Up to ``new_outputs`` outputs are new tensors: as many as are needed for ``outputs`` outputs, or more.

    Shrinks towards one scalar, changed by a forward that takes ctx.

    >>> changes().example()
    Change(arguments=('tracked', 'changed'), returned=(None, 1, None), shape=(2, 3), seed=53)
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
    """A Function with an output that one of the recipes ``needed`` makes from an argument of the kind ``argument``.

    ``others`` are the recipes of the other outputs, ``arguments`` the kinds of the other arguments. There are from
    ``outputs`` to ``max_outputs`` outputs.

    Shrinks towards that argument alone, and ``outputs`` outputs.

    >>> passings(needed=("view",)).example()
    Passing(arguments=('tracked',), outputs=(('new', 0), ('view', 0)), seed=35)
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
    """A Function that stores one tensor of the kinds ``needed``, and up to three of the kinds ``others``.

    ``saved`` is drawn if None. Shrinks towards one stored tensor, one output, and scalars.

    >>> storings().example()
    Storing(stored=('input', 'fixed input'), saved=True, outputs=2, shape=(0,), seed=60)
    """
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


@st.composite
def views(draw: Any, shape: tuple[int, ...], *, empty: bool = True, max_steps: int = 2) -> View:
    """A view of a tensor of this shape, in one to ``max_steps`` steps. Only if ``empty`` may it have no elements.

    Shrinks towards one step, the first of `KEYS` that fits.

    >>> views((2, 3)).example()
    View(steps=('mT', (slice(0, 2, None), Ellipsis)))
    """
    seen, steps = np.empty(shape), []
    for _ in range(draw(st.integers(1, max_steps))):
        options = [key for ndim, keys in KEYS.items() if ndim <= seen.ndim for key in keys]
        fitting = [key for key in options if _fits(seen, key, empty)]
        steps.append(draw(st.sampled_from(fitting)))
        seen = View((steps[-1],))(seen)
    return View(tuple(steps))


def _with(draw: Any, needed: str, others: list[str]) -> tuple[str, ...]:
    position = draw(st.integers(0, len(others)))
    return (*others[:position], needed, *others[position:])


def _fits(array: Any, key: Any, empty: bool) -> bool:
    if 0 in array.shape and key != "mT" and any(k in (0, -1) for k in key if isinstance(k, int)):
        return False
    return empty or View((key,))(array).size > 0
