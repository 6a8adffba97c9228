"""Arguments described by short texts: ``float[n,m]``, ``int(0..3)``, ``'mean' | 'sum'``.

A tensor is a kind, its dimensions in brackets, and words that narrow its values: ``float[n,m] positive``. Dimensions
are names (the same length wherever a name occurs), lengths, sums and products such as ``h+p-1`` and ``2*n``, ``...``
(any shape, the same wherever it occurs) and ``~`` (any shape that broadcasts with the others). Any other text is not a
tensor. A number with a name, ``n=int(1..4)``, is the length that has this name, and may be in the bounds of a range.
"""

from __future__ import annotations

import ast
import keyword
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from autograd_conformance.reference.definitions import COMPLEX, FLOATING, REAL, Array, Shape, Shapes, Static
from autograd_conformance.reference.rounding import PRECISION
from autograd_conformance.strategies import drawn
from autograd_conformance.strategies.shapes import MAX_RANK, NOT_EMPTY

# The dtypes of each floating kind of tensor.
KINDS = {"float": REAL, "complex": COMPLEX, "number": FLOATING}
INTEGERS = ("int", "bool", "permutation")
DOMAINS = {
    "positive": "positive",
    "nonzero": "nonzero",
    "unit": "unit",
    "separated": "distinct",
    "sorted": "sorted",
    "ball": "ball",
    "spd": "definite",
    "symmetric": "symmetric",
    "full_rank": "full",
    "lower": "lower",
    "upper": "upper",
    "binary": "binary",
}
WORDS = {
    "positive": "at least 1/8",
    "nonzero": "at least 1/8 away from 0",
    "unit": "between 0 and 1",
    "separated": "all different, at least 1/4 apart",
    "sorted": "increasing along the last dimension",
    "ball": "vectors along the last dimension shorter than 1",
    "spd": "symmetric (Hermitian) positive definite matrices",
    "symmetric": "symmetric (Hermitian) matrices",
    "full_rank": "matrices of full rank, square or not",
    "lower": "lower triangular matrices",
    "upper": "upper triangular matrices",
    "binary": "0 or 1 only, as in a float mask; has no gradient",
    "constant": "has no gradient, intentionally",
    "sparse": "given as a sparse tensor",
    "optional": "None is passed as well; also written float[n]?",
}
FORMS = (
    "float[n,m], complex[n], number[...], each with words such as positive; float[n](1.5..2)",
    "int[n](0..9), int[b](0..n-1), int[b](0..n-1 | -100), bool[n], permutation[n]",
    "int(0..3), float(0..1), bool, 'mean' | 'sum', 0.5 | None",
    "n=int(1..4): a number that is the length n of a tensor, or in a range such as int[b](0..n-1)",
    "axis: any dimension of the first tensor, from either end; axis(0 | -1)",
)

_TENSOR = re.compile(
    r"(?P<kind>[a-z]+)\[(?P<dims>[^\]]*)\]\s*(?:\((?P<low>[^)]+?)\.\.(?P<high>[^)]+)\))?\s*(?P<none>\??)(?P<words>[\s\w-]*)"
)
_SQUARE = ("definite", "symmetric", "lower", "upper")
_AXIS = re.compile(r"axis\s*(?:\((?P<choices>.*)\))?")
_RANGE = re.compile(r"(int|float)\s*\(\s*(-?[\d.eE+-]*?\d)\s*\.\.\s*(-?[\d.eE+-]+)\s*\)")
_NAME = re.compile(r"[A-Za-z_]\w*")
_NAMED = re.compile(rf"(?P<name>{_NAME.pattern})\s*=\s*(?P<number>int\s*\(.*\))")
_BRACKETS = {"(": ")", "[": "]"}


class Unreadable(ValueError):
    """Raised for a text that does not describe an argument; says what is wrong and what may be written."""


@dataclass
class Arguments:
    """The arguments of a Function, read one after the other. They share their named dimensions.

    ``kinds`` are the kinds of the floating tensors, ``sizes`` the possible lengths of dimensions, by name. ``names``
    has the names of dimensions in `Array.dims`, by those in the texts. ``shapes`` has those that strategies draw, by
    dims, and ``largest`` is the largest number that they draw.
    """

    found: list[Array | Static] = field(default_factory=list)
    kinds: set[str] = field(default_factory=set)
    sizes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    shapes: dict[str, tuple[Shape, ...]] = field(default_factory=dict)
    largest: float = 0.0
    _dims: dict[str, str] = field(default_factory=dict)
    _numbers: dict[str, Static] = field(default_factory=dict)
    _bounds: dict[str, str] = field(default_factory=dict)
    _whole: dict[str, str] = field(default_factory=dict)

    def add(self, text: str, name: str) -> None:
        """Read one more argument. Raises Unreadable."""
        match, axis = _TENSOR.fullmatch(text.strip()), _AXIS.fullmatch(text.strip())
        number = _NAMED.fullmatch(text.strip())
        if number is not None:
            self.found.append(self._number(number["name"], number["number"], name))
        elif axis is not None:
            self.found.append(self._axis(axis, text, name))
        else:
            self.found.append(_static(text.strip(), name) if match is None else self._tensor(match, text, name))

    def take(self, argument: Array | Static) -> None:
        """Add an argument that is already an `Array` or a `Static`."""
        self.found.append(argument)
        if isinstance(argument, Array):
            self._dims[argument.name] = argument.dims
            self.kinds.update(() if argument.dtype else ("number",))

    def draw(self, strategy: Any, name: str) -> None:
        """Add an argument that a Hypothesis strategy draws. Raises Unreadable."""
        try:
            found, shapes, largest = drawn.argument(strategy, name, len(self.found))
        except drawn.Undrawable as problem:
            raise Unreadable(str(problem)) from None
        self.found.append(found)
        self.largest = max(self.largest, largest)
        if isinstance(found, Array):
            self._dims[name] = found.dims
            self.kinds.update(() if found.dtype else ("float" if found.real else "complex",))
            self.shapes.update({found.dims: shapes} if shapes else {})

    def size(self, name: str, sides: Sequence[int]) -> None:
        """Restrict a named dimension to these lengths. Raises Unreadable if no tensor has that dimension."""
        if self.names.get(name) in self._numbers:
            raise Unreadable(f"{name!r} is a number; write its values there, as in {name}=int(1..4)")
        if name not in self.names:
            raise Unreadable(f"no tensor has a dimension {name!r}; the dimensions are: {', '.join(self.names) or '-'}")
        try:
            lengths = tuple(int(side) for side in sides)
        except (TypeError, ValueError):
            lengths = ()
        if not lengths or min(lengths) < 0:
            raise Unreadable(f"the sizes of {name!r} must be lengths, such as (1, 2, 3), not {sides!r}")
        self.sizes[self.names[name]] = lengths

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The dtypes of calls. Raises Unreadable if the tensors have none in common."""
        self._verify_numbers()
        self._verify_bounds()
        self._verify_axis()
        # Float tensors stay real where others are complex.
        common = [d for d in FLOATING if all(d in KINDS[kind] for kind in self.kinds - {"float"} or self.kinds)]
        common = [d for d in common if self.largest <= PRECISION[d].largest]
        if not self.kinds:
            raise Unreadable("no argument is a floating tensor, such as float[n]: there is nothing to differentiate")
        return tuple(common)

    def _tensor(self, match: re.Match[str], text: str, name: str) -> Array:
        kind, words = match["kind"], match["words"].split()
        if kind not in (*KINDS, *INTEGERS):
            raise Unreadable(
                f"unknown kind of tensor {kind!r} in {text!r}; choose from: {', '.join((*KINDS, *INTEGERS))}"
            )
        unknown = [word for word in words if word not in WORDS]
        if unknown:
            raise Unreadable(f"unknown word {unknown[0]!r} in {text!r}; choose from: {', '.join(WORDS)}")
        domains = [DOMAINS[word] for word in words if word in DOMAINS]
        if len(domains) > 1 or (domains and kind in INTEGERS):
            raise Unreadable(f"{text!r}: these words cannot be combined: {' '.join(words)}")
        dims = self._read(match["dims"], text)
        self._dims[name] = dims
        optional: tuple[Any, ...] = ("none",) if match["none"] or "optional" in words else ()
        if kind in INTEGERS:
            return Array(name=name, dims=dims, optional=optional, **self._integer(kind, match, dims, text))
        self.kinds.add(kind)
        bounds = self._interval(match, text, domains)
        values: Any = "unit" if bounds else domains[0] if domains else "free"
        if values in _SQUARE and (len(dims.split()) < 2 or len(set(dims.split()[-2:])) > 1):
            raise Unreadable(f"{text!r}: a {words[0]} matrix has two dimensions of one name, as in float[n,n]")
        if values == "full" and (len(dims.split()) < 2 or "*any" in dims.split()[-2:]):
            raise Unreadable(f"{text!r}: a {words[0]} matrix has two dimensions, as in float[n,m]")
        if values == "binary" and kind != "float":
            raise Unreadable(f"{text!r}: a binary tensor is real, as in float[n] binary")
        return Array(
            name=name, dims=dims, values=values, smooth="irregular" if values == "free" else None, optional=optional,
            constant="constant" in words or values == "binary", bounds=bounds, real=kind == "float",
            wrap=_to_sparse if "sparse" in words else None,
        )  # fmt: skip

    def _interval(self, match: re.Match[str], text: str, domains: list[str]) -> tuple[float, float] | None:
        """The bounds of a floating tensor's range, if it has one."""
        if match["low"] is None:
            return None
        try:
            low, high = float(match["low"]), float(match["high"])
        except ValueError:
            raise Unreadable(f"{text!r}: a floating range has numbers as bounds, such as (1.1..1.9)") from None
        if domains or match["kind"] != "float" or not low < high:
            raise Unreadable(f"{text!r}: a range needs a float tensor, no other domain (positive, ...), and low < high")
        return low, high

    def _integer(self, kind: str, match: re.Match[str], dims: str, text: str) -> dict[str, Any]:
        if kind == "bool":
            return {"dtype": "bool", "make": lambda rng, shape, _: rng.integers(0, 2, shape).astype(bool)}
        if kind == "permutation":
            self._whole.update(dict.fromkeys(dims.split()[-1:], text))
            return {"dtype": "int64", "make": lambda rng, shape, _: rng.permuted(_counted(shape), axis=-1)}
        top, *marks = (match["high"] or "3").split("|")
        ends = (match["low"] or "0").strip(), top.strip()
        if all(re.fullmatch(r"-?\d+", end) for end in ends) and int(ends[0]) > int(ends[1]):
            raise Unreadable(f"{text!r}: {ends[0]} is larger than {ends[1]}")
        if not all(re.fullmatch(r"\s*-?\d+\s*", mark) for mark in marks):
            raise Unreadable(f"{text!r}: after a | there are integers, as in int[n](0..9 | -100)")
        low, high = (self._bound(end, text) for end in ends)

        def make(rng: np.random.Generator, shape: tuple[int, ...], named: Mapping[str, Any]) -> Any:
            sides = self._sides(named, dims, shape)
            drawn = rng.integers(low(sides), high(sides) + 1, shape)
            return _marked(rng, drawn, [int(mark) for mark in marks]) if marks else drawn

        return {"dtype": "int64", "make": make}

    def _bound(self, text: str, whole: str) -> Callable[[Mapping[str, int]], int]:
        """A bound of a range: an integer, the name of a dimension, or a sum of these."""
        if re.fullmatch(r"\s*-?\s*\w+(\s*[+*-]\s*\w+)*\s*", text) is None:
            raise Unreadable(f"{whole!r}: {text!r} is not an integer, a dimension, or a sum or product of these")
        signed = re.findall(r"([+-]?)([\w*]+)", text.replace(" ", ""))
        terms = [(s, [n if n.isdigit() else self._canonical(n) for n in term.split("*")]) for s, term in signed]
        self._bounds.update({name: whole for _, names in terms for name in names if not name.isdigit()})

        def value(sides: Mapping[str, int]) -> int:
            products = [math.prod(int(n) if n.isdigit() else sides[n] for n in names) for _, names in terms]
            return sum(-p if sign == "-" else p for (sign, _), p in zip(terms, products, strict=True))

        return value

    def _verify_bounds(self) -> None:
        """Check that each dimension in the bounds of a range belongs to a tensor, and keep it from being empty."""
        names = {name: shown for shown, name in self.names.items()}
        present = {token for dims in self._dims.values() for token in dims.split()}
        summed = {name for token in present if not token.isalpha() for name in re.findall("[a-z]+", token)}
        for name in sorted(summed & names.keys()):
            self.sizes.setdefault(name, NOT_EMPTY)
        for name, text in self._bounds.items():
            if name not in present and name not in self._numbers:
                n, numbers = names[name], [a for a in self.found if isinstance(a, Static) and not a.axis]
                advice = f"; if it is a number among the arguments, name that: {n}=int(1..4)" if numbers else ""
                raise Unreadable(f"{text!r}: no tensor has a dimension {n!r}{advice}")
            self.sizes.setdefault(name, NOT_EMPTY)

    def _number(self, shown: str, text: str, name: str) -> Static:
        """A number that is the length of a dimension, or in the bounds of a range."""
        canonical = self._canonical(shown)
        if canonical in self._numbers:
            raise Unreadable(f"two numbers are called {shown!r}; give one another name")
        usual = _static(text, name)
        if min(usual.choices(())) < 0:
            raise Unreadable(f"'{shown}={text}': a length is at least 0")
        number = replace(usual, choices=lambda shapes: self._length(canonical, shapes) or usual.choices(()))
        self._numbers[canonical] = number
        return number

    def _length(self, name: str, shapes: Shapes) -> tuple[int, ...]:
        """The length of a named dimension in these shapes of the tensors, if one has it."""
        dims = [a.dims for a in self.found if isinstance(a, Array)]
        found = [_lengths(*each) for each in zip(dims, shapes, strict=False)]
        return next(((lengths[name],) for lengths in found if name in lengths), ())

    def _verify_numbers(self) -> None:
        """Give dimensions that are numbers the lengths of these. Each has to be found in a shape by itself."""
        tokens = {token for dims in self._dims.values() for token in dims.split()}
        for name, number in self._numbers.items():
            shown = next(shown for shown, each in self.names.items() if each == name)
            values = tuple(number.choices(()))
            if any(name in re.findall("[a-z]+", token) for token in tokens - {name}) and name not in tokens:
                raise Unreadable(f"a tensor must have the number {shown!r} as a dimension by itself: float[{shown}]")
            if name in self._bounds and not min(values):
                raise Unreadable(f"{self._bounds[name]!r} has no values where {shown} is 0; write {shown}=int(1..4)")
            if name in tokens:
                self.sizes[name] = values

    def uncut(self, name: str) -> str:
        """Why a dimension, by its name in `Array.dims`, cannot be cut into slices; empty if it can."""
        if name in self._numbers:
            return "another argument is its length"
        text = self._bounds.get(name) or self._whole.get(name)
        if text:
            return f"the values of {text!r} depend on its length"
        dims = [text.split() for text in self._dims.values()]
        if any(tokens.count(name) > 1 for tokens in dims):
            return "a tensor has it twice"
        composed = [t for tokens in dims for t in tokens if t[0] not in "*~" and t != name]
        if any(name in re.findall(r"[a-z]+", token) for token in composed):
            return "it is part of a sum or product"
        return "" if any(name in tokens for tokens in dims) else "no tensor has it"

    def _axis(self, match: re.Match[str], text: str, name: str) -> Static:
        if any(isinstance(a, Static) and a.axis for a in self.found):
            raise Unreadable(f"{text!r}: only one argument can be an axis; write a choice for others, such as 0 | -1")
        if match["choices"] is None:
            return Static(name=name, choices=_axes, axis=True)
        try:
            given = tuple(int(choice) for choice in match["choices"].split("|"))
        except ValueError:
            raise Unreadable(f"{text!r}: the choices of an axis are integers, as in axis(0 | -1)") from None
        return Static(name=name, choices=_fixed(given), axis=True)

    def _verify_axis(self) -> None:
        """Check that the first tensor has the dimensions that an axis names; one of any shape gets enough of them."""
        statics = [a for a in self.found if isinstance(a, Static) and a.axis]
        if not statics:
            return
        first = next((a for a in self.found if isinstance(a, Array)), None)
        if first is None or "~any" in first.dims:
            what = "no argument is a tensor" if first is None else f"the shape of {first.name!r} is that of a broadcast"
            raise Unreadable(f"{statics[0].name!r} is an axis of the first tensor, but {what}")
        tokens = first.dims.split()
        usual = statics[0].choices is _axes
        needed = 1 if usual else max(max(v + 1, -v) for v in statics[0].choices(()))
        if "*any" in tokens:
            self.sizes.setdefault("*any", (max(needed - len(tokens) + 1, 0), MAX_RANK))
        elif needed > len(tokens):
            rank = f"{len(tokens)} dimension{'' if len(tokens) == 1 else 's'}"
            raise Unreadable(f"{statics[0].name!r}: {needed - 1} or {-needed} is no axis: the first tensor has {rank}")

    def _sides(self, named: Mapping[str, Any], dims: str, shape: tuple[int, ...]) -> dict[str, int]:
        """The lengths of the named dimensions in a call, taken from the shapes of its tensors."""
        known = [(self._dims[n], tuple(x.shape)) for n, x in named.items() if n in self._dims and x is not None]
        found = {name: named[number.name] for name, number in self._numbers.items()}
        for each in (*known, (dims, shape)):
            found.update(_lengths(*each))
        return found

    def _read(self, text: str, whole: str) -> str:
        """The dimensions in the notation of `reference.definitions.Array`."""
        return " ".join(self._token(token.strip(), whole) for token in text.split(",") if token.strip())

    def _token(self, token: str, whole: str) -> str:
        if token in ("...", "~"):
            return {"...": "*any", "~": "~any"}[token]
        if re.fullmatch(r"(\w+)(\s*[+*-]\s*\w+)*", token) is None:
            raise Unreadable(
                f"{whole!r}: {token!r} is not a dimension; write a name, a length, a sum, a product, ... or ~"
            )
        return _NAME.sub(lambda name: self._canonical(name[0]), token.replace(" ", ""))

    def _canonical(self, name: str) -> str:
        # The names in dims consist of small letters.
        letters = "abcdefghijklmnopqrstuvwxyz"
        return self.names.setdefault(name, letters[len(self.names) % 26] * (1 + len(self.names) // 26))


def _lengths(dims: str, shape: tuple[int, ...]) -> dict[str, int]:
    """The lengths of the named dimensions of a tensor."""
    tokens = dims.split()
    ends = [i for i, token in enumerate(tokens) if token[0] in "*~"]
    # After a part of any rank, dimensions are counted from the end.
    places = [i - len(tokens) if ends and i > ends[0] else i for i in range(len(tokens))]
    return {t: shape[i] for t, i in zip(tokens, places, strict=True) if t.isalpha()}


def constant(value: Any, name: str) -> Static:
    """An argument that is always this object."""
    return Static(name=name, choices=lambda _: (0,), build=lambda _: value)


def made(factory: Callable[[int], Any], name: str) -> Static:
    """An argument that a factory makes from a seed."""
    return Static(name=name, choices=lambda _: tuple(range(6)), build=factory)


def _axes(shapes: Shapes) -> tuple[int, ...]:
    """The dimensions of the first shape, counted from either end."""
    rank = len(shapes[0]) if shapes else 0
    return (*range(-1, -rank - 1, -1), *range(rank))


def _static(text: str, name: str) -> Static:
    match = _RANGE.fullmatch(text)
    if match is not None:
        kind, low, high = match.groups()
        return Static(name=name, choices=_fixed(_between(kind, float(low), float(high), text)))
    if text in ("bool", "int", "float"):
        usual = {"bool": (False, True), "int": (1, 0, 2, 3), "float": (1.0, 0.5, 2.0, 0.0, -1.5)}
        return Static(name=name, choices=_fixed(usual[text]))
    try:
        choices = tuple(ast.literal_eval(part.strip()) for part in re.split(r"\|(?=(?:[^']*'[^']*')*[^']*$)", text))
    except (ValueError, SyntaxError):
        missing = _missing_bracket(text)
        if missing:
            raise Unreadable(f"{text!r} lacks a {missing}") from None
        quotes = f"if it is a text, quote it: {_quoted(text)}; " if _quoted(text) != text else ""
        raise Unreadable(
            f"{text!r} does not describe an argument; {quotes}write a tensor or a choice of Python values: "
            f"{'; '.join(FORMS)}"
        ) from None
    return Static(name=name, choices=_fixed(choices))


def _quoted(text: str) -> str:
    """A choice with quotes around words that are no Python values."""
    parts = map(str.strip, text.split("|"))
    return " | ".join(repr(part) if part.isidentifier() and not keyword.iskeyword(part) else part for part in parts)


def _missing_bracket(text: str) -> str:
    """The bracket that a text lacks, with its place; empty if it lacks none."""
    awaited: list[str] = []
    for place, letter in enumerate(re.sub("'[^']*'", lambda quoted: "_" * len(quoted[0]), text)):
        if letter in _BRACKETS:
            awaited.append(_BRACKETS[letter])
        elif letter in _BRACKETS.values():
            if not awaited:
                opening = next(o for o, closing in _BRACKETS.items() if closing == letter)
                return f"{opening!r} before the {letter!r} in {text[: place + 1]!r}"
            if awaited.pop() != letter:
                return f"bracket: {text[: place + 1]!r} opens another one than {letter!r}"
    return f"{awaited[-1]!r}" if awaited else ""


def _between(kind: str, low: float, high: float, text: str) -> tuple[Any, ...]:
    if low > high:
        raise Unreadable(f"{text!r}: {low:g} is larger than {high:g}")
    if kind == "int":
        if high - low > 1000 or low != int(low) or high != int(high):
            raise Unreadable(f"{text!r}: the bounds of an int range are two integers, at most 1000 apart")
        return tuple(range(int(low), int(high) + 1))
    return tuple(dict.fromkeys(low + share * (high - low) for share in (0.5, 0.25, 0.75, 0.125, 0.9375)))


def _fixed(value: Any) -> Callable[[Any], Any]:
    return lambda _: value


def _marked(rng: np.random.Generator, drawn: Any, marks: Sequence[int]) -> Any:
    """Integers of which some are marks instead; of several one at least, and never all."""
    found, count = np.array(drawn), (drawn.size + 3) // 4 * (drawn.size > 1)
    found.reshape(-1)[rng.permutation(found.size)[:count]] = rng.choice(marks, count)
    return found


def _counted(shape: tuple[int, ...]) -> Any:
    return np.broadcast_to(np.arange(shape[-1]), shape).copy() if shape else np.zeros((), np.int64)


def _to_sparse(tensor: Any) -> Any:
    return tensor.to_sparse()
