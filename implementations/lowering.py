"""What adapters share whose framework has no ctx: a body's call as plain functions of its tensors."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary

from autograd_conformance.implementations.protocol import Mask, Tensors, as_tuple

# The defaults of what each class's forward takes: finding them out takes as long as a small call.
_defaults: WeakKeyDictionary[Any, list[Any]] = WeakKeyDictionary()


class Context:
    """The ctx of a body, with what forward leaves for backward and for a forward-mode rule."""

    needs_input_grad: tuple[bool, ...]

    def __init__(self, needs_input_grad: Mask | None = None) -> None:
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

    def rebound(self, mine: Sequence[Any], others: Sequence[Any]) -> Context:
        """A copy whose saved tensors are others where they are among mine; for another level of tracing."""
        known, ctx = {id(x): y for x, y in zip(mine, others, strict=True)}, copy(self)
        ctx.saved_tensors = tuple(known.get(id(x), x) for x in self.saved_tensors)
        return ctx


@dataclass
class Lowered:
    """A call of a body: ``tensors`` are its tensor arguments, at ``slots``; the others are closed over.

    What the last `forward` returned is known of it: whether it was ``bare``, and which outputs were ``marked`` as
    non-differentiable.
    """

    cls: Any
    args: tuple[Any, ...]
    is_tensor: Callable[[Any], bool]
    slots: tuple[int, ...] = field(init=False)
    bare: bool = field(init=False, default=False)
    marked: tuple[bool, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        # Arguments that are left out have their defaults, as in any call.
        if self.cls not in _defaults:
            _defaults[self.cls] = [p.default for p in inspect.signature(self.cls.forward).parameters.values()]
        given = len(self.args) + (not self._separate)
        self.args += tuple(d for d in _defaults[self.cls][given:] if d is not inspect.Parameter.empty)
        self.slots = tuple(i for i, value in enumerate(self.args) if self.is_tensor(value))

    @property
    def _separate(self) -> bool:
        return hasattr(self.cls, "setup_context")

    @property
    def tensors(self) -> Tensors:
        return tuple(self.args[i] for i in self.slots)

    def forward(
        self, tensors: Sequence[Any], needs: Mask | None = None, make: Callable[..., Any] = Context
    ) -> tuple[Tensors, Any]:
        """The outputs for these tensors, always a tuple, and the ctx that ``make`` makes.

        ``needs`` says which tensors require a gradient.
        """
        args = self._arguments(tensors, self.args)
        ctx = make(needs if needs is None else self.needed(needs))
        outputs = self.cls.forward(*args) if self._separate else self.cls.forward(ctx, *args)
        if self._separate:
            self.cls.setup_context(ctx, args, outputs)
        self.bare = not isinstance(outputs, tuple)
        parts = self.parts(outputs)
        self.marked = tuple(map(ctx.holds, parts))
        return parts, ctx

    def backward(self, ctx: Context, cotangents: Sequence[Any]) -> Tensors:
        """What backward returns, one entry for each tensor; what there is beyond the arguments comes last."""
        found = self.cls.backward(ctx, *cotangents)
        entries = found if isinstance(found, tuple) else (found,)
        mine = tuple(entries[i] for i in self.slots if i < len(entries))
        return mine + tuple(entries[len(self.args) :])

    def jvp(self, ctx: Context, tangents: Sequence[Any]) -> Tensors:
        """The outputs' tangents by the body's own forward-mode rule."""
        found = self.cls.jvp(ctx, *self._arguments(tangents))
        return found if isinstance(found, tuple) else (found,)

    def vmap(self, tensors: Sequence[Any], axes: Sequence[int | None]) -> tuple[Tensors, Tensors]:
        """The batched outputs and their axes by the body's own batching rule, for tensors batched along axes."""
        size = next(x.shape[axis] for x, axis in zip(tensors, axes, strict=True) if axis is not None)
        args = self._arguments(tensors, self.args)
        outputs, found = self.cls.vmap(SimpleNamespace(batch_size=size), self._arguments(axes), *args)
        return as_tuple(outputs), as_tuple(found)

    def needed(self, needs: Mask) -> tuple[bool, ...]:
        """The ctx's needs_input_grad, which has an entry for each argument, of one for each tensor."""
        return self._arguments(needs, [False] * len(self.args))

    def returned(self, parts: Sequence[Any]) -> Any:
        """The outputs as forward returned them: bare or as a tuple."""
        return parts[0] if self.bare else tuple(parts)

    def parts(self, returned: Any) -> Tensors:
        """The outputs one by one, always a tuple: the inverse of `returned`."""
        return (returned,) if self.bare else returned

    def leaving(self, parts: Sequence[Any], cut: Callable[[Any], Any]) -> Tensors:
        """The outputs, those that were marked as non-differentiable ``cut`` from what they come from."""
        return tuple(cut(y) if m else y for y, m in zip(parts, self.marked, strict=True))

    def _arguments(self, of_tensors: Sequence[Any], others: Sequence[Any] | None = None) -> Tensors:
        """One for each argument: for a tensor its own, for another the other's or None."""
        found = [None] * len(self.args) if others is None else list(others)
        for slot, value in zip(self.slots, of_tensors, strict=True):
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
