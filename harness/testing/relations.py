"""Relations between calls: what a declaration promises of other calls, made of slices, moved axes or swapped arguments.

Each part is a plain call: contiguous tensors and cotangents. So neither another layout nor an operation in between can
be the cause of a difference.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from autograd_conformance.harness.testing.compare import difference
from autograd_conformance.harness.testing.examined import raised_by_suite
from autograd_conformance.harness.testing.example import Example
from autograd_conformance.harness.testing.expected import Expected
from autograd_conformance.reference.definitions import Array, Function, Shape, Shapes, Static
from autograd_conformance.reference.rounding import SAFETY, Tracked
from autograd_conformance.strategies.calls import Call, Tensor

# The longest dimension of which each index becomes a call of its own.
_SINGLE = 8


@dataclass(frozen=True)
class Slice:
    """So many indices of an axis, from a start."""

    axis: int
    start: int
    length: int

    @property
    def words(self) -> str:
        """The view as a method call of a tensor of torch, for scripts."""
        return f".narrow({self.axis}, {self.start}, {self.length})"

    def of(self, array: Any) -> Any:
        """The view of an array."""
        return np.take(array, range(self.start, self.start + self.length), axis=self.axis)


@dataclass(frozen=True)
class Move:
    """An axis at another place."""

    source: int
    target: int

    @property
    def words(self) -> str:
        """The view as a method call of a tensor of torch, for scripts."""
        return f".movedim({self.source}, {self.target})"

    def of(self, array: Any) -> Any:
        """The view of an array."""
        return np.moveaxis(array, self.source, self.target)


@dataclass(frozen=True)
class Uncut:
    """An output that has no dimension to slice: every slice has all of it. Its cotangent goes to the first slice."""

    first: bool

    @property
    def words(self) -> str:
        """The view as a method call of a tensor of torch, for scripts."""
        return "" if self.first else ".mul(0)"

    def of(self, array: Any) -> Any:
        """The share of an array."""
        return array if self.first else 0 * array


# None is the tensor as it is.
View = Slice | Move | Uncut | None


def seen(view: View, array: Any) -> Any:
    """The view of an array."""
    return array if view is None else view.of(array)


def words(view: View) -> str:
    """The view as a method call, empty for the tensor as it is."""
    return "" if view is None else view.words


@dataclass(frozen=True)
class Part:
    """One of the calls that a relation makes of another.

    ``tensors`` has, for each tensor, the number of the call's tensor that it is made of, and the view of it.
    ``statics`` are other values of other arguments, by position. The outputs have the ``sign`` of those of the call.
    ``along`` is the dimension of a slice, in words.
    """

    tensors: tuple[tuple[int, View], ...]
    statics: Mapping[int, Any]
    sign: float = 1.0
    along: str = ""


class Relation:
    """What is promised of other calls.

    ``promise`` is the word of the declaration, ``label`` says in a finding which calls were made.
    """

    promise: str
    label: str

    def suits(self, function: Function, shapes: Shapes) -> bool:
        """Whether calls in these shapes can show that the promise is broken."""
        raise NotImplementedError

    def ways(self, function: Function, call: Call) -> dict[str, tuple[Part, ...]]:
        """The ways to make other calls of one, in words; none if there is nothing to compare."""
        raise NotImplementedError

    def of_output(self, part: Part, given: Shapes, whole: Shape, found: Shape) -> View | str:
        """The view of an output that a part's output should be, from the shapes of both; or what does not fit.

        ``given`` are the shapes of the call's tensors.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class Independent(Relation):
    """The results for a slice along a dimension are the slice of the results.

    ``dims`` are names in `Array.dims`, each with the name that is shown; ``*any`` is each dimension of any shape.
    """

    dims: tuple[tuple[str, str], ...]
    promise = "independent="
    label = "slices along"

    def suits(self, function: Function, shapes: Shapes) -> bool:
        return any(length > 1 for _, _, length in self._places(function.arrays, shapes))

    def ways(self, function: Function, call: Call) -> dict[str, tuple[Part, ...]]:
        pairs = [(a, given.shape) for a, given in zip(function.arguments, call.args, strict=False)
                 if isinstance(a, Array) and isinstance(given, Tensor)]  # fmt: skip
        arrays, shapes = [a for a, _ in pairs], tuple(shape for _, shape in pairs)
        slot, axis = _axis(function, call)
        found: dict[str, tuple[Part, ...]] = {}
        for shown, places, length in self._places(arrays, shapes):
            works_along = slot is not None and axis is not None and places[0] == axis % len(shapes[0])
            if length < 2 or works_along:
                continue
            for lengths in _cuts(length):
                starts = itertools.accumulate((0, *lengths[:-1]))
                parts = tuple(_cut(places, start, n, shown) for start, n in zip(starts, lengths, strict=True))
                found[f"{shown}, of length {', '.join(map(str, lengths))}"] = parts
        return found

    def _places(self, arrays: Sequence[Array], shapes: Shapes) -> Iterator[tuple[str, tuple[int | None, ...], int]]:
        """Each dimension in words, the axis that it is of each tensor, and its length."""
        for name, shown in self.dims:
            tokens = [array.dims.split() for array in arrays]
            ranks = {len(s) - len(t) + 1 for s, t in zip(shapes, tokens, strict=True) if name in t}
            for step in range(min(ranks, default=0)) if name.startswith("*") else (0,):
                places = tuple(_place(t, name, s, step) for t, s in zip(tokens, shapes, strict=True))
                lengths = [s[n] for s, n in zip(shapes, places, strict=True) if n is not None]
                if lengths:
                    yield f"dimension {step} of {shown}" if name.startswith("*") else shown, places, lengths[0]

    def of_output(self, part: Part, given: Shapes, whole: Shape, found: Shape) -> View | str:  # noqa: ARG002
        cut = next(view for _, view in part.tensors if isinstance(view, Slice))
        if whole == found:
            return Uncut(cut.start == 0)
        differ = [n for n, (a, b) in enumerate(zip(whole, found, strict=False)) if a != b]
        if len(whole) == len(found) and len(differ) == 1 and found[differ[0]] == cut.length:
            return replace(cut, axis=differ[0])
        shapes = f"a slice of length {cut.length} has the shape {found}, and the whole {whole}"
        return f"no dimension is the sliced one: {shapes}"


def _place(tokens: Sequence[str], name: str, shape: Shape, step: int) -> int | None:
    """The axis of a tensor that a name stands for; None if the tensor has no such dimension."""
    if name not in tokens:
        return None
    number = tokens.index(name)
    starred = next((n for n, token in enumerate(tokens) if token[0] in "*~"), len(tokens))
    # After a part of any rank, dimensions are counted from the end.
    return number + step if number <= starred else len(shape) - len(tokens) + number


def _cuts(length: int) -> tuple[tuple[int, ...], ...]:
    """The lengths of slices: each index for itself, the first and the last one, and halves."""
    single = ((1,) * length,) if length <= _SINGLE else ()
    return tuple(dict.fromkeys([*single, (length - 1, 1), (1, length - 1), (length // 2, length - length // 2)]))


def _cut(places: Sequence[int | None], start: int, length: int, along: str) -> Part:
    views = (None if axis is None else Slice(axis, start, length) for axis in places)
    return Part(tuple(enumerate(views)), {}, along=along if along.startswith("dimension ") else f"dimension {along}")


@dataclass(frozen=True)
class AlongAxis(Relation):
    """Moving the axis to another dimension, in all tensors of the first one's dimensions, moves the results alone."""

    promise = "axis"
    label = "moved"

    def suits(self, function: Function, shapes: Shapes) -> bool:  # noqa: ARG002
        return True

    def ways(self, function: Function, call: Call) -> dict[str, tuple[Part, ...]]:
        slot, axis = _axis(function, call)
        given = [(a, x) for a, x in zip(function.arguments, call.args, strict=False) if isinstance(a, Array)]
        if slot is None or axis is None or not isinstance(given[0][1], Tensor):
            return {}
        argument, rank = function.arguments[slot], len(given[0][1].shape)
        assert isinstance(argument, Static)
        along = [a.dims == given[0][0].dims for a, x in given if isinstance(x, Tensor)]
        found: dict[str, tuple[Part, ...]] = {}
        for other in argument.choices(tuple(x.shape for _, x in given if isinstance(x, Tensor))):
            if other != axis:
                move = Move(axis % rank, other % rank) if axis % rank != other % rank else None
                tensors = tuple((n, move if moves else None) for n, moves in enumerate(along))
                found[f"axis {axis} to {other}"] = (Part(tensors, {slot: other}),)
        return found

    def of_output(self, part: Part, given: Shapes, whole: Shape, found: Shape) -> View | str:
        move, rank = part.tensors[0][1], len(given[0])
        if len(whole) not in (rank, rank - 1):
            return f"it has {len(whole)} dimensions, which is neither {rank}, as the first tensor has, nor one less"
        view = move if len(whole) == rank else None
        fits = seen(view, np.empty(whole, np.int8)).shape == found
        return view if fits else f"its shape is {found} along the one axis, and {whole} along the other"


@dataclass(frozen=True)
class Exchanged(Relation):
    """The results stay, or get the other ``sign``, if neighbours among these arguments, by position, are exchanged."""

    slots: tuple[int, ...]
    sign: float
    promise = "symmetric="
    label = "exchanged"

    def suits(self, function: Function, shapes: Shapes) -> bool:  # noqa: ARG002
        return True

    def ways(self, function: Function, call: Call) -> dict[str, tuple[Part, ...]]:
        slots = [n for n, given in enumerate(call.args) if isinstance(given, Tensor)]
        found: dict[str, tuple[Part, ...]] = {}
        for a, b in itertools.pairwise(self.slots):
            if a in slots and b in slots:
                order = {a: b, b: a}
                tensors = tuple((slots.index(order.get(slot, slot)), None) for slot in slots)
                words = f"arguments {a} ({function.arguments[a].name}) and {b} ({function.arguments[b].name})"
                found[words] = (Part(tensors, {}, self.sign),)
        return found

    def of_output(self, part: Part, given: Shapes, whole: Shape, found: Shape) -> View | str:  # noqa: ARG002
        return None if whole == found else f"its shape is {whole}, and {found} with exchanged arguments"


def _axis(function: Function, call: Call) -> tuple[int | None, int | None]:
    """The position of the argument that is an axis, and its value; None if there is none."""
    for slot, (argument, given) in enumerate(zip(function.arguments, call.args, strict=False)):
        if isinstance(argument, Static) and argument.axis:
            return slot, given
    return None, None


class Unfit(ValueError):
    """An output does not fit a relation, whatever its numbers elsewhere are; ``number`` is the output's."""

    def __init__(self, number: int, words: str) -> None:
        super().__init__(f"output {number}{words}")
        self.number = number


Results = tuple[Tracked | None, ...]


class Related:
    """A call, and the results that the parts of a relation give together."""

    def __init__(self, example: Example, relation: Relation, parts: Sequence[Part]) -> None:
        self.example, self.relation, self.parts = example, relation, tuple(parts)
        copy, count = example.implementation.xp.copy, len(example.function.outputs)
        outputs, pullback = example.implementation.vjp(example.f, example.primals, track=example.track)
        kept = [copy(y) for y in outputs]
        gradients = [None if g is None else copy(g) for g in pullback(example.placed(example.expected.cotangents))]
        # Results of the call itself, with the bounds of the reference.
        self.whole: Results = example.near((*kept, *gradients), example.expected.results())
        self.joined = [None if e is None else np.zeros(e.shape, e.dtype) for e in self.whole]
        self.outputs, self.gradients = slice(count), slice(count, None)

    def run(self, mistaken: Callable[[Exception], bool]) -> Exception | None:
        """Run the parts. Returns the exception with which forward refuses one; a mistake is raised. Raises Unfit."""
        for part in self.parts:
            made = self.of(part)
            try:
                outputs, pullback = made.implementation.vjp(made.f, made.primals, track=made.track)
            except Exception as raised:
                if raised_by_suite(raised) or mistaken(raised):
                    raise
                return raised
            self._put(part, made, outputs, pullback)
        return None

    def of(self, part: Part) -> Example:
        """The call of a part."""
        example, given = self.example, list(self.example.call.args)
        values = list(example.values)
        for slot, (number, view) in zip(example.slots, part.tensors, strict=True):
            source = example.call.tensors[number]
            values[slot] = seen(view, example.values[example.slots[number]])
            given[slot] = Tensor(values[slot].shape, source.dtype, source.requires_grad)
        for slot, value in part.statics.items():
            given[slot] = values[slot] = value
        call = replace(example.call, args=tuple(given))
        return example.of(call, expected=Expected(example.function, call, values=tuple(values)))

    def views(self, part: Part, shapes: Sequence[Shape]) -> list[View]:
        """The view of each output that a part's output, of these shapes, should be. Raises Unfit."""
        found, given = list[View](), tuple(tensor.shape for tensor in self.example.call.tensors)
        for number, (whole, shape) in enumerate(zip(self.whole[self.outputs], shapes, strict=True)):
            assert whole is not None
            view = self.relation.of_output(part, given, whole.shape, shape)
            if isinstance(view, str):
                raise Unfit(number, f": {view}")
            found.append(view)
        return found

    def _put(self, part: Part, made: Example, outputs: Sequence[Any], pullback: Callable[..., Any]) -> None:
        """Add the results of a part to the joined ones."""
        arrays = [np.array(made.implementation.numpy(y)) for y in outputs]
        views, expected = self.views(part, [y.shape for y in arrays]), self.example.expected
        for number, (y, view) in enumerate(zip(arrays, views, strict=True)):
            if isinstance(view, Uncut) and not _same(y, self.whole[number]):
                raise Unfit(number, f" has no {part.along}, and differs between slices")
        rows = zip(expected.cotangents, views, expected.output_dtypes, strict=True)
        ends = [None if g is None else made.tensor(part.sign * seen(v, g), dtype) for g, v, dtype in rows]
        for y, view, into in zip(arrays, views, self.joined[self.outputs], strict=True):
            if view != Uncut(first=False):
                _add(into, view, part.sign * y if y.dtype.kind in "fc" else y)
        gradients = self.joined[self.gradients]
        for (number, view), gradient in zip(part.tensors, pullback(ends), strict=True):
            if gradient is not None:
                _add(gradients[number], view, made.implementation.numpy(gradient))


def _same(got: Any, expected: Tracked | None) -> bool:
    """Whether an output of a part is that of the call."""
    assert expected is not None
    worst = difference(got, expected, slack=2 * SAFETY)
    return worst is None or worst.holds


def _add(into: Any, view: View, values: Any) -> None:
    """Add values to the view of an array; nothing to None."""
    if into is not None:
        places = seen(view, np.arange(into.size).reshape(into.shape))
        into.reshape(-1)[places] = into.reshape(-1)[places] + values
