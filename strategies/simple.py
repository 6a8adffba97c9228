"""Simple calls: contiguous tensors of ordinary values, which no Function has a good reason to refuse."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from autograd_conformance.reference.definitions import Array, Function, Shapes, Static
from autograd_conformance.strategies.calls import Call, Cotangent, Tensor, contiguous
from autograd_conformance.strategies.shapes import shape_tuples
from autograd_conformance.strategies.values import fills_of

# The most choices of other arguments to try in each shape.
_CHOICES = 12


def kind(call: Call) -> str:
    """The shapes of a call and its arguments that are not tensors."""
    return repr(tuple(each.shape if isinstance(each, Tensor) else each for each in call.args))


def fitting(shapes: Iterable[Shapes], function: Function, refused: frozenset[str], dtype: str) -> tuple[Shapes, ...]:
    """The shapes in which something is not known to be refused."""
    return tuple(each for each in shapes if any(kind(call) not in refused for call in in_shapes(function, each, dtype)))


def kinds(function: Function, dtype: str) -> Iterator[Call]:
    """A simple call of each `kind`, in shapes with elements."""
    for shapes in shape_tuples(function):
        if not any(0 in shape for shape in shapes):
            yield from in_shapes(function, shapes, dtype)


def in_shapes(function: Function, shapes: Shapes, dtype: str) -> Iterator[Call]:
    """A simple call in these shapes for each choice of the other arguments."""
    statics = [a.choices(shapes) for a in function.arguments if not isinstance(a, Array)]
    for drawn in itertools.islice(itertools.product(*statics), _CHOICES):
        yield Call(function.name, simple_arguments(function, shapes, drawn, dtype), (Cotangent(),))


def simple_arguments(function: Function, shapes: Shapes, others: Iterable[Any], dtype: str) -> tuple[Any, ...]:
    """Tensors that no Function has a good reason to refuse, and the other arguments, each in its place."""
    given, chosen = iter(shapes), iter(others)
    return tuple(
        simple_tensor(a, next(given), dtype) if isinstance(a, Array) else next(chosen) for a in function.arguments
    )


def simple_tensor(argument: Array, shape: tuple[int, ...], dtype: str) -> Tensor:
    """A contiguous tensor of ordinary values."""
    fill = "ones" if argument.dtype is not None else fills_of(argument)[-1]
    return Tensor(shape, argument.kind(dtype), argument.differentiable, fill=fill)


def fills(argument: Array | Static) -> Sequence[str]:
    """The fills of ordinary values for an argument."""
    return fills_of(argument) if isinstance(argument, Array) and argument.dtype is None else ()


def with_fill(function: Function, call: Call, fill: str) -> Call:
    """The call with that fill in each tensor whose domain has it."""
    pairs = zip(function.arguments, call.args, strict=False)
    args = (
        replace(given, fill=fill) if isinstance(given, Tensor) and fill in fills(a) else given for a, given in pairs
    )
    return replace(call, args=tuple(args))


def filled(function: Function, call: Call, fill: str) -> Call:
    """The contiguous call with these values, where an argument has them, and with other ordinary ones elsewhere."""
    pairs = zip(function.arguments, contiguous(call).args, strict=False)
    args = (
        replace(given, specials=(), fill=fill if fill in fills(a) else simple_tensor(a, given.shape, call.dtype).fill)
        if isinstance(a, Array) and isinstance(given, Tensor)
        else given
        for a, given in pairs
    )
    return replace(call, args=tuple(args))


def simple_call(function: Function, shapes: Shapes, number: int = 0) -> Call:
    """A call that no Function has a good reason to refuse: contiguous tensors in the most precise dtype.

    ``number`` chooses among the values of arguments that are not tensors, and is the seed.
    """
    choices = [a.choices(shapes) for a in function.arguments if not isinstance(a, Array)]
    args = simple_arguments(function, shapes, [c[number % len(c)] for c in choices], function.dtypes[0])
    cotangents = tuple(Cotangent() if output.differentiable else None for output in function.outputs)
    return Call(function.name, args, cotangents, seed=number)
