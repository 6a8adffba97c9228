"""What is free in the results of a Function: a sign, a phase, an order, a rotation, or what a callable maps away.

The Function is then checked together with a map to a canonical form, made of built-in operations. All results in which
only what is free differs have one canonical form. So values, differences and gradients are those of the canonical form,
and no cotangent depends on what is free.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from autograd_conformance.harness.outcomes import choose_from
from autograd_conformance.implementations.protocol import Implementation, as_tuple

Tensors = tuple[Any, ...]
# A map of the outputs, given the arguments as well, to the canonical form.
Canonical = Callable[[Tensors, Tensors], Any]

_TEXT = re.compile(r"\s*(?P<word>\w+)\s+(?P<letter>[a-z])\s*:\s*(?P<terms>.+)")
_TERM = re.compile(r"(?P<batch>\.\.\.)?(?P<letters>[a-z]*)(?P<conjugate>\*?)")


class Unfit(ValueError):
    """The text of a freedom does not fit the outputs of a Function."""


@dataclass(frozen=True)
class Free:
    """One output in which something is free: its number, and its dimensions by letter, after a batch if there is one.

    ``conjugate`` says that it changes as the complex conjugate of the other outputs.
    """

    number: int
    letters: str
    batch: bool
    conjugate: bool


@dataclass(frozen=True)
class Freedom:
    """What is free along one dimension of some outputs, in the same way in all of them.

    A slice of an output is what belongs to one index of that dimension, and to one of the batch.
    """

    text: str
    word: str
    letter: str
    count: int
    free: tuple[Free, ...]

    def canonical(self, implementation: Implementation, outputs: Tensors) -> Tensors:
        """The outputs in canonical form."""
        if len(outputs) != self.count:
            raise Unfit(f"up_to={self.text!r} describes {self.count} outputs, but the Function returns {len(outputs)}")
        work = _Work(implementation, self, outputs)
        found = list(outputs)
        for free, changed in zip(self.free, WORDS[self.word].change(work), strict=True):
            found[free.number] = changed
        return tuple(found)


class _Work:
    """The outputs of one call in which something is free, each with the shape (batch, slices, entries of a slice)."""

    def __init__(self, implementation: Implementation, freedom: Freedom, outputs: Tensors) -> None:
        self.implementation, self.xp, self.freedom = implementation, implementation.xp, freedom
        self.given = [outputs[free.number] for free in freedom.free]
        self.flat = [self._flat(free, y) for free, y in zip(freedom.free, self.given, strict=True)]

    def _order(self, free: Free, rank: int) -> tuple[int, list[int]]:
        """The number of batch dimensions, and the dimensions with that of the slices after them."""
        first = rank - len(free.letters)
        if first < 0 or (first and not free.batch):
            letters = "..." * free.batch + free.letters
            raise Unfit(f"up_to={self.freedom.text!r}: output {free.number} has {rank} dimensions, unlike {letters!r}")
        slices = first + free.letters.index(self.freedom.letter)
        return first, [*range(first), slices, *(n for n in range(first, rank) if n != slices)]

    def _flat(self, free: Free, y: Any) -> Any:
        shape = tuple(y.shape)
        batch, order = self._order(free, len(shape))
        moved = [shape[n] for n in order]
        flat = self.xp.reshape(
            self.xp.permute_dims(y, tuple(order)),
            (math.prod(moved[:batch]), moved[batch], math.prod(moved[batch + 1 :])),
        )
        return self.xp.conj(flat) if free.conjugate else flat

    def restored(self, flats: Sequence[Any]) -> list[Any]:
        """The outputs with these entries, in their own shapes."""
        found = []
        for free, y, flat in zip(self.freedom.free, self.given, flats, strict=True):
            shape = tuple(y.shape)
            _, order = self._order(free, len(shape))
            moved = self.xp.reshape(self.xp.conj(flat) if free.conjugate else flat, tuple(shape[n] for n in order))
            found.append(self.xp.permute_dims(moved, tuple(int(n) for n in np.argsort(order))))
        return found

    def shares(self) -> Any:
        """The product of each slice, over all outputs, with numbers that are always the same: (batch, slices, 1)."""
        parts = [self.xp.sum(flat * self._weights(n, flat), axis=-1, keepdims=True)
                 for n, flat in enumerate(self.flat)]  # fmt: skip
        return sum(parts[1:], parts[0])

    def _weights(self, number: int, flat: Any) -> Any:
        """Numbers of both signs and of ordinary size, for the entries of a slice."""
        kind, size = self.implementation.describe(flat), int(flat.shape[-1])
        rng = np.random.default_rng(number)
        values = rng.uniform(0.5, 1.5, (2, size)) * rng.choice((-1.0, 1.0), (2, size))
        complex_values = kind.dtype.startswith("complex")
        dtype = kind.dtype if "float" in kind.dtype or complex_values else "float64"
        weights = values[0] + 1j * values[1] if complex_values else values[0]
        return self.implementation.array(weights, dtype, kind.device)


def _signs(work: _Work) -> list[Any]:
    xp = work.xp
    signs = xp.sign(xp.real(work.shares()))
    return work.restored([flat * xp.where(signs == 0, xp.ones_like(signs), signs) for flat in work.flat])


def _phases(work: _Work) -> list[Any]:
    xp, shares = work.xp, work.shares()
    size = xp.abs(shares)
    phase = xp.conj(shares) / xp.where(size == 0, xp.ones_like(size), size)
    return work.restored([flat * xp.where(size == 0, xp.ones_like(phase), phase) for flat in work.flat])


def _ordered(work: _Work) -> list[Any]:
    xp = work.xp
    order = xp.argsort(xp.real(work.shares()), axis=-2)
    places = [xp.broadcast_to(order, tuple(flat.shape)) for flat in work.flat]
    return work.restored([xp.take_along_axis(y, at, axis=-2) for y, at in zip(work.flat, places, strict=True)])


def _products(work: _Work) -> list[Any]:
    """The product of each output with the conjugate of the first, summed over the slices."""
    xp, first = work.xp, work.flat[0]
    return [xp.matmul(xp.matrix_transpose(flat), xp.conj(first)) for flat in work.flat]


@dataclass(frozen=True)
class Word:
    """What can be free: a sentence for people, and the change of the outputs into canonical form."""

    about: str
    change: Callable[[_Work], list[Any]]


WORDS = {
    "sign": Word("each slice may have the other sign", _signs),
    "phase": Word(
        "each slice may be multiplied by a complex number of size 1; by a sign if the tensors are real", _phases
    ),
    "permutation": Word("the slices may come in another order", _ordered),
    "rotation": Word("an orthonormal set of slices may be rotated: only its span counts", _products),
}


def freedom(given: str | Canonical) -> Freedom | Canonical:
    """The freedom that a text describes; a callable as it is. Raises ValueError with what is wrong."""
    if isinstance(given, str):
        return _described(given)
    if not callable(given):
        raise ValueError(f"neither a text such as {EXAMPLE!r} nor a callable")
    return given


def _described(text: str) -> Freedom:
    match = _TEXT.fullmatch(text)
    if match is None:
        raise ValueError(f"this is not a freedom; write a word, a letter and the outputs, as in {EXAMPLE!r}")
    word, letter = match["word"], match["letter"]
    if word not in WORDS:
        raise ValueError(f"unknown word {word!r}; {choose_from(word, WORDS)}")
    terms = [term.strip() for term in match["terms"].split(",")]
    free = tuple(_free(term, number, letter) for number, term in enumerate(terms) if term != "_")
    if not free:
        raise ValueError(f"nothing is free in any output; one of them must have the letter {letter!r}")
    return Freedom(text, word, letter, len(terms), free)


EXAMPLE = "sign k: _, ...nk"


def _free(term: str, number: int, letter: str) -> Free:
    match = _TERM.fullmatch(term)
    if match is None or not term:
        raise ValueError(f"{term!r} is not an output; write its dimensions, as in '...nk', or '_'")
    if match["letters"].count(letter) != 1:
        raise ValueError(f"{term!r} must have the letter {letter!r} once; write '_' if nothing is free")
    return Free(number, match["letters"], match["batch"] is not None, bool(match["conjugate"]))


def composed(freedoms: Sequence[Freedom | Canonical], implementation: Implementation) -> Canonical | None:
    """The map to the canonical form, one freedom after the other; None if nothing is free."""
    if not freedoms:
        return None

    def canonical(outputs: Tensors, inputs: Tensors) -> Any:
        for one in freedoms:
            found = one.canonical(implementation, outputs) if isinstance(one, Freedom) else one(outputs, inputs)
            outputs = as_tuple(found)
        return outputs

    return canonical


def within(function: Callable[..., Any], canonical: Canonical | None) -> Callable[..., Any]:
    """The function, with its outputs in canonical form."""
    return function if canonical is None else lambda *given: canonical(as_tuple(function(*given)), given)
