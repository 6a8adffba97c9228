"""What a reproduction script is made of: the call as names and values, from which an adapter writes its own words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


class NoScript(Exception):
    """There is no script for this failure; the message says why."""


@dataclass(frozen=True)
class Named:
    """A tensor of the script: its name, and what it is made of."""

    name: str
    values: Any
    dtype: str
    layout: str = "contiguous"
    track: bool = False


@dataclass(frozen=True)
class OtherCall:
    """A call made of parts of another.

    ``tensors`` has, for each tensor, the number of the tensor that it is made of, and the method call that gives the
    part. ``outputs`` has the method calls that give the parts of the outputs, ``statics`` the expressions of other
    arguments that differ, by position. The outputs have the ``sign`` of those of the other call.
    """

    tensors: tuple[tuple[int, str], ...]
    outputs: tuple[str, ...]
    statics: Mapping[int, str]
    sign: float


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A failing call.

    ``apply`` is the expression that is called, and ``arguments`` are the expressions it is called with: ``{0}`` in them
    stands for the first of the ``tensors``, which are at the positions ``slots``. ``unpacking`` says how outputs come
    back: ``single``, as a ``tuple``, or ``mixed`` with values that are not tensors. ``kind`` and ``number`` say which
    tensor is wrong: an ``output`` or a ``gradient``. ``finding`` is the failure as the report has it, ``component`` the
    part of it that is data, ``choices`` what its test varied. ``more`` makes further values that a property needs.
    ``own`` marks a Function of which only the code is known, ``literal`` says that the number in the finding does not
    depend on it. Elsewhere the plain call in the dtype ``wide`` is what is right, or a ``reference`` in its place; and
    ``slope_of`` is what finite differences are taken of, empty where their result is in the finding. ``cast`` is the
    dtype of the device's autocast.
    """

    apply: str
    arguments: tuple[str, ...]
    slots: tuple[int, ...]
    tensors: tuple[Named, ...]
    outputs: tuple[str, ...]
    differentiable: tuple[bool, ...]
    described: tuple[Any, ...]
    cotangents: tuple[Named | None, ...]
    undifferentiable: tuple[int, ...]
    device: str
    inplace: tuple[int, ...]
    separate: bool
    materialize: bool
    unpacking: str
    own: bool
    backward_only: bool
    kind: str
    number: int
    finding: Mapping[str, Any]
    component: Mapping[str, Any]
    choices: Mapping[str, Any]
    reference: str
    literal: bool
    slope_of: str
    wide: str
    cast: str
    more: Mapping[str, Callable[[], Any]] = field(default_factory=dict)

    @property
    def aspect(self) -> str:
        """What is wrong: a ``value``, a ``shape``, the ``presence`` of a tensor, or that it ``raised``."""
        kind = self.finding.get("kind", "")
        return str(self.component.get("aspect") or (kind if kind in ("raised", "detached") else ""))

    @property
    def tracked(self) -> list[int]:
        """The numbers of the tensors that require grad."""
        return [n for n, tensor in enumerate(self.tensors) if tensor.track]

    @property
    def used(self) -> list[int]:
        """The numbers of the outputs that have a cotangent."""
        return [n for n, cotangent in enumerate(self.cotangents) if cotangent is not None]
