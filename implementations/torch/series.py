"""Many numbers as a short expression in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from autograd_conformance.implementations.scripting import NoScript

# So many numbers are listed one by one if they follow no rule.
_MOST = 4096
# The longest list that repeats.
_PERIOD = 32


def listed(array: Any, number: Callable[[Any], str]) -> tuple[str, bool]:
    """An expression for the list of all elements, in row-major order, and whether it names them one by one.

    ``number`` writes one of them. The expression gives the same bits. Raises NoScript if there are too many that
    follow no rule.
    """
    flat = np.ascontiguousarray(array).reshape(-1)
    for rule in (_repeated, _spaced) if flat.size > _PERIOD else ():
        found = rule(flat, number)
        if found:
            return found, False
    if flat.size > _MOST:
        raise NoScript(f"a tensor of the call has {flat.size} numbers in no simple order, too many for a script")
    return f"[{', '.join(map(number, flat.tolist()))}]", True


def _repeated(flat: Any, number: Callable[[Any], str]) -> str:
    """A list that is repeated, and cut off; empty if none is."""
    for period in range(1, _PERIOD + 1):
        first = flat[:period]
        times = -(-flat.size // period)
        if np.tile(first, times)[: flat.size].tobytes() == flat.tobytes():
            cut = f"[:{flat.size}]" if flat.size % period else ""
            text = f"[{', '.join(map(number, first.tolist()))}] * {times}"
            return f"({text}){cut}" if cut else text
    return ""


def _spaced(flat: Any, number: Callable[[Any], str]) -> str:
    """Numbers with one distance; empty if they have several."""
    if flat.dtype.kind not in "fi" or not np.isfinite(flat[:2]).all():
        return ""
    start, step = flat[0].item(), (flat[1] - flat[0]).item()
    if np.asarray([start + step * k for k in range(flat.size)], flat.dtype).tobytes() != flat.tobytes():
        return ""
    return f"[{number(start)} + {number(step)} * k for k in range({flat.size})]"
