"""Observation of a custom Function while it runs, and of the tensors around it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np

from autograd_conformance.implementations.protocol import Implementation, as_tuple
from autograd_conformance.reference.definitions import FLOATING


@dataclass
class Observation:
    """What an observed Function saw when it ran last, and how often it ran."""

    forwards: int = 0
    backwards: int = 0
    needs_in_forward: Any = None
    needs_in_backward: Any = None
    # Which outputs are tensors, and the cotangents of all.
    tensors: tuple[bool, ...] = ()
    cotangents: tuple[Any, ...] = ()
    gradients: tuple[Any, ...] = ()

    @property
    def cotangents_of_tensors(self) -> tuple[Any, ...]:
        """The cotangents of outputs that are tensors: the engine passes None for others."""
        told = len(self.cotangents) == len(self.tensors)
        return tuple(compress(self.cotangents, self.tensors)) if told else self.cotangents

    def gradient_of(self, argument: int) -> Any:
        """The gradient that backward returned for an argument, None if it returned none."""
        return self.gradients[argument] if argument < len(self.gradients) else None


def observed(cls: Any, base: Any, *, needs: bool = True) -> tuple[Any, Observation]:
    """A subclass of the custom Function ``cls`` with the same behaviour, and the observation that it records.

    ``base`` is the implementation's ``Function``. ``needs`` says whether ctx has ``needs_input_grad``. A callable that
    is not a class is returned unchanged, and nothing is recorded.
    """
    seen = Observation()
    is_class: bool = inspect.isclass(cls)
    if not is_class:
        return cls, seen

    def needs_of(ctx: Any) -> Any:
        return ctx.needs_input_grad if needs else None

    separate = getattr(cls, "setup_context", None) is not getattr(base, "setup_context", None)
    entry = "setup_context" if separate else "forward"

    @functools.wraps(getattr(cls, entry))
    def enter(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        seen.forwards += 1
        seen.needs_in_forward = needs_of(ctx)
        returned = getattr(cls, entry)(ctx, *args, **kwargs)
        outputs = as_tuple(args[-1] if separate else returned)
        seen.tensors = tuple(hasattr(y, "shape") for y in outputs)
        return returned

    def backward(ctx: Any, *cotangents: Any) -> Any:
        seen.backwards += 1
        seen.needs_in_backward = needs_of(ctx)
        boxed = len(cotangents) == 1 and isinstance(cotangents[0], list)
        seen.cotangents = tuple(cotangents[0] if boxed else cotangents)
        gradients = cls.backward(ctx, *cotangents)
        seen.gradients = gradients if isinstance(gradients, tuple) else (gradients,)
        return gradients

    methods = {entry: staticmethod(enter), "backward": staticmethod(backward)}
    return type(cls)(cls.__name__, (cls,), methods), seen


def state(implementation: Implementation, tensor: Any) -> dict[str, Any]:
    """The state of a tensor by the names of its parts, as far as the implementation claims them; empty for None."""
    i = implementation
    if tensor is None:
        return {}
    parts = {name: read(i, tensor) for name, (claim, read) in _PARTS.items() if claim in i.capabilities}
    return {**i.describe(tensor)._asdict(), **parts, "values": _values(i, tensor)}


# Parts of a tensor's state, the capability that has them, and how they are read.
_PARTS: Mapping[str, tuple[str, Callable[[Implementation, Any], Any]]] = {
    "version": ("inplace", lambda i, x: i.version(x)),
    "strides": ("views", lambda i, x: i.strides(x)),
    "requires_grad": ("requires_grad", lambda i, x: i.requires_grad(x)),
}


def _values(implementation: Implementation, tensor: Any) -> Any:
    try:
        return implementation.numpy(tensor).copy()
    except RuntimeError:
        # Its memory was freed.
        return np.array("freed")


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """The parts of a state that differ, with both values."""
    return [f"{part} {before[part]} became {after[part]}" for part in before if not _same(before[part], after[part])]


def _same(a: Any, b: Any) -> bool:
    return bool(a.tobytes() == b.tobytes()) if isinstance(a, np.ndarray) else bool(a == b)


def copied(implementation: Implementation, tensors: Sequence[Any]) -> list[Any]:
    """The values of the tensors, in NumPy; None for None."""
    return [None if x is None else implementation.numpy(x) for x in tensors]


def equal(implementation: Implementation, first: Sequence[Any], second: Sequence[Any]) -> bool:
    """Whether two lists of tensors are equal bit for bit; None equals None."""
    pairs = zip(copied(implementation, first), copied(implementation, second), strict=True)
    return all(a is b or (a is not None and b is not None and _same(a, b)) for a, b in pairs)


def all_finite(implementation: Implementation, tensors: Sequence[Any]) -> bool:
    """Whether every element of every tensor is finite."""
    return all(bool(np.all(np.isfinite(implementation.numpy(x)))) for x in tensors)


def sharing_memory(
    implementation: Implementation, gradients: Mapping[str, Any], others: Mapping[str, Any]
) -> list[str]:
    """The pairs of a gradient and another tensor that share memory, by their names."""
    return [
        f"{other} and the {name}"
        for name, gradient in gradients.items()
        for other, tensor in others.items()
        if gradient is not None and implementation.shares_memory(gradient, tensor)
    ]


def may_be_view(implementation: Implementation, output: Any, inputs: Sequence[Any]) -> bool:
    """Whether an output may be a view of an input: it shares memory, or has no elements."""
    if "views" not in implementation.capabilities:
        return False
    empty = 0 in implementation.describe(output).shape
    return empty or any(implementation.shares_memory(output, x) for x in inputs)


def held_by_node(implementation: Implementation, outputs: Sequence[Any]) -> list[str]:
    """The attributes of ctx, of the call that made these outputs, that hold tensors."""
    if "requires_grad" not in implementation.capabilities:
        return []
    attributes = [getattr(implementation.node(y), "__dict__", {}) for y in outputs if implementation.requires_grad(y)]
    return sorted({name for each in attributes for name, value in each.items() if _holds_tensor(implementation, value)})


def _holds_tensor(implementation: Implementation, value: Any, depth: int = 2) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return implementation.is_tensor(value) or (
        depth > 0 and any(_holds_tensor(implementation, v, depth - 1) for v in inner)
    )


def _constant(value: float) -> Callable[[Any], Any]:
    return lambda _: value


# What a tensor is overwritten with, made from its values. Nothing beyond -4 and 4 is drawn. Other integers than a
# tensor's own may be no valid indices.
_OVERWRITTEN: Mapping[str, Callable[[Any], Any]] = {
    **{str(value): _constant(value) for value in (7, 1000, -1000, 0)},
    "its negative": lambda values: -values,
}
_OVERWRITTEN_INTEGERS: Mapping[str, Callable[[Any], Any]] = {
    "0": _constant(0),
    "its reverse": lambda values: values.reshape(-1)[::-1].reshape(values.shape),
}


def other_values(dtype: str) -> Mapping[str, Callable[[Any], Any]]:
    """What a tensor of this dtype is overwritten with, by words: functions of its values in NumPy."""
    return _OVERWRITTEN if dtype in FLOATING else _OVERWRITTEN_INTEGERS
