"""From lengths that are numbers to lengths that have names, as far as forward takes others."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product

from autograd_conformance.harness.drafting.drafts import NAMES, Draft

# The dimension of an argument: the position of the argument, and of the dimension.
Cell = tuple[int, int]


@dataclass(frozen=True)
class _Unit:
    """Dimensions of one length that change together."""

    length: int
    cells: frozenset[Cell]


@dataclass(frozen=True)
class _Change:
    """What dimensions that are numbers may be instead: ``{0}`` and ``{1}`` are new names, which had these ``lengths``.

    The dimension ``freed`` is limited no more.
    """

    texts: Mapping[_Unit, str] = field(default_factory=dict)
    lengths: tuple[int, ...] = ()
    freed: str = ""

    @property
    def dims(self) -> dict[Cell, str]:
        """The texts, by cell."""
        return {cell: text for unit, text in self.texts.items() for cell in unit.cells}


def loosened(draft: Draft, takes: Callable[[Draft], bool]) -> Draft:
    """The draft with as many names in place of numbers as forward takes, which ``takes`` asks.

    A length is tried alone and, where that is refused, with related ones: two that were equal may mean different
    things, and one that is refused alone may be the double of another.
    """
    for change in _alone(draft):
        draft = _wider(draft, change, takes) or draft
    for changes in (_next_to_others, _as_sums, _in_pairs, _as_multiples):
        for change in changes(draft):
            wider = _wider(draft, change, takes)
            if wider is not None:
                # Lengths that were refused alone may be taken now.
                return loosened(wider, takes)
    return draft


def _wider(draft: Draft, change: _Change, takes: Callable[[Draft], bool]) -> Draft | None:
    """The draft after a change that forward takes; None if it does not, or these dimensions have names already."""
    before = {draft.parts[n].dims[axis] for n, axis in change.dims}
    if all(token.isdigit() or token == change.freed for token in before):
        return next(filter(takes, _changed(draft, change)), None)
    return None


def _changed(draft: Draft, change: _Change) -> Iterator[Draft]:
    """The draft after a change, also with ranges of integers that end where a changed dimension does."""
    taken = {letter for part in draft.parts for token in part.dims for letter in token}
    names = [name for name in NAMES if not set(name) & taken][:2]
    lengths = dict(zip(names, change.lengths, strict=False))
    parts = tuple(
        replace(
            part, dims=tuple(change.dims.get((n, axis), token).format(*names) for axis, token in enumerate(part.dims))
        )
        for n, part in enumerate(draft.parts)
    )
    sizes = {name: limits for name, limits in draft.sizes.items() if name != change.freed}
    wider = replace(draft, parts=parts, sizes=sizes, lengths={**draft.lengths, **lengths})
    if wider != draft:
        yield wider
    for name, length in lengths.items():
        ending = tuple(part.ending(f"..{length - 1}", f"..{name}-1") for part in parts)
        if ending != parts:
            yield replace(wider, parts=ending)


def _alone(draft: Draft) -> Iterator[_Change]:
    """Each limited dimension without its limits, and each length with a name."""
    yield from (_Change(freed=name) for name in draft.sizes)
    yield from (_Change({unit: "{0}"}, (unit.length,)) for unit in _units(draft))


def _as_multiples(draft: Draft) -> Iterator[_Change]:
    """Each length, and each dimension that is limited, as a multiple."""
    for unit in _units(draft):
        yield from (_Change({unit: f"{k}*{{0}}"}) for k in range(2, unit.length) if unit.length % k == 0)
    for name, lengths in draft.sizes.items():
        step = math.gcd(*lengths)
        if step > 1:
            yield _Change({_Unit(step, _cells(draft, name)): f"{step}*{{0}}"}, freed=name)


def _next_to_others(draft: Draft) -> Iterator[_Change]:
    """Each length as that of a dimension that was not longer, and more."""
    longest = {**draft.lengths, **{name: max(lengths) for name, lengths in draft.varied.items()}}
    for unit, (name, most) in product(_units(draft), longest.items()):
        if most <= unit.length:
            yield _Change({unit: f"{name}+{{0}}"}, freed=name)


def _in_pairs(draft: Draft) -> Iterator[_Change]:
    """Two lengths that may be related."""
    for short, long in _pairs(_units(draft)):
        for text in _related(short.length, long.length):
            yield _Change({short: "{0}", long: text}, (short.length,))


def _as_sums(draft: Draft) -> Iterator[_Change]:
    """Three lengths of which one may be the sum or the product of the others."""
    units = [unit for unit in _units(draft) if unit.length > 1]
    for (one, other), whole in product(_pairs(units), units):
        lengths = one.length, other.length
        for text, length in (("{0}+{1}", sum(lengths)), ("{0}*{1}", math.prod(lengths))):
            if whole.length == length and not whole.cells & (one.cells | other.cells):
                yield _Change({one: "{0}", other: "{1}", whole: text}, lengths)


def _pairs(units: Sequence[_Unit]) -> Iterator[tuple[_Unit, _Unit]]:
    """Pairs without a common dimension, of which the first is not longer."""
    for pair in combinations(units, 2):
        short, long = sorted(pair, key=lambda unit: unit.length)
        if not short.cells & long.cells:
            yield short, long


def _units(draft: Draft) -> list[_Unit]:
    """The dimensions that are numbers: first all those of one length, then those of tensors of one shape, then each."""
    found = [(n, axis) for n, part in enumerate(draft.parts) for axis, token in enumerate(part.dims) if token.isdigit()]

    def token(cell: Cell) -> str:
        return draft.parts[cell[0]].dims[cell[1]]

    def place(cell: Cell) -> tuple[tuple[str, ...], int]:
        return draft.parts[cell[0]].dims, cell[1]

    groups = [_cells(draft, token(cell)) for cell in found]
    groups += [frozenset(other for other in found if place(other) == place(cell)) for cell in found]
    groups += [frozenset({cell}) for cell in found]
    return [_Unit(int(token(next(iter(cells)))), cells) for cells in dict.fromkeys(groups)]


def _cells(draft: Draft, token: str) -> frozenset[Cell]:
    """The dimensions that are written so."""
    return frozenset((n, axis) for n, part in enumerate(draft.parts) for axis, t in enumerate(part.dims) if t == token)


def _related(short: int, long: int) -> Iterator[str]:
    """How a length may depend on another one that is not longer."""
    if short == long:
        yield "{0}"
    elif short > 1:
        if long % short == 0:
            yield f"{long // short}*{{0}}"
        if long == short + 1:
            yield "{0}+1"
        yield "{0}+{1}"
