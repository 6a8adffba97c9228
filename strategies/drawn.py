"""Arguments that a Hypothesis strategy draws: ``integers(0, 3)``, ``sampled_from(...)``, ``arrays(float, (2, 3))``.

A strategy is asked once, in advance, for many values, always the same ones. Calls choose among these, so they print
what was drawn, and shrink towards the simplest. Arrays become tensors, everything else is passed as it is drawn.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis import errors as hypothesis_errors
from hypothesis.strategies import SearchStrategy

from autograd_conformance.reference.definitions import FLOATING, Array, Function, Shape, Static
from autograd_conformance.strategies import calls
from autograd_conformance.strategies.shapes import MAX_ELEMENTS

# How many values are drawn, and how many of those that are no arrays are kept: tests try each of these.
_DRAWN, _KEPT = 300, 64
# The kinds of tensors that are not differentiated.
_INTEGERS = ("int64", "int32", "int16", "int8", "uint8", "bool")
# Values that are nearer to a multiple of this, or to 0, may be at a kink.
_EIGHTH, _OFF = 8.0, 1e-3


class Undrawable(ValueError):
    """Raised for a strategy whose values cannot be arguments; says what is wrong and what may be drawn."""


def is_strategy(value: Any) -> bool:
    """Whether an argument of a declaration is a strategy."""
    return isinstance(value, SearchStrategy)


def is_printed(value: Any) -> bool:
    """Whether a script shows what is drawn for an argument of a declaration, and needs no declaration for it."""
    return isinstance(value, str) or is_strategy(value)


def argument(strategy: SearchStrategy[Any], name: str, number: int) -> tuple[Array | Static, tuple[Shape, ...], float]:
    """The argument that a strategy draws, the shapes of its arrays, and their largest number.

    ``number`` is the position of the argument. Raises Undrawable.
    """
    values = [_plain(value) for value in _values(strategy)]
    arrays = [value for value in values if isinstance(value, np.ndarray)]
    if not arrays:
        return _static(strategy, values, name), (), 0.0
    others = [value for value in values if value is not None and not isinstance(value, np.ndarray)]
    if others:
        raise Undrawable(f"{strategy!r} draws arrays and also {others[0]!r}; draw arrays, or arrays and None")
    return _array(strategy, arrays, name, number, has_none=len(arrays) < len(values))


def _values(strategy: SearchStrategy[Any]) -> list[Any]:
    """Values of a strategy, the simplest first: always the same ones."""
    found: list[Any] = []

    @settings(
        max_examples=_DRAWN, derandomize=True, database=None, deadline=None, phases=(Phase.generate,),
        verbosity=Verbosity.quiet, suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(strategy)
    def draw(value: Any) -> None:
        found.append(value)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            draw()
    except hypothesis_errors.HypothesisException as problem:
        raise Undrawable(f"{strategy!r} draws nothing: {problem}") from None
    return found


def _plain(value: Any) -> Any:
    """A value without what NumPy and this suite wrap it in."""
    if isinstance(value, calls.Tensor):
        return _of_tensor(value)
    if isinstance(value, tuple | list):
        return type(value)(map(_plain, value)) if type(value) in (tuple, list) else value
    return value.item() if isinstance(value, np.generic) else value


def _of_tensor(tensor: calls.Tensor) -> Any:
    """The values that a printed tensor stands for."""
    function: Any = Function(
        name="", body=_nothing, arguments=(Array(name="x", dims="*s"),), forward=_nothing, vjp=_nothing, document="",
        exercises="",
    )  # fmt: skip
    (values,) = calls.tensor_values(calls.Call("", (tensor,)), function)
    return np.asarray(values)


def _nothing(*_: Any) -> Any:
    return None


def _static(strategy: SearchStrategy[Any], values: Iterable[Any], name: str) -> Static:
    """An argument that is no tensor."""
    first, *rest = {repr(value): value for value in values}.items()
    chosen = [first, *sorted(rest, key=lambda each: len(each[0]))][:_KEPT]
    for text, value in chosen:
        read = _read(text)
        if list(map(repr, read)) != [text]:
            raise Undrawable(
                f"{strategy!r} draws {type(value).__name__} {text[:60]}, which cannot be read from what is printed; "
                "draw arrays, numbers, texts, None, or tuples and lists of these; a Factory makes other objects"
            )
        if read != [value]:
            raise Undrawable(f"{strategy!r} draws nan, which equals nothing; add allow_nan=False")
    found = tuple(value for _, value in chosen)
    return Static(name=name, choices=lambda _: found, build=None if _are_fixed(found) else copy.deepcopy)


def _are_fixed(values: Sequence[Any]) -> bool:
    """Whether a Function cannot change these values."""
    return all(isinstance(value, int | float | complex | str | bytes | None) for value in values)


def _read(text: str) -> list[str]:
    """The value that a printed call has as this argument; none if it cannot be read."""
    try:
        return list(calls.parse(f"Call('', args=({text},))").args)
    except ValueError:
        return []


def _array(
    strategy: SearchStrategy[Any], arrays: Sequence[Any], name: str, number: int, *, has_none: bool
) -> tuple[Array, tuple[Shape, ...], float]:  # fmt: skip
    kind = _kind(strategy, arrays)
    among: dict[Shape, list[Any]] = {}
    for each in arrays:
        among.setdefault(each.shape, []).append(each)
    shapes = tuple(shape for shape in among if math.prod(shape) <= MAX_ELEMENTS)
    if not shapes:
        raise Undrawable(f"{strategy!r} draws arrays of more than {MAX_ELEMENTS} elements; draw smaller ones")
    if any(not np.isfinite(each).all() for each in arrays):
        raise Undrawable(
            f"{strategy!r} draws nan or infinity; the suite adds these itself, so draw finite numbers: "
            "elements=floats(-4, 4)"
        )

    def drawn(shape: Shape, smooth: bool) -> Sequence[Any]:
        listed = among.get(shape) or [np.resize(arrays[0], shape)]
        return [each for each in listed if smooth and _is_off_kinks(each)] or listed

    def make(rng: np.random.Generator, shape: Shape, _: Any) -> Any:
        listed = drawn(shape, smooth=True)
        return listed[int(rng.integers(len(listed)))]

    dims = " ".join(map(str, shapes[0])) if len(shapes) == 1 else f"*drawn{'_' * number}"
    found = Array(
        name=name, dims=dims, values="unit", make=make, drawn=drawn, real=kind == "float",
        dtype=kind if kind in _INTEGERS else None, optional=("none",) if has_none else (),
    )  # fmt: skip
    largest = max((float(np.abs(each).max(initial=0)) for each in arrays), default=0.0) if not found.dtype else 0.0
    return found, shapes if len(shapes) > 1 else (), largest


def _kind(strategy: SearchStrategy[Any], arrays: Sequence[Any]) -> str:
    """``float`` or ``complex`` for tensors to differentiate, otherwise the dtype."""
    found = {str(each.dtype) for each in arrays}
    if all(np.issubdtype(each.dtype, np.inexact) for each in arrays):
        return "complex" if any("complex" in each for each in found) else "float"
    if len(found) > 1 or not found <= {*_INTEGERS}:
        valid = ", ".join((*FLOATING, *_INTEGERS))
        raise Undrawable(f"{strategy!r} draws arrays of {' and '.join(sorted(found))}; draw one of: {valid}")
    return found.pop()


def _is_off_kinks(values: Any) -> bool:
    """Whether a floating array is away from round numbers, where most kinks are, and has no ties."""
    parts = np.ravel(np.real(values))
    away = np.abs(parts * _EIGHTH - np.rint(parts * _EIGHTH)) > _OFF
    return bool(away.all()) and len(set(parts.tolist())) == parts.size
