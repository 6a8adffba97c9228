"""What adapters share whose framework has no ctx: a body's call as plain functions of its tensors."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from autograd_conformance.implementations.protocol import Tensors


class Context:
    """The ctx of a body, with what forward leaves for backward and for a forward-mode rule."""

    needs_input_grad: tuple[bool, ...]

    def __init__(self, needs_input_grad: Sequence[bool] | None = None) -> None:
        self.saved_tensors: Tensors = ()
        self.marked: Tensors = ()
        self.materialize_grads = True
        if needs_input_grad is not None:
            self.needs_input_grad = tuple(needs_input_grad)

    def save_for_backward(self, *tensors: Any) -> None:
        self.saved_tensors = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Nothing: what is saved serves both modes."""

    def mark_non_differentiable(self, *outputs: Any) -> None:
        self.marked = outputs

    def set_materialize_grads(self, value: bool) -> None:
        self.materialize_grads = value

    def flattened(self, is_tensor: Callable[[Any], bool]) -> tuple[Tensors, Any]:
        """The tensors that the context holds, and all that is needed to put them back; for pytrees."""
        names = sorted(name for name, value in vars(self).items() if is_tensor(value))
        rest = tuple(
            (name, value) for name, value in vars(self).items() if name not in (*names, "saved_tensors", "marked")
        )
        return (self.saved_tensors, tuple(getattr(self, name) for name in names)), (tuple(names), rest)

    @classmethod
    def rebuilt(cls, rest: Any, tensors: Tensors) -> Context:
        """The context that was flattened, with these tensors."""
        ctx, (names, others) = cls(), rest
        vars(ctx).update(others)
        ctx.saved_tensors, values = tensors
        vars(ctx).update(zip(names, values, strict=True))
        return ctx

    def holds(self, output: Any) -> bool:
        """Whether the output was marked as non-differentiable."""
        return any(output is each for each in self.marked)


@dataclass
class Lowered:
    """A call of a body: ``tensors`` are its tensor arguments, at ``slots``; the others are closed over."""

    cls: Any
    args: tuple[Any, ...]
    is_tensor: Callable[[Any], bool]
    slots: tuple[int, ...] = field(init=False)
    bare: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        # Arguments that are left out have their defaults, as in any call.
        names = list(inspect.signature(self.cls.forward).parameters.values())
        given = len(self.args) + (not self._separate)
        self.args += tuple(p.default for p in names[given:] if p.default is not p.empty)
        self.slots = tuple(i for i, value in enumerate(self.args) if self.is_tensor(value))

    @property
    def _separate(self) -> bool:
        return hasattr(self.cls, "setup_context")

    @property
    def tensors(self) -> Tensors:
        return tuple(self.args[i] for i in self.slots)

    def forward(
        self, tensors: Sequence[Any], needs: Sequence[bool] | None = None, make: Callable[..., Any] = Context
    ) -> tuple[Tensors, Any]:
        """The outputs for these tensors, always a tuple, and the ctx that ``make`` makes.

        ``needs`` says which tensors require a gradient.
        """
        args = list(self.args)
        for slot, tensor in zip(self.slots, tensors, strict=True):
            args[slot] = tensor
        ctx = make(needs if needs is None else self._per_argument(needs, False))
        outputs = self.cls.forward(*args) if self._separate else self.cls.forward(ctx, *args)
        if self._separate:
            self.cls.setup_context(ctx, tuple(args), outputs)
        self.bare = not isinstance(outputs, tuple)
        return (outputs,) if self.bare else outputs, ctx

    def backward(self, ctx: Context, cotangents: Sequence[Any]) -> Tensors:
        """What backward returns, one entry for each tensor; what there is beyond the arguments comes last."""
        found = self.cls.backward(ctx, *cotangents)
        entries = found if isinstance(found, tuple) else (found,)
        mine = tuple(entries[i] for i in self.slots if i < len(entries))
        return mine + tuple(entries[len(self.args) :])

    def jvp(self, ctx: Context, tangents: Sequence[Any]) -> Tensors:
        """The outputs' tangents by the body's own forward-mode rule."""
        found = self.cls.jvp(ctx, *self._per_argument(tangents, None))
        return found if isinstance(found, tuple) else (found,)

    def returned(self, outputs: Sequence[Any]) -> Any:
        """The outputs as forward returned them: bare or as a tuple."""
        return outputs[0] if self.bare else tuple(outputs)

    def _per_argument(self, values: Sequence[Any], other: Any) -> Tensors:
        found = [other] * len(self.args)
        for slot, value in zip(self.slots, values, strict=True):
            found[slot] = value
        return tuple(found)


def autograd_namespace(call: Callable[[Lowered], Any], is_tensor: Callable[[Any], bool]) -> SimpleNamespace:
    """The namespace ``ag`` of bodies whose ``apply`` is ``call``, given the lowered call."""

    class Function:
        """The base class of a custom Function."""

        @classmethod
        def apply(cls, *args: Any) -> Any:
            return call(Lowered(cls, args, is_tensor))

    return SimpleNamespace(Function=Function, once_differentiable=lambda backward: backward)


def as_tuple(outputs: Any) -> Tensors:
    """The outputs as a tuple, of one if they are a bare tensor."""
    return tuple(outputs) if isinstance(outputs, tuple | list) else (outputs,)


def merged(values: Sequence[Any], moves: Sequence[bool], moving: Sequence[Any]) -> Tensors:
    """The values, those that move replaced in order."""
    given = iter(moving)
    return tuple(next(given) if m else x for x, m in zip(values, moves, strict=True))


def of_moving(f: Callable[..., Any], values: Sequence[Any], moves: Sequence[bool]) -> tuple[Any, Tensors]:
    """``f`` as a function of the values that move, the others being closed over, and these values."""
    moving = tuple(x for x, m in zip(values, moves, strict=True) if m)
    return lambda *given: f(*merged(values, moves, given)), moving
