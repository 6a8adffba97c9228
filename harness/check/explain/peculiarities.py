"""The peculiarities of a call: what is special about its layouts, its mask and its unused outputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from autograd_conformance.reference.definitions import Function
from autograd_conformance.strategies.calls import Call, Cotangent, Tensor, copied, masked, with_copied_cotangents


@dataclass(frozen=True)
class Peculiarity:
    """Something that a call can have and do without.

    ``property_id`` is the property about it. ``words`` name the choice of a call that does without it, "" if no test is
    run again with that choice. ``without`` gives such a call.
    """

    property_id: str
    words: str
    without: Callable[[Function, Call], Call]


def _masking_nothing(function: Function, call: Call) -> Call:
    given = zip(function.arguments, call.args, strict=False)
    return masked(call, [argument.differentiable for argument, value in given if isinstance(value, Tensor)])


def _using_every_output(function: Function, call: Call) -> Call:
    pairs = zip(function.outputs, call.cotangents, strict=True)
    used = (Cotangent() if output.differentiable and not given else given for output, given in pairs)
    return replace(call, cotangents=tuple(used))


# In the order in which they are removed one after the other.
PECULIARITIES = (
    Peculiarity("VJP-COTANGENT-LAYOUT", "contiguous cotangents", lambda _, call: with_copied_cotangents(call)),
    Peculiarity("FWD-LAYOUT", "contiguous tensors", lambda _, call: copied(call)),
    Peculiarity("VJP-MASK", "every tensor requiring grad", _masking_nothing),
    Peculiarity("VJP-UNUSED", "", _using_every_output),
)
