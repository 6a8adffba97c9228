"""The values of small integer tensors, which the text of a call does not show."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from autograd_conformance.reference.definitions import Function
from autograd_conformance.strategies.calls import Call, Tensor, tensor_values

# The most elements that are shown.
_FEW = 16


def integers(function: Function, call: Call) -> Iterator[tuple[int, Any]]:
    """The integer tensors of a call: position and values."""
    if any(isinstance(given, Tensor) and "int" in given.dtype for given in call.args):
        for slot, values in enumerate(tensor_values(call, function)):
            given = call.args[slot]
            if isinstance(given, Tensor) and "int" in given.dtype:
                yield slot, values.astype(np.int64)


def in_words(function: Function, call: Call) -> str:
    """The values of the small integer tensors of a call; empty if there are none."""
    rows = ((slot, np.array2string(values, separator=", ")) for slot, values in integers(function, call)
            if 0 < values.size <= _FEW)  # fmt: skip
    return "; ".join(f"argument {slot} ({function.arguments[slot].name}) = {' '.join(t.split())}" for slot, t in rows)


def repeating(function: Function, call: Call) -> frozenset[int]:
    """The positions of the integer tensors that have a value twice."""
    return frozenset(slot for slot, values in integers(function, call) if len(np.unique(values)) < values.size)
