"""Memory layouts: how a tensor's elements are stored, and the view that finds them there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from autograd_conformance.reference.definitions import Shape


@dataclass(frozen=True)
class Layout:
    """A way to store an array: ``buffer(values)`` makes the contiguous storage, ``view(xp, buffer, shape)`` reads it.

    ``suits(shape, dtype)`` says whether the layout differs from the contiguous one. The view works in any array
    namespace ``xp``. An expanded array repeats its first slice, so that its values may differ from those given: see
    `stored`.
    """

    name: str
    suits: Callable[[Shape, str], bool]
    buffer: Callable[[Any], Any]
    view: Callable[[Any, Any, Shape], Any]


def _every_other(values: Any) -> Any:
    wide = np.zeros((*values.shape[:-1], 2 * values.shape[-1]), values.dtype)
    wide[..., ::2] = values
    return wide


def _channels_last(values: Any) -> Any:
    return np.moveaxis(values, 1, -1)


def _minus_imaginary(values: Any) -> Any:
    # Not -1j * values, which is NaN in the real part where a value is infinite.
    storage = np.zeros(values.shape, np.complex128)
    storage.imag = -values
    return storage


def _reversed_axes(rank: int) -> tuple[int, ...]:
    return tuple(range(rank))[::-1]


def _several(shape: Shape) -> bool:
    return sum(side > 1 for side in shape) > 1


LAYOUTS = {
    layout.name: layout
    for layout in (
        Layout("contiguous", lambda *_: True, lambda a: a, lambda _, b, __: b),
        Layout(
            "transposed",
            lambda shape, _: _several(shape),
            lambda a: a.transpose(),
            lambda xp, b, _: xp.permute_dims(b, _reversed_axes(b.ndim)),
        ),
        Layout(
            "strided",
            lambda shape, _: len(shape) > 0 and max(shape) > 1,
            _every_other,
            lambda _, b, __: b[..., ::2],
        ),
        Layout(
            "offset",
            lambda shape, _: len(shape) > 0,
            lambda a: np.concatenate([a[:1], a]) if len(a) else np.zeros((1, *a.shape[1:]), a.dtype),
            lambda _, b, __: b[1:],
        ),
        Layout(
            "expanded",
            lambda shape, _: len(shape) > 0 and shape[0] > 1,
            lambda a: a[:1],
            lambda xp, b, shape: xp.broadcast_to(b, shape),
        ),
        Layout(
            "channels_last",
            lambda shape, _: len(shape) > 2 and shape[1] > 1 and max(shape[2:]) > 1,
            _channels_last,
            lambda xp, b, _: xp.permute_dims(b, (0, b.ndim - 1, *range(1, b.ndim - 1))),
        ),
        Layout(
            "conjugated",
            lambda _, dtype: dtype.startswith("complex"),
            np.conj,
            lambda xp, b, _: xp.conj(b),
        ),
        Layout(
            "negated",
            lambda _, dtype: dtype in ("float64", "float32"),
            _minus_imaginary,
            lambda xp, b, _: xp.imag(xp.conj(b)),
        ),
    )
}


# The values of an expanded array in memory of their own: never drawn, but compared with that.
REPEATED = "repeated"
_EVERY = {
    **LAYOUTS,
    REPEATED: Layout(REPEATED, LAYOUTS["expanded"].suits, lambda a: a, lambda _, b, __: b),
}


def suitable(shape: Shape, dtype: str) -> tuple[str, ...]:
    """The layouts that a tensor of that shape and dtype can have, contiguous first."""
    return tuple(name for name, layout in LAYOUTS.items() if layout.suits(shape, dtype))


def _kind(layout: str, shape: Shape, dtype: str) -> Layout:
    """The layout, or the contiguous one if it does not suit."""
    kind = _EVERY[layout]
    return kind if kind.suits(shape, dtype) else LAYOUTS["contiguous"]


def stored(values: Any, dtype: str, layout: str) -> Any:
    """The values that an array has in that layout: an expanded array, and a copy of one, repeats its first slice."""
    if _kind(layout, values.shape, dtype).name not in ("expanded", REPEATED):
        return values
    return np.broadcast_to(values[:1], values.shape).copy()


def copied(layout: str) -> str:
    """The layout of a contiguous copy."""
    return REPEATED if layout in ("expanded", REPEATED) else "contiguous"


def place(xp: Any, array: Callable[[Any, str], Any], values: Any, dtype: str, layout: str) -> Any:
    """A tensor with these values in that layout, or contiguous if the layout does not suit the shape.

    ``array(values, dtype)`` makes a contiguous tensor.
    """
    kind = _kind(layout, values.shape, dtype)
    return kind.view(xp, array(np.array(kind.buffer(values), order="C"), storage(dtype, kind.name)), values.shape)


def storage(dtype: str, layout: str) -> str:
    """The dtype of the storage that a tensor in that layout is a view of."""
    return _COMPLEX_STORAGE.get(dtype, dtype) if layout == "negated" else dtype


_COMPLEX_STORAGE = {"float64": "complex128", "float32": "complex64"}
