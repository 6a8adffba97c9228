"""Drafts: what a declaration may say, as alternatives from the most general to what was seen."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

# The names of dimensions, in the order in which they are given.
NAMES = (*"nmklpqrstuvwxyz", *(f"{letter}{n}" for n in (1, 2, 3) for letter in "nmklpqrstuvwxyz"))
# Shapes that a tensor may have if calls suggest that any is taken: all, and all but a single number.
_ANY = (("...",), ("...", "n"))
# Of so many choices all combinations are tried.
_MOST_TAILS = 64


class Import(NamedTuple):
    """A module, with its file if that is known, and the name that is imported from it, if one is."""

    module: str
    name: str
    file: str


@dataclass(frozen=True)
class Passed:
    """An object that is passed as it is; other processes do not get it."""

    value: Any

    def __reduce__(self) -> tuple[type[Passed], tuple[None]]:
        return Passed, (None,)


@dataclass(frozen=True)
class Part:
    """An argument of a draft.

    That of a tensor has a ``kind`` (``float``), ``dims`` and the ``tails`` that may follow the brackets, such as
    ``(0..n-1)`` or ``positive``, the preferred one first. Any other is a ``text`` of `strategies.descriptors`, or an
    ``expression`` of Python that needs these ``imports``; ``value`` is what it makes, if that is at hand. ``seen`` says
    what it rests on, ``missing`` why there is no text for it. An ``untracked`` tensor never required grad. A value
    ``is_guess`` if it may as well be a tensor. Tensors may have been of ``classes`` of the program's own.
    """

    name: str
    kind: str = ""
    dims: tuple[str, ...] = ()
    tails: tuple[str, ...] = ("",)
    text: str = ""
    expression: str = ""
    imports: tuple[Import, ...] = ()
    value: Passed | None = None
    seen: str = ""
    missing: str = ""
    untracked: bool = False
    is_guess: bool = False
    classes: tuple[str, ...] = ()

    @property
    def is_limited(self) -> bool:
        """Whether a tensor has numbers of a range that calls suggest."""
        return self.kind == "float" and bool(self.seen) and self.tails[0].startswith(("(", " positive"))

    @property
    def code(self) -> str:
        """The argument as Python writes it."""
        return self.expression or repr(self.words).replace("'", '"', 2 * ("'" not in self.words))

    def without_gradient(self) -> Part:
        """The part for which backward returns None, on purpose."""
        seen = "; ".join(filter(None, [self.seen, "backward returns None for it"]))
        return replace(self, tails=(f"{self.tails[0]} constant",), seen=seen)

    def without_grad(self) -> Part:
        """The part that requires no grad, as forward asks for."""
        return replace(self, tails=tuple(f"{tail} constant" for tail in self.tails))

    def marked(self, value: int) -> Part:
        """The part of which integers may also have a value that marks entries, if forward takes that."""
        if self.kind != "int" or any(" | " in tail for tail in self.tails):
            return self
        marked = tuple(tail.replace(")", f" | {value})", 1) for tail in self.tails)
        return replace(self, tails=tuple(dict.fromkeys([*marked, *self.tails])))

    def ending(self, number: str, name: str) -> Part:
        """The part of which a range of integers ends with a dimension in place of a number."""
        return replace(self, tails=tuple(re.sub(rf"{re.escape(number)}(?=[ )])", name, tail) for tail in self.tails))

    @property
    def given(self) -> Any:
        """What a declaration gets for the argument."""
        return self.words if self.value is None else self.value.value

    @property
    def words(self) -> str:
        """The text of the argument, with its preferred tail."""
        if not self.kind:
            return self.text
        return f"{self.kind}[{','.join(self.dims)}]{self.tails[0]}"


@dataclass(frozen=True)
class Draft:
    """The arguments of a declaration that nobody wrote.

    ``lengths`` are the lengths of the dimensions that never varied, and ``varied`` those of the others. ``sizes`` are
    the lengths to which dimensions are limited. ``inplace`` are the positions of the arguments that are changed in
    place, ``calls`` the number of calls that it rests on, of so many ``kinds``. ``observed`` is the shape that became
    any shape. ``last`` is the length of the last dimension, if that never varied in many shapes. ``surrogate`` says why
    gradients are no derivatives, ``stochastic`` that random numbers are drawn, and ``once`` that backward cannot be
    differentiated. ``means`` has what pyproject.toml says of it.
    """

    parts: tuple[Part, ...]
    lengths: Mapping[str, int] = field(default_factory=dict)
    varied: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    sizes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    inplace: tuple[int, ...] = ()
    calls: int = 0
    kinds: int = 1
    observed: str = ""
    last: int = 0
    surrogate: str = ""
    stochastic: bool = False
    once: bool = False
    means: Mapping[str, Any] = field(default_factory=dict)

    @property
    def missing(self) -> str:
        """Why it cannot be a declaration; empty if it can."""
        return next((part.missing for part in self.parts if part.missing), "")

    @property
    def unchecked(self) -> tuple[str, ...]:
        """The names of floating tensors whose gradients are not checked."""
        floats = [part for part in self.parts if part.kind in ("float", "complex") and not part.missing]
        return tuple(part.name for part in floats if {"constant", "binary"} & set(part.tails[0].split()))

    @property
    def has_numbers(self) -> bool:
        """Whether the length of a dimension is a number."""
        return any(token.isdigit() for part in self.parts for token in part.dims)

    def fixing(self, names: Sequence[str]) -> Draft:
        """The draft in which these dimensions have the length that they always had."""
        known = {name: str(self.lengths[name]) for name in names}
        parts = tuple(
            replace(
                part,
                dims=tuple(known.get(name, name) for name in part.dims),
                tails=tuple(_literal(tail, known) for tail in part.tails),
            )
            for part in self.parts
        )
        left = {name: length for name, length in self.lengths.items() if name not in known}
        return replace(self, parts=parts, lengths=left)

    def as_seen(self) -> Draft:
        """The draft in which every dimension has a length that it had."""
        return replace(self.fixing(list(self.lengths)), sizes=self.varied)

    def with_constants(self) -> Draft:
        """The draft in which tensors that never required grad never do."""
        return replace(self, parts=tuple(part.without_grad() if part.untracked else part for part in self.parts))

    def alternatives(self) -> Iterator[Draft]:
        """The drafts that the calls allow, the most general first; one of just what was seen is among them.

        If all tensors had one shape, any shape is tried. Others have ranges of values, or a dimension of one length.
        """
        if self._has_any_shape():
            last = str(self.last)
            ended = [self._of_shape(("...", last))] if self.last else []
            bases = [self, self._of_shape(_ANY[1]), *ended]
        else:
            bases = [*(self._of_shape(dims) for dims in _ANY if self._has_one_shape()), self]
        found = [
            (number + sum(tails) + len(names), base._narrowed(tails).fixing(names))
            for number, base in enumerate(bases)
            for tails in base._tails()
            for names in [(), *((name,) for name in base.lengths)]
        ]
        yield from (draft for _, draft in sorted(found, key=lambda each: each[0]))
        if self.lengths or self.varied:
            yield from (self._narrowed(tails).as_seen() for tails in self._tails())

    def _narrowed(self, tails: Sequence[int]) -> Draft:
        """The draft with these choices of tails."""
        return replace(
            self, parts=tuple(replace(p, tails=(p.tails[n],)) for p, n in zip(self.parts, tails, strict=True))
        )

    def _tails(self) -> Iterator[tuple[int, ...]]:
        """All choices of tails, or where these are too many, the first ones with at most one other."""
        most = [len(part.tails) for part in self.parts]
        if math.prod(most) <= _MOST_TAILS:
            yield from itertools.product(*map(range, most))
            return
        yield (0,) * len(most)
        for n, number in enumerate(most):
            for tail in range(1, number):
                yield (0,) * n + (tail,) + (0,) * (len(most) - n - 1)

    def _of_shape(self, dims: tuple[str, ...]) -> Draft:
        """The draft in which all tensors have these dimensions."""
        shaped = next(part for part in self.parts if part.kind)
        parts = tuple(replace(part, dims=dims) if part.kind else part for part in self.parts)
        observed = "" if self._has_any_shape() else f"[{','.join(shaped.dims)}]"
        return replace(self, parts=parts, lengths={}, varied={}, observed=observed)

    def _has_any_shape(self) -> bool:
        return {part.dims for part in self.parts if part.kind} == {_ANY[0]}

    def _has_one_shape(self) -> bool:
        dims = {part.dims for part in self.parts if part.kind}
        tails = "".join(tail for part in self.parts for tail in part.tails)
        return len(dims) == 1 and "..." not in dims.pop() and not re.search("[a-z]-1", tails)


def _literal(tail: str, known: Mapping[str, str]) -> str:
    """A tail in which dimensions are numbers."""
    for name, length in known.items():
        tail = re.sub(rf"\.\.{name}-1(?=[ )])", f"..{int(length) - 1}", tail)
    return tail
