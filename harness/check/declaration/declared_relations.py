"""Promises: what a declaration says of other calls, read into relations that tests check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from autograd_conformance.harness.check.declaration.naming import KEYWORDS, Notation
from autograd_conformance.harness.testing.relations import AlongAxis, Exchanged, Independent, Relation
from autograd_conformance.reference.definitions import Array, Static
from autograd_conformance.strategies.descriptors import Arguments

INDEPENDENT, AXIS, SYMMETRIC = "DECL-INDEPENDENT", "DECL-AXIS", "DECL-SYMMETRIC"


def relations(
    parsed: Arguments,
    independent: Sequence[str],
    symmetric: Sequence[Any],
    antisymmetric: Sequence[Any],
    *,
    stochastic: bool,
    notation: Notation = KEYWORDS,
) -> Mapping[str, Relation]:
    """The relations that a declaration promises, by the property that is about them.

    Raises ValueError with what is wrong.
    """
    found: dict[str, Relation] = {}
    if independent:
        found[INDEPENDENT] = Independent(tuple(_dimension(parsed, name, notation) for name in independent))
    if any(isinstance(argument, Static) and argument.axis for argument in parsed.found):
        found[AXIS] = AlongAxis()
    promised = {"independent": independent, "symmetric": symmetric, "antisymmetric": antisymmetric}
    word = next((word for word, given in promised.items() if given), "")
    if word and stochastic:
        both = f"{notation.word(word)} and {notation.said('stochastic')}"
        raise ValueError(f"{both} cannot be combined: each call draws other random numbers")
    if symmetric and antisymmetric:
        raise ValueError(f"{notation.word('symmetric')} and {notation.word('antisymmetric')} cannot be combined")
    if symmetric or antisymmetric:
        word = "symmetric" if symmetric else "antisymmetric"
        slots = _alike(parsed, word, symmetric or antisymmetric, notation)
        found[SYMMETRIC] = Exchanged(slots, 1.0 if symmetric else -1.0)
    return found


def _dimension(parsed: Arguments, name: str, notation: Notation) -> tuple[str, str]:
    """The name of a dimension in `Array.dims`, and as it is shown."""
    known = {**parsed.names, **({"...": "*any"} if _has_any(parsed) else {})}
    if name not in known:
        said = notation.said("independent", name)
        raise ValueError(f"{said}: no tensor has this dimension; they have: {', '.join(known) or '-'}")
    reason = parsed.uncut(known[name])
    if reason:
        said = notation.said("independent", name)
        raise ValueError(f"{said}: this dimension cannot be cut into slices, because {reason}")
    return known[name], name


def _has_any(parsed: Arguments) -> bool:
    return any(isinstance(a, Array) and "*any" in a.dims.split() for a in parsed.found)


def _alike(parsed: Arguments, word: str, given: Sequence[Any], notation: Notation) -> tuple[int, ...]:
    """The positions of arguments that can be exchanged."""
    slots = tuple(given)
    said, positions = notation.said(word, slots), range(len(parsed.found))
    integers = all(type(slot) is int for slot in slots)
    missing = [slot for slot in slots if integers and slot not in positions]
    if missing:
        raise ValueError(f"{said}: there is no argument {missing[0]}; the positions are 0 to {len(positions) - 1}")
    if not integers or len(set(slots)) != len(slots) or len(slots) < 2:
        raise ValueError(f"{said}: give the positions of two or more tensors, as in {notation.said(word, (0, 1))}")
    other = next((slot for slot in slots if not isinstance(parsed.found[slot], Array)), None)
    if other is not None:
        raise ValueError(f"{said}: argument {other} is not a tensor")
    kinds = [_kind(parsed.found[slot]) for slot in slots]
    other = next((slot for slot, kind in zip(slots, kinds, strict=True) if kind != kinds[0]), None)
    if other is not None:
        raise ValueError(
            f"{said}: arguments {slots[0]} and {other} are described differently, so they cannot be exchanged"
        )
    return slots


def _kind(argument: Array | Static) -> Any:
    """What is described of a tensor, without its name."""
    assert isinstance(argument, Array)
    return replace(argument, name="", make=None)
