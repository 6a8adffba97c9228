"""Drafts from the calls that a program made: equal lengths share a name, what never varied is said to be a guess."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from autograd_conformance.harness.drafting.drafts import NAMES, Draft, Import, Part
from autograd_conformance.harness.drafting.observed import Argument, Kind, Observed

# So many different values of an argument are a choice, and more of them a range.
_MOST_CHOICES = 8
# So many lengths of a dimension are enough to limit it to.
_MOST_SIZES = 8
# The longest range of integers that a declaration can have.
_LONGEST_RANGE = 1000
# The kinds of tensors, as declarations call them, by dtype.
_KINDS = {
    **dict.fromkeys(("float64", "float32", "float16", "bfloat16"), "float"),
    **dict.fromkeys(("complex128", "complex64"), "complex"),
    **dict.fromkeys(("int64", "int32", "int16", "int8", "uint8"), "int"),
    "bool": "bool",
}
# In so many shapes a length that never varies is no accident.
_MANY = 4
_ANY = ("...",)
# The most drafts of one Function: that many kinds of arguments are told apart.
_MOST_DRAFTS = 3
# Positive numbers that are drawn are hardly less or more than these.
_POSITIVE = (0.125, 4.0)
# Of matrices that were always symmetric, a gradient may be right for such only.
_MATRICES = {"definite": " spd", "symmetric": " symmetric", "lower": " lower", "upper": " upper"}


def drafts(found: Observed) -> list[Draft]:
    """The declarations that the calls of a Function suggest, the most frequent kind of call first."""
    groups: list[list[Kind]] = []
    for kind in sorted(found.kinds, key=lambda kind: -kind.count):
        fitting = next((group for group in groups if all(_alike(kind, other) for other in group)), None)
        groups.append([kind]) if fitting is None else fitting.append(kind)
    groups.sort(key=lambda group: -sum(kind.count for kind in group))
    return [_draft(found, group) for group in groups[:_MOST_DRAFTS]]


def _alike(one: Kind, other: Kind) -> bool:
    """Whether one declaration can describe both: the same sorts of arguments, perhaps None, and tensors of one rank."""
    if len(one.args) != len(other.args) or one.kwargs.keys() != other.kwargs.keys():
        return False
    pairs = [*zip(one.args, other.args, strict=True), *((one.kwargs[n], other.kwargs[n]) for n in one.kwargs)]
    if one.inplace != other.inplace:
        return False
    same = all(a.is_none or b.is_none or _sort(a) == _sort(b) for a, b in pairs)
    tensors = [(a, b) for a, b in pairs if a.dtype and b.dtype]
    return same and (all(len(a.shape) == len(b.shape) for a, b in tensors) or (_one_shape(one) and _one_shape(other)))


def _sort(argument: Argument) -> str:
    """What sort of argument it is: the kind of a tensor, the type of a number, and so on."""
    if argument.dtype:
        return f"tensor of {_kind(argument.dtype)}"
    if "value" in argument.seen:
        return type(argument.seen["value"]).__name__
    return next(iter(argument.seen))


def _kind(dtype: str) -> str:
    """The kind of a tensor with this dtype; empty if declarations have none."""
    return _KINDS.get(dtype, "")


def _one_shape(kind: Kind) -> bool:
    """Whether all tensors of a call have one shape."""
    return len({x.shape for x in kind.args if x.dtype}) == 1


def _draft(found: Observed, kinds: Sequence[Kind]) -> Draft:
    slots = [[kind.args[n] for kind in kinds] for n in range(len(kinds[0].args))]
    names = _parameters(found, len(slots))
    ranks = {len(x.shape) for kind in kinds for x in kind.args if x.dtype}
    sides: dict[str, tuple[int, ...]] = {}
    if len(ranks) > 1 and all(map(_one_shape, kinds)):
        dims = _any_shape(slots)
    else:
        dims, sides = _dimensions(slots)
    lengths = {name: seen[0] for name, seen in sides.items() if len(seen) == 1}
    varied = {name: seen[:: -(-len(seen) // _MOST_SIZES)] for name, seen in sides.items() if len(seen) > 1}
    parts = [_part(name, slot, dims[n], slots, dims) for n, (name, slot) in enumerate(zip(names, slots, strict=True))]
    if kinds[0].kwargs:
        words = ", ".join(kinds[0].kwargs)
        missing = f"it is called with keyword arguments ({words}); declare a function that passes them"
        parts = [replace(part, missing=part.missing or missing) for part in parts]
    inplace = sorted({n for kind in kinds for n in kind.inplace})
    last = _last(kinds) if _ANY in dims else 0
    calls = sum(kind.count for kind in kinds)
    random = any(kind.random for kind in kinds)
    return Draft(tuple(parts), lengths, varied, {}, tuple(inplace), calls, len(kinds), last=last, stochastic=random)


def _last(kinds: Sequence[Kind]) -> int:
    """The length of the last dimension, if that is the same in many shapes; otherwise 0."""
    shapes = {x.shape for kind in kinds for x in kind.args if x.dtype}
    lengths = {shape[-1:] for shape in shapes}
    return sum(lengths.pop()) if len(lengths) == 1 and len(shapes) >= _MANY else 0


def _any_shape(slots: Sequence[Sequence[Argument]]) -> list[tuple[str, ...]]:
    return [_ANY if any(x.dtype for x in slot) else () for slot in slots]


def _parameters(found: Observed, count: int) -> list[str]:
    """The names of the arguments, as forward has them."""
    named = found.parameters
    return [named[n] if n < len(named) else f"argument{n}" for n in range(count)]


def _dimensions(slots: Sequence[Sequence[Argument]]) -> tuple[list[tuple[str, ...]], dict[str, tuple[int, ...]]]:
    """The dimensions of each argument, and the different lengths of those that have a name of their own.

    Those that had the same length in every call have one name, and those that are always a multiple or a sum of others
    are written so.
    """
    columns: dict[tuple[int, int], tuple[int | None, ...]] = {}
    for n, slot in enumerate(slots):
        rank = max((len(x.shape) for x in slot), default=0)
        for axis in range(rank):
            columns[n, axis] = tuple(x.shape[axis] if x.dtype else None for x in slot)
    named: dict[tuple[int | None, ...], str] = {}
    lengths: dict[str, tuple[int, ...]] = {}
    for column in columns.values():
        known = {side for side in column if side is not None}
        if column in named or known == {1}:
            continue
        same = next((name for other, name in named.items() if _agree(column, other)), "")
        composed = same or (len(known) > 2 and _composed(column, named)) or ""
        named[column] = composed or NAMES[len(set(named.values())) % len(NAMES)]
        if not composed:
            lengths[named[column]] = tuple(sorted(known.union(lengths.get(named[column], ()))))
    dims: list[tuple[str, ...]] = []
    for n, slot in enumerate(slots):
        rank = max((len(x.shape) for x in slot), default=0)
        dims.append(tuple(named.get(columns[n, axis], "1") for axis in range(rank)))
    return dims, lengths


def _agree(one: Sequence[int | None], other: Sequence[int | None]) -> bool:
    """Whether two columns of lengths are the same where both are known, which they are somewhere."""
    both = [(a, b) for a, b in zip(one, other, strict=True) if a is not None and b is not None]
    return bool(both) and all(a == b for a, b in both)


def _composed(column: Sequence[int | None], named: Mapping[tuple[int | None, ...], str]) -> str:
    """A column of lengths as a multiple, a sum or a product of others; empty if it is none."""
    simple = {name: other for other, name in named.items() if name.isalpha() and len(set(other)) > 1}
    tries: list[tuple[str, Callable[..., int], tuple[str, ...]]] = []
    for name in simple:
        tries += [(f"{k}*{name}", lambda a, k=k: k * a, (name,)) for k in range(2, 9)]
        tries += [(f"{name}{k:+d}", lambda a, k=k: a + k, (name,)) for k in (1, -1, 2, -2, 3, -3)]
        tries += [(f"{name}+{o}", lambda a, b: a + b, (name, o)) for o in simple if o > name]
        tries += [(f"{name}*{o}", lambda a, b: a * b, (name, o)) for o in simple if o > name]
    for text, value, names in tries:
        rows = list(zip(column, *(simple[name] for name in names), strict=True))
        if all(None not in row and row[0] == value(*row[1:]) for row in rows):
            return text
    return ""


def _part(
    name: str, slot: Sequence[Argument], dims: tuple[str, ...], slots: Sequence[Sequence[Argument]],
    all_dims: Sequence[tuple[str, ...]],
) -> Part:  # fmt: skip
    given = [x for x in slot if not x.is_none]
    optional = len(given) < len(slot)
    if given and given[0].dtype:
        part = _tensor(name, slot, dims, "?" * optional, slots, all_dims)
        return replace(part, classes=_classes(given))
    if all("value" in x.seen for x in given):
        return _values(name, [x.seen["value"] for x in slot])
    return _object(name, slot)


def _tensor(
    name: str, slot: Sequence[Argument], dims: tuple[str, ...], optional: str, slots: Sequence[Sequence[Argument]],
    all_dims: Sequence[tuple[str, ...]],
) -> Part:  # fmt: skip
    given = [x for x in slot if x.dtype]
    kind, dtypes = _kind(given[0].dtype), sorted({x.dtype for x in given})
    tracked = {x.seen["grad"] for x in given}
    grad = {True: "requires grad", False: "never requires grad"}[tracked != {False}] if len(tracked) == 1 else (
        "requires grad at times"
    )  # fmt: skip
    layouts = sorted({str(x.seen["layout"]) for x in given} - {"contiguous"})
    devices = sorted({str(x.seen["device"]) for x in given} - {"cpu"})
    notes = [", ".join(dtypes), grad] if kind in ("float", "complex") else [", ".join(dtypes)]
    special = [f"of the class {name}" for name in _classes(given)]
    seen = ", ".join([*notes, *special, *layouts, *(f"on {device}" for device in devices)])
    if any(layout.startswith("sparse") for layout in layouts):
        return Part(name, kind, dims, (f"{optional} sparse",), seen=seen, untracked=tracked == {False})
    if not kind:
        return Part(name, seen=seen, missing=f"{name} is a tensor of {dtypes[0]}, which no declaration has")
    if kind == "int":
        tails = tuple(f"{tail}{optional}" for tail in _bounds(slot, dims, slots, all_dims))
        return Part(name, kind, dims, tails, seen=seen)
    if kind == "bool":
        return Part(name, kind, dims, (optional,), seen=seen)
    ranges = [x.ranges for x in given if x.ranges is not None]
    untracked = tracked == {False}
    if untracked and ranges and all("binary" in each for each in ranges):
        return Part(name, kind, dims, (f"{optional} binary",), seen=f"{seen}, 0 or 1")
    matrix = next((_MATRICES[w] for w in _MATRICES if ranges and all(w in each for each in ranges)), "")
    if matrix and dims[-2:-1] == dims[-1:]:
        tails, seen = (f"{optional}{matrix}",), f"{seen}, always{matrix}: a guess"
        return Part(name, kind, dims, tails, seen=seen, untracked=untracked)
    tails = tuple(f"{tail}{optional}" if "(" in tail else f"{optional}{tail}" for tail in _range(given))
    return Part(name, kind, dims, tails, seen=seen, untracked=untracked)


def _range(given: Sequence[Argument]) -> tuple[str, ...]:
    """The ranges that numbers may have: what was seen, rounded, or any if these were of both signs and above 1."""
    low = min((x.least for x in given if x.least is not None), default=0.0)
    high = max((x.most for x in given if x.most is not None), default=0.0)
    if low == high:
        low, high = sorted((low / 2, low * 2))
    literal = f"({_outwards(low, math.floor)}..{_outwards(high, math.ceil)})"
    if low == high:
        return ("",)
    if low < 0 < high and max(-low, high) > 1:
        return "", literal
    return (" positive", literal) if 0 < low <= _POSITIVE[0] and high >= _POSITIVE[1] else (literal,)


def _outwards(number: float, whole: Callable[[float], int]) -> str:
    """A number with one digit, rounded by this."""
    digits = -math.floor(math.log10(abs(number))) if number else 0
    return f"{round(whole(round(number * 10.0**digits, 6)) / 10.0**digits, max(digits, 0)):g}"


def _classes(given: Sequence[Argument]) -> tuple[str, ...]:
    """The classes of the program's own that tensors had."""
    return tuple(sorted({str(x.seen["class"]) for x in given if "class" in x.seen}))


def _bounds(
    given: Sequence[Argument], own: Sequence[str], slots: Sequence[Sequence[Argument]], dims: Sequence[tuple[str, ...]]
) -> tuple[str, ...]:
    """The ranges that integers may have: what was seen, and up to the length of a dimension that was always larger.

    The dimension comes first if they run through most of it. One that the integers have themselves, as a batch is, has
    to have been run through in several lengths.
    """
    looked = [_without_mark(x, slots, n) for n, x in enumerate(given)]
    least = int(min((x.least for x in looked if x.least is not None), default=0))
    most = int(max((x.most for x in looked if x.most is not None), default=3))
    marks = "".join(f" | {mark}" for mark in sorted({mark for x in looked for mark in x.apart}))
    literal = f"({least}..{min(most, least + _LONGEST_RANGE)}{marks})"
    if least < 0:
        return (literal,)
    gaps: dict[str, tuple[float, bool]] = {}
    for slot, names in zip(slots, dims, strict=True):
        for axis, name in enumerate(names):
            rows = [
                (x.most, y.shape[axis]) for x, y in zip(looked, slot, strict=True) if y.dtype and x.most is not None
            ]
            floating = any(_kind(y.dtype) == "float" for y in slot)
            if name.isalpha() and rows and floating and all(top < side for top, side in rows):
                full = all(top == side - 1 for top, side in rows)
                if name not in own or (full and len({side for _, side in rows}) > 1):
                    through = full or (most > 1 and all(2 * (top + 1) > side for top, side in rows))
                    gaps.setdefault(name, (min(side - top for top, side in rows), through))
    nearest = sorted(gaps, key=lambda name: gaps[name][0])
    ends = [f"(0..{name}-1{marks})" for name in nearest if gaps[name][1]]
    return (*ends, literal, *(f"(0..{name}-1{marks})" for name in nearest if not gaps[name][1]))


def _without_mark(argument: Argument, slots: Sequence[Sequence[Argument]], call: int) -> Argument:
    """Integers without the largest one, if that is far above the others and an argument of its own."""
    numbers = [slot[call].seen.get("value") for slot in slots]
    if argument.below is None or argument.most is None:
        return argument
    if argument.most not in numbers or argument.most - argument.below < 2:
        return argument
    return replace(argument, most=argument.below, apart=argument.apart | {int(argument.most)})


def _values(name: str, values: Sequence[object]) -> Part:
    """An argument that is a plain value."""
    different = list(dict.fromkeys(values)) if len({type(v) for v in values}) == 1 else _unique(values)
    numbers = [v for v in different if isinstance(v, int | float) and not isinstance(v, bool)]
    seen = f"{len(different)} values" if len(different) > 1 else "never varied"
    if len(different) <= _MOST_CHOICES or len(numbers) < len(different):
        return Part(name, text=" | ".join(map(repr, different[:_MOST_CHOICES])), seen=seen)
    low, high = min(numbers), max(numbers)
    if all(isinstance(v, int) for v in numbers) and high - low <= _LONGEST_RANGE:
        return Part(name, text=f"int({low}..{high})", seen=seen)
    if all(isinstance(v, float) for v in numbers):
        return Part(name, text=f"float({low}..{high})", seen=seen)
    return Part(name, text=" | ".join(map(repr, different[:_MOST_CHOICES])), seen=seen)


def _unique(values: Iterable[object]) -> list[object]:
    """The different values; 1, 1.0 and True are different."""
    return list({(type(value), value): value for value in values}.values())


def _object(name: str, slot: Sequence[Argument]) -> Part:
    """An argument that is neither a tensor nor a plain value: what makes it again, or why nothing does."""
    described = [x.seen for x in slot if not x.is_none]
    first = described[0]
    seen = "never varied" if all(each == first for each in described) else f"the first of {len(described)}"
    value = _plain(first)
    if value is not None:
        return Part(name, text=value, seen=seen)
    if "expression" in first:
        imports = tuple(Import(*each) for each in first["imports"])
        made = f"Factory(lambda seed: {first['expression']})" if first["made"] else str(first["expression"])
        return Part(name, expression=made, imports=imports, seen="as in the first call" if first["made"] else seen)
    what = str(first.get("object", next(iter(first))))
    article = "holds tensors" if what in ("tuple", "list") else f"is a {what}"
    return Part(name, missing=f"{name} {article}; write Factory(lambda seed: ...) for it", seen=seen)


def _plain(seen: Mapping[str, object]) -> str | None:
    """The text of a plain value, or of a tuple or list of these; None for anything else."""
    if "value" in seen:
        return repr(seen["value"])
    for kind, brackets in (("tuple", "()"), ("list", "[]")):
        if kind in seen:
            inner = [_plain(each) for each in seen[kind]]  # type: ignore[attr-defined]
            if any(each is None for each in inner):
                return None
            comma = "," * (kind == "tuple" and len(inner) == 1)
            return f"{brackets[0]}{', '.join(map(str, inner))}{comma}{brackets[1]}"
    return None
