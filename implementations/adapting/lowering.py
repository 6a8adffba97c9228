"""A call of a body as plain functions of its tensors, for adapters of frameworks that have no ctx."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary

from autograd_conformance.implementations.protocol import Mask, Tensors, as_tuple

# The defaults of the parameters of each class's forward: to inspect them takes as long as a small call.
_defaults: WeakKeyDictionary[Any, list[Any]] = WeakKeyDictionary()


class Context:
    """The ctx of a body: what forward saves for backward and for a forward-mode rule."""

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
        """Does nothing: both modes read what `save_for_backward` saved."""

    def mark_non_differentiable(self, *outputs: Any) -> None:
        self.marked = outputs

    def set_materialize_grads(self, value: bool) -> None:
        self.materialize_grads = value

    def flattened(self, is_tensor: Callable[[Any], bool]) -> tuple[Tensors, Any]:
        """The tensors in the context, and everything else that `rebuilt` needs; for pytrees."""
        names = sorted(name for name, value in vars(self).items() if is_tensor(value))
        rest = tuple(
            (name, value) for name, value in vars(self).items() if name not in (*names, "saved_tensors", "marked")
        )
        return (self.saved_tensors, tuple(getattr(self, name) for name in names)), (tuple(names), rest)

    @classmethod
    def rebuilt(cls, rest: Any, tensors: Tensors) -> Context:
        """The context that was `flattened`, with these tensors."""
        ctx, (names, others) = cls(), rest
        vars(ctx).update(others)
        ctx.saved_tensors, values = tensors
        vars(ctx).update(zip(names, values, strict=True))
        return ctx

    def holds(self, output: Any) -> bool:
        """Whether the output was marked as non-differentiable."""
        return any(output is each for each in self.marked)

    def rebound(self, mine: Sequence[Any], others: Sequence[Any]) -> Context:
        """A copy with ``others`` instead of the saved tensors among ``mine``, for another level of tracing."""
        known, ctx = {id(x): y for x, y in zip(mine, others, strict=True)}, copy(self)
        ctx.saved_tensors = tuple(known.get(id(x), x) for x in self.saved_tensors)
        return ctx


@dataclass
class Lowered:
    """A call of a body: ``tensors`` are its tensor arguments, at ``slots``; the other arguments are closed over.

    ``bare`` says whether the last `forward` returned a bare tensor, ``marked`` which of its outputs it marked as
    non-differentiable.
    """

    cls: Any
    args: tuple[Any, ...]
    is_tensor: Callable[[Any], bool]
    slots: tuple[int, ...] = field(init=False)
    bare: bool = field(init=False, default=False)
    marked: tuple[bool, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        # Arguments that are left out get their defaults, as in any call.
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
        """The outputs for these tensors, always a tuple, and the ctx, which ``make`` creates.

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
        """The gradients that backward returns, one for each tensor; then any gradients beyond the arguments."""
        found = self.cls.backward(ctx, *cotangents)
        entries = found if isinstance(found, tuple) else (found,)
        mine = tuple(entries[i] for i in self.slots if i < len(entries))
        return mine + tuple(entries[len(self.args) :])

    def jvp(self, ctx: Context, tangents: Sequence[Any]) -> Tensors:
        """The outputs' tangents by the body's own forward-mode rule."""
        found = self.cls.jvp(ctx, *self._arguments(tangents))
        return found if isinstance(found, tuple) else (found,)

    def vmap(self, tensors: Sequence[Any], axes: Sequence[int | None]) -> tuple[Tensors, Tensors]:
        """The batched outputs and their axes, by the body's own batching rule."""
        size = next(x.shape[axis] for x, axis in zip(tensors, axes, strict=True) if axis is not None)
        args = self._arguments(tensors, self.args)
        outputs, found = self.cls.vmap(SimpleNamespace(batch_size=size), self._arguments(axes), *args)
        return as_tuple(outputs), as_tuple(found)

    def needed(self, needs: Mask) -> tuple[bool, ...]:
        """The ctx's needs_input_grad, with a flag for each argument, from the flags of the tensors."""
        return self._arguments(needs, [False] * len(self.args))

    def returned(self, parts: Sequence[Any]) -> Any:
        """The outputs in the form in which forward returned them: bare or as a tuple."""
        return parts[0] if self.bare else tuple(parts)

    def parts(self, returned: Any) -> Tensors:
        """The outputs, always as a tuple: the inverse of `returned`."""
        return (returned,) if self.bare else returned

    def leaving(self, parts: Sequence[Any], cut: Callable[[Any], Any]) -> Tensors:
        """The outputs, with ``cut`` applied to those that were marked as non-differentiable."""
        return tuple(cut(y) if m else y for y, m in zip(parts, self.marked, strict=True))

    def _arguments(self, of_tensors: Sequence[Any], others: Sequence[Any] | None = None) -> Tensors:
        """A value for each argument: tensors have those in ``of_tensors``, the rest those in ``others``, or None."""
        found = [None] * len(self.args) if others is None else list(others)
        for slot, value in zip(self.slots, of_tensors, strict=True):
            found[slot] = value
        return tuple(found)


def autograd_namespace(call: Callable[[Lowered], Any], is_tensor: Callable[[Any], bool]) -> SimpleNamespace:
    """The namespace ``ag`` of bodies; ``apply`` passes the lowered call to ``call``."""

    class Function:
        """The base class of a custom Function."""

        @classmethod
        def apply(cls, *args: Any) -> Any:
            return call(Lowered(cls, args, is_tensor))

    return SimpleNamespace(Function=Function, once_differentiable=lambda backward: backward)
