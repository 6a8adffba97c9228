"""Shapes tied by named dimensions, enumerated once per Function and ordered from simple to large."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from autograd_conformance.reference.definitions import Function, Shape, Shapes

SIDES = (1, 2, 3, 0, 4, 17)
# The lengths of dimensions that cannot be empty: those in the bounds of a range, and parts of a sum.
NOT_EMPTY = (1, 2, 3, 4, 17)
MAX_RANK = 5
MAX_ELEMENTS = 512
# The most elements that fixed lengths may ask for.
MAX_FIXED = 2**20
# The most assignments of lengths to names to look at: with many names, each has fewer lengths.
MAX_ASSIGNMENTS = 100_000

# Sizes just above a vector width or a block, where implementations change their code path.
_LARGE: tuple[Shape, ...] = ((17,), (33,), (65,), (257,), (4, 33), (17, 17), (2, 3, 17))
_SMALL: dict[int, tuple[int, ...]] = {0: (), 1: (1, 2, 3, 5), 2: (1, 2, 3), 3: (1, 2, 3), 4: (1, 2), 5: (1, 2)}
_EMPTY: tuple[Shape, ...] = (
    (0,), (0, 3), (2, 0), (0, 0), (2, 0, 3), (3, 1, 0), (0, 2, 1, 2), (1, 2, 3, 0), (2, 1, 0, 1, 2)
)  # fmt: skip
_BROADCAST: tuple[Shape, ...] = (
    (), (1,), (2,), (3,), (2, 3), (3, 2), (1, 3), (0,), (0, 3), (2, 0), (2, 3, 2), (2, 1, 3, 2), (17,), (4, 33)
)  # fmt: skip


def _simplicity(shapes: Shapes) -> tuple[bool, int, int, Shapes]:
    """Sort key: non-empty before empty, then few elements, few dimensions."""
    return any(0 in shape for shape in shapes), sum(map(math.prod, shapes)), sum(map(len, shapes)), shapes


@lru_cache
def any_shapes(min_rank: int = 0, max_rank: int = MAX_RANK) -> tuple[Shape, ...]:
    """Shapes of every rank in the range: unit, empty, small and a few large ones."""
    small = (shape for rank in range(min_rank, max_rank + 1) for shape in itertools.product(_SMALL[rank], repeat=rank))
    other = (shape for shape in (*_EMPTY, *_LARGE) if min_rank <= len(shape) <= max_rank)
    return tuple(sorted({*small, *other}, key=lambda shape: _simplicity((shape,))))


@lru_cache
def broadcastable_pairs(count: int = 2) -> tuple[Shapes, ...]:
    """Tuples of shapes that broadcast together: equal, with unit sides, with leading sides missing."""
    pairs = {
        shapes
        for result in _BROADCAST
        for shapes in itertools.product(tuple(_reductions(result)), repeat=count)
        if _joined(shapes) == result
    }
    return tuple(sorted(pairs, key=_simplicity))


def _reductions(shape: Shape) -> Iterator[Shape]:
    """The shape itself, with each subset of its sides set to one, and with leading sides dropped."""
    for keep in itertools.product((True, False), repeat=len(shape)):
        reduced = tuple(side if kept else 1 for side, kept in zip(shape, keep, strict=True))
        for start in range(len(shape) + 1):
            yield reduced[start:]


def _joined(shapes: Shapes) -> Shape | None:
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    sides = [{side for side in column if side != 1} for column in zip(*padded, strict=True)]
    if any(len(side) > 1 for side in sides):
        return None
    return tuple(side.pop() if side else 1 for side in sides)


def _named(dims: str) -> Iterable[str]:
    return (name for token in dims.split() for name in re.findall(r"[a-z_]+", token) if token[0] not in "*~")


def _resolve(dims: str, sizes: Mapping[str, int | Shape]) -> Shape:
    """The shape that a text of dims means, given the sizes of its names."""
    shape: list[int] = []
    for token in dims.split():
        value = sizes.get(token)
        if isinstance(value, tuple):
            shape.extend(value)
        elif value is not None:
            shape.append(value)
        else:
            shape.append(sum(sign * _term(text, sizes) for sign, text in _terms(token)))
    return tuple(shape)


@lru_cache
def _terms(token: str) -> tuple[tuple[int, str], ...]:
    """The products that a sum consists of, each with its sign."""
    terms = re.findall(r"([+-]?)\s*([\w*]+)", token)
    return tuple((-1 if sign == "-" else 1, text) for sign, text in terms)


def _term(text: str, sizes: Mapping[str, int | Shape]) -> int:
    """The value of a product of names and numbers."""
    factors = [sizes[name] if name in sizes else int(name) for name in text.split("*")]
    return math.prod(factor for factor in factors if isinstance(factor, int))


@lru_cache
def shape_tuples(function: Function, usual: tuple[int, ...] = SIDES) -> tuple[Shapes, ...]:
    """Every combination of shapes that the tensor arguments of a Function may have, the simplest first.

    Dimensions that are not limited have the ``usual`` lengths.
    """
    dims = [argument.dims for argument in function.arrays]
    broadcast = [text for text in dims if text.startswith("~")]
    if broadcast:
        if len(set(dims)) > 1:
            raise ValueError(f"{function.name}: if an argument broadcasts, all do, under one name; not {dims}")
        return broadcastable_pairs(len(broadcast))
    return _assigned(function, usual)


def _assigned(function: Function, usual: tuple[int, ...]) -> tuple[Shapes, ...]:
    """The shapes for every assignment of lengths to the named dimensions, the simplest first."""
    dims = tuple(argument.dims for argument in function.arrays)
    return _assignments(dims, tuple(function.sizes.items()), tuple(function.shapes.items()), usual)


# Many Functions have the same dimensions.
@lru_cache
def _assignments(
    dims: tuple[str, ...],
    sizes: tuple[tuple[str, tuple[int, ...]], ...],
    shapes: tuple[tuple[str, tuple[Shape, ...]], ...],
    usual: tuple[int, ...],
) -> tuple[Shapes, ...]:
    lengths, ranks = dict(sizes), dict(shapes)
    names = dict.fromkeys(name for text in dims for name in _named(text))
    free = dict.fromkeys(token for text in dims for token in text.split() if token.startswith("*"))
    shaped = [ranks.get(t) or any_shapes(*lengths.get(t, (0, MAX_RANK))) for t in free]
    axes: list[Sequence[int | Shape]] = [*(lengths.get(name, usual) for name in names), *shaped]
    while math.prod(map(len, axes)) > MAX_ASSIGNMENTS and len(usual) > 2:
        usual = usual[:-1]
        axes = [*(lengths.get(name, usual) for name in names), *shaped]
    assignments = (dict(zip((*names, *free), choice, strict=True)) for choice in itertools.product(*axes))
    found = {tuple(_resolve(text, assigned) for text in dims) for assigned in assignments}
    possible = [each for each in found if all(side >= 0 for shape in each for side in shape)]
    # Where every tensor with elements is large, as float[n,768], the smaller ones are admitted.
    smallest = min((_largest(each) for each in possible if all(map(math.prod, each))), default=0)
    most = 2 * smallest if MAX_ELEMENTS < smallest <= MAX_FIXED else MAX_ELEMENTS
    return tuple(sorted((each for each in possible if _largest(each) <= most), key=_simplicity))


def _largest(shapes: Shapes) -> int:
    """The elements of the largest tensor."""
    return max(map(math.prod, shapes), default=1)


def _admitted(function: Function, shapes: Shapes) -> bool:
    """Whether each tensor whose shapes are listed has one of these."""
    rows = zip(function.arrays, shapes, strict=True)
    return all(shape in function.shapes.get(argument.dims, (shape,)) for argument, shape in rows)


# Lengths between the usual ones, at which a failure may begin, and the most combinations of them to try.
_ASSIGNMENTS = 2000
_BETWEEN = (1, 2, 3, 4, 5, 6, 8, 9, 12, 16, 17)


@lru_cache
def smaller_shape_tuples(function: Function, shapes: Shapes) -> tuple[Shapes, ...]:
    """The shapes of the Function with elements that are simpler than these, also in unusual lengths."""
    if any(argument.dims.startswith("~") for argument in function.arrays):
        found = shape_tuples(function)
    else:
        found = _assigned(function, _sides_up_to(max(map(max, filter(None, shapes)), default=0), function))
    whole = (each for each in found if all(0 not in shape for shape in each))
    return tuple(each for each in whole if _simplicity(each) < _simplicity(shapes))


def _sides_up_to(largest: int, function: Function) -> tuple[int, ...]:
    """Lengths to try for each named dimension: the fewer, the more names there are."""
    names = {name for argument in function.arrays for name in _named(argument.dims)}
    for among in (_BETWEEN, SIDES, (1, 2, largest)):
        sides = tuple(side for side in among if 0 < side <= largest)
        if len(sides) ** len(names) <= _ASSIGNMENTS:
            return sides
    return (1, largest)


def _sizes_of(function: Function, shapes: Shapes) -> dict[str, int | Shape] | None:
    """The lengths of the named dimensions behind these shapes, and the shapes of the free ones; None if unknown."""
    sizes: dict[str, int | Shape] = {}
    for argument, shape in zip(function.arrays, shapes, strict=True):
        tokens, place = argument.dims.split(), 0
        for token in tokens:
            is_free = token[0] in "*~"
            end = place + (len(shape) - len(tokens) + 1 if is_free else 1)
            if is_free:
                sizes[token] = shape[place:end]
            elif re.fullmatch("[a-z_]+", token):
                sizes[token] = shape[place]
            place = end
    unknown = [name for name in dict.fromkeys(n for a in function.arrays for n in _named(a.dims)) if name not in sizes]
    longest = max(map(max, filter(None, shapes)), default=0)
    if longest ** len(unknown) > _ASSIGNMENTS:
        return None
    for lengths in itertools.product(range(1, longest + 1), repeat=len(unknown)):
        found = {**sizes, **dict(zip(unknown, lengths, strict=True))}
        if tuple(_resolve(argument.dims, found) for argument in function.arrays) == shapes:
            return found
    return None


def steps(function: Function, shapes: Shapes) -> tuple[Shapes, ...]:
    """The shapes in which one dimension is a step shorter or longer than in these, the shorter ones first.

    A step is one, or as far as the declared length next to it.
    """
    if any(argument.dims.startswith("~") for argument in function.arrays):
        found = [_stepped(shapes, place, by) for by in (-1, 1) for place in range(1, max(map(len, shapes)) + 1)]
        return tuple(dict.fromkeys(each for each in found if each != shapes))
    sizes = _sizes_of(function, shapes) or {}
    changed: list[dict[str, int | Shape]] = []
    for by in (-1, 1):
        for name, size in sizes.items():
            if isinstance(size, tuple):
                sides = (tuple(side + by * (n == d) for n, side in enumerate(size)) for d in range(len(size)))
                changed += [{**sizes, name: side} for side in sides]
            else:
                changed += [{**sizes, name: length} for length in _next_length(function, name, size, by)]
    each = (tuple(_resolve(argument.dims, found) for argument in function.arrays) for found in changed)
    possible = (found for found in each if all(side >= 0 for shape in found for side in shape))
    return tuple(dict.fromkeys(found for found in possible if _admitted(function, found)))


# The longest length that `along` lists.
_LISTED = 9


def along(function: Function, shapes: Shapes, others: Shapes) -> dict[int, Shapes]:
    """The shapes with each short length of the one dimension in which two differ, by this length."""
    places = _differing(shapes, others)
    number, dimension = min(places)
    found, pending = {}, [shapes, others]
    while pending:
        each = pending.pop()
        length = each[number][dimension]
        if length not in found and 0 < length <= _LISTED:
            found[length] = each
            pending += [other for other in steps(function, each) if _differing(other, each) == places]
    return dict(sorted(found.items()))


def _differing(shapes: Shapes, others: Shapes) -> frozenset[tuple[int, int]]:
    """The dimensions in which two shapes of the same ranks differ: the number of each tensor, and of its dimension."""
    rows = zip(shapes, others, strict=True)
    return frozenset(
        (n, d) for n, (a, b) in enumerate(rows) for d, (x, y) in enumerate(zip(a, b, strict=False)) if x != y
    )


def _next_length(function: Function, name: str, length: int, by: int) -> tuple[int, ...]:
    declared = function.sizes.get(name, NOT_EMPTY)
    if declared == NOT_EMPTY:
        return (length + by,)
    return tuple(sorted((n for n in declared if (n - length) * by > 0), key=lambda n: abs(n - length))[:1])


def _stepped(shapes: Shapes, place: int, by: int) -> Shapes:
    """Shapes that broadcast together, with the longest sides at this place from the end changed."""
    longest = max(shape[-place] for shape in shapes if len(shape) >= place)
    alike = ((len(s) >= place and s[-place] == longest, s) for s in shapes)
    return tuple(tuple(side + by * (has and n == len(s) - place) for n, side in enumerate(s)) for has, s in alike)


def equal_sides(function: Function, shapes: Shapes, length: int, more: int = 0) -> Shapes | None:
    """The shapes with every dimension of this length, and so many more of the free ones; None if there are none."""
    if any(argument.dims.startswith("~") for argument in function.arrays):
        ranks = [len(shape) + more for shape in shapes]
        return tuple((length,) * rank for rank in ranks) if min(ranks) > 0 or not more else None
    sizes = _sizes_of(function, shapes)
    if sizes is None:
        return None
    changed: dict[str, int | Shape] = {}
    for name, size in sizes.items():
        if isinstance(size, tuple):
            least, most = function.sizes.get(name, (0, MAX_RANK))
            rank = len(size) + more
            if more and not max(least, 1) <= rank <= most:
                return None
            changed[name] = (length,) * rank
        elif function.sizes.get(name, NOT_EMPTY) != NOT_EMPTY and length not in function.sizes[name]:
            return None
        else:
            changed[name] = length
    found = tuple(_resolve(argument.dims, changed) for argument in function.arrays)
    if not _admitted(function, found):
        return None
    return found if not more or found != equal_sides(function, shapes, length) else None


def long_shape(function: Function, length: int) -> Shape | None:
    """The shape of the only tensor with so many entries along one dimension; None if all its lengths are limited."""
    (argument,) = function.arrays
    if function.shapes:
        return None
    names = dict.fromkeys(_named(argument.dims))
    sizes: dict[str, int | Shape] = {name: _least(function.sizes.get(name, SIDES)) for name in names}
    starred = [token for token in argument.dims.split() if token[0] in "*~"]
    sizes.update({token: (1,) * function.sizes.get(token, (0,))[0] for token in starred})
    for name in (*names, *starred):
        if name in names and name not in function.sizes:
            return _resolve(argument.dims, {**sizes, name: length})
        if name in starred and function.sizes.get(name, (0, MAX_RANK))[1]:
            ones = (1,) * (function.sizes.get(name, (0,))[0] - 1)
            return _resolve(argument.dims, {**sizes, name: (length, *ones)})
    return None


# Lengths around the blocks of kernels, small, middle and large, a tensor of many sides, and the most elements of one.
BLOCKS = ((255, 256, 257), (1023, 1024, 1025), (65535, 65536, 65537, 2**20))
_MANY_SIDES = (15, 16, 17, 16)
_MOST_ELEMENTS = 2**20


@lru_cache
def block_shape_tuples(function: Function, lengths: tuple[int, ...]) -> tuple[Shapes, ...]:
    """Shapes with one dimension of these lengths, and the others short, the simplest first.

    If a tensor may have any shape, one has many sides. Empty if all lengths are limited.
    """
    dims = [argument.dims for argument in function.arrays]
    tokens = dict.fromkeys(token for text in dims for token in text.split() if token[0] in "*~")
    names = dict.fromkeys(name for text in dims for name in _named(text))
    free = [name for name in names if function.sizes.get(name, NOT_EMPTY) == NOT_EMPTY]
    short: dict[str, int | Shape] = {name: 2 if name in free else _least(function.sizes[name]) for name in names}
    short.update({token: (2,) * function.sizes.get(token, (0,))[0] for token in tokens})
    found = set()
    for length in lengths:
        longer: list[dict[str, int | Shape]] = [{name: length} for name in free]
        for token in tokens:
            least, most = function.sizes.get(token, (0, MAX_RANK))
            ways = ((length,), (2, length), (length, 2), *([_MANY_SIDES] if length > math.prod(_MANY_SIDES) else []))
            longer += [{token: shape} for shape in ways if least <= len(shape) <= most]
        found |= {tuple(_resolve(text, {**short, **sizes}) for text in dims) for sizes in longer}
    possible = (s for s in found if all(side >= 0 for shape in s for side in shape) and _admitted(function, s))
    return tuple(sorted((shapes for shapes in possible if all(map(_is_narrow, shapes))), key=_simplicity))


def _is_narrow(shape: Shape) -> bool:
    """Whether a tensor has few elements for its length: what is done with a long square matrix takes too long."""
    sides = sorted(shape)[-2:]
    return math.prod(shape) <= _MOST_ELEMENTS and (len(sides) < 2 or sides[0] <= BLOCKS[0][-1])


def _least(sides: Iterable[int]) -> int:
    return min((side for side in sides if side), default=0)


@lru_cache
def strata(among: tuple[Shapes, ...]) -> tuple[tuple[Shapes, ...], ...]:
    """The shapes in groups, each of which is drawn equally often, the simplest first.

    There is a group for each highest rank, and one each for a long side, for many elements, and for no elements.
    """
    groups: dict[tuple[int, int], list[Shapes]] = {}
    for found in among:
        kinds = (
            max(map(max, filter(None, found)), default=0) > 16,
            max(map(math.prod, found)) > 256,
            any(0 in shape for shape in found),
        )
        kind = max(n * holds for n, holds in enumerate(kinds, 1))
        groups.setdefault((kind, 0 if kind else max(map(len, found))), []).append(found)
    return tuple(tuple(groups[key]) for key in sorted(groups))


# One call of so many has a tensor without elements where these are seldom.
_SELDOM = 12


@lru_cache
def mostly_full(groups: tuple[tuple[Shapes, ...], ...]) -> tuple[tuple[Shapes, ...], ...]:
    """The groups so often that, if each is drawn equally often, few calls have a tensor without elements."""
    empty = tuple(group for group in groups if any(0 in shape for shape in group[0]))
    full = tuple(group for group in groups if group not in empty)
    return full * (_SELDOM - 1) + empty * len(full) if full and empty else groups


@lru_cache
def few_shape_tuples(function: Function, per_rank: int) -> tuple[Shapes, ...]:
    """At most ``per_rank`` of the Function's shapes from each group of `strata`, evenly spread, the simplest first."""
    return tuple(
        shapes
        for group in strata(shape_tuples(function))
        for shapes in group[:: max(1, math.ceil(len(group) / per_rank))]
    )


def degenerate(shapes: Shapes) -> bool:
    """Whether a tensor has no elements or no dimensions."""
    return () in shapes or any(0 in shape for shape in shapes)


def twins(function: Function, shapes: Shapes) -> tuple[tuple[int, int], ...]:
    """Pairs of differentiable tensor arguments (by position among the tensors) that have the same shape and domain."""
    arrays = function.arrays
    found = [n for n, argument in enumerate(arrays) if n < len(shapes) and argument.differentiable]
    pairs = itertools.combinations(found, 2)
    alike = [(arrays[n].values, arrays[n].real, arrays[n].make) for n in range(len(arrays))]
    return tuple((a, b) for a, b in pairs if shapes[a] == shapes[b] and alike[a] == alike[b])


def small_sums(tuples: tuple[Shapes, ...]) -> tuple[Shapes, ...]:
    """The shapes with short dimensions and not few elements, so that no sum inside is long; all that come near."""
    short = [shapes for shapes in tuples if all(0 < side <= 5 for shape in shapes for side in shape)]
    many = [shapes for shapes in short if 4 <= max(map(math.prod, shapes), default=0) <= 64]
    return tuple(many or short)
