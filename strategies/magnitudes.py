"""Calls with tiny or extreme numbers instead of ordinary ones."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from autograd_conformance.reference.definitions import Array, Function
from autograd_conformance.reference.rounding import PRECISION
from autograd_conformance.strategies.calls import Call, Tensor
from autograd_conformance.strategies.values import EXTREMES, MODERATE, TINY

# The variants of the tests at small values, at the ends of the range of a dtype, and where all numbers are large.
SMALL, RANGE, FAR = "small", "range", "far"
# The domains that have large numbers.
_UNBOUNDED = ("free", "nonzero", "positive")
# The different numbers that are near a large one.
_NEAR = 4


def at_tiny(call: Call, function: Function) -> Call:
    """The call with tiny values in each tensor that may have any."""
    pairs = zip(function.arguments, call.args, strict=False)
    args = (replace(x, fill=TINY) if isinstance(x, Tensor) and _is_free(a) else x for a, x in pairs)
    return replace(call, args=tuple(args), smooth=False)


def takes_tiny(function: Function) -> bool:
    """Whether a tensor may have any values, tiny ones among them."""
    return any(map(_is_free, function.arguments))


def _is_free(argument: Any) -> bool:
    return isinstance(argument, Array) and argument.differentiable and argument.values == "free" and not argument.make


def at_extremes(call: Call, function: Function) -> Iterator[Call]:
    """The same call with each extreme number in turn in the places where a call of extremes holds some."""
    for extreme in (MODERATE if takes_tiny(function) else EXTREMES).values():
        value = extreme(PRECISION[call.dtype])
        yield with_specials(call, lambda given, value=value: tuple((place, value) for place, _ in given.specials))


def everywhere_far(call: Call, function: Function, *, equal: bool = False) -> Call:
    """The call with a number in each place whose square alone does not overflow, where a tensor may have such.

    All have one sign: a difference of two would be twice as large. If they are ``equal``, it has no rounding either.
    """
    rng = np.random.default_rng(call.seed)
    far = MODERATE["far"](PRECISION[call.dtype]) * (-1) ** int(rng.integers(2))
    pairs: Iterator[tuple[Any, Any]] = zip(function.arguments, call.args, strict=False)
    args = (
        _all_near(x, abs(far) if a.values == "positive" else far, 1 if equal else _NEAR, rng)
        if _is_unbounded(a, x)
        else x
        for a, x in pairs
    )
    return replace(call, args=tuple(args))


def _is_unbounded(argument: Any, given: Any) -> bool:
    floats = isinstance(given, Tensor) and isinstance(argument, Array) and argument.differentiable
    return floats and argument.values in _UNBOUNDED and not argument.make and argument.bounds is None


def _all_near(tensor: Tensor, number: float, count: int, rng: np.random.Generator) -> Tensor:
    """The tensor with so many different numbers, which are near the given one."""
    values = number * (1 + rng.integers(0, count, math.prod(tensor.shape)) / 64)
    return replace(tensor, specials=tuple(enumerate(values.tolist())))


def with_specials(call: Call, changed: Any) -> Call:
    """The call with other numbers over single elements: what ``changed`` says for each tensor."""
    args = (replace(x, specials=changed(x)) if isinstance(x, Tensor) else x for x in call.args)
    return replace(call, args=tuple(args))
