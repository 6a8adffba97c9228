"""Calls whose numbers need double precision: in single precision they would be others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from autograd_conformance.reference.definitions import Array, Function
from autograd_conformance.strategies.calls import Call, Tensor, tensor_values, with_fill_of_cotangents
from autograd_conformance.strategies.given import NEAR
from autograd_conformance.strategies.values import DOMAINS


def in_double(call: Call, function: Function) -> Call:
    """The call with inputs and cotangents in which bits are set that single precision lacks.

    A call that has special values already stays as it is.
    """
    if any(tensor.specials for tensor in call.tensors):
        return call
    rng = np.random.default_rng(call.seed)
    rows = zip(function.arguments, call.args, tensor_values(call, function), strict=False)
    args = tuple(_refined(argument, given, values, rng) for argument, given, values in rows)
    return with_fill_of_cotangents(replace(call, args=args), "dense")


def _refined(argument: Any, given: Any, values: Any, rng: np.random.Generator) -> Any:
    if not (isinstance(given, Tensor) and isinstance(argument, Array) and argument.differentiable):
        return given
    if argument.recorded is not None:
        return replace(given, fill=NEAR)
    moves = rng.integers(1, 2**8, values.shape).astype(np.float64)
    if DOMAINS[argument.values].symmetric:
        moves = moves + np.swapaxes(moves, -1, -2)
    refined = values * (1 + 2.0**-36 * moves)
    return replace(given, specials=tuple(enumerate(refined.reshape(-1).tolist())))
