"""What the suite calls when it calls a user's Function: the implementation, as that Function wants to be treated."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from autograd_conformance.implementations.protocol import Gradients, Implementation, Mask, Tensors, as_tuple

if TYPE_CHECKING:
    from autograd_conformance.harness.own.declaration import Declaration


class Native:
    """A callable in the place of a custom Function class, for what is none."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self.apply = call


class NotTensors(TypeError):
    """A Function returned what cannot be checked."""


def adapted(implementation: Implementation, declaration: Declaration, *, as_declared: bool = True) -> Implementation:
    """The implementation, on which a native Function is called as it is, and treated as declared."""
    kind = type(implementation)
    members = {
        "seeded": as_declared and declaration.stochastic,
        # What .backward() has gone through is gone.
        "fresh": declaration.backward_only or (as_declared and declaration.single_backward),
        "backward_only": declaration.backward_only,
        "__module__": kind.__module__,
    }
    found = copy.copy(implementation)
    found.__class__ = type(kind.__name__, (_Treating, kind), members)
    return found


class _Treating(Implementation):
    """Calls what is native as it is; seeds a stochastic one; calls again what allows a single backward."""

    # Whether the Function draws random numbers, and whether a graph through it can be used once.
    seeded: bool
    fresh: bool
    # Whether gradients have to be taken from the leaves.
    backward_only: bool

    def function(self, cls: Any) -> Callable[..., Any]:
        call = cls.apply if isinstance(cls, Native) else super().function(cls)
        keep = self.is_tensor
        seeding = self.reseed if self.seeded else None

        def called(*args: Any) -> Any:
            if seeding is not None:
                seeding()
            outputs = call(*args)
            if keep(outputs):
                return outputs
            tensors = tuple(y for y in as_tuple(outputs) if keep(y))
            if not tensors:
                raise NotTensors(f"it returned {type(outputs).__name__}, and no tensor")
            return tensors

        return called

    def differentiate(
        self, f: Callable[..., Tensors], primals: Tensors, tracked: Mask
    ) -> tuple[Tensors, Callable[..., Any]]:
        outputs, gradients = self._differentiated(f, primals, tracked)
        if not (self.seeded or self.fresh):
            return outputs, gradients
        unused, once_more = [gradients], partial(self._once_more, f, primals, tracked)

        def again(cotangents: Sequence[Any], wanted: Mask, differentiable: bool) -> Any:
            use: Gradients = unused.pop() if unused else once_more()
            if self.seeded:
                self.reseed()
            if not self.fresh:
                unused.append(use)
            return use(cotangents, wanted, differentiable)

        return outputs, again

    def _once_more(self, f: Callable[..., Tensors], primals: Tensors, tracked: Mask) -> Gradients:
        return self._differentiated(f, primals, tracked)[1]

    def _differentiated(self, f: Callable[..., Tensors], primals: Tensors, tracked: Mask) -> tuple[Tensors, Gradients]:
        if not self.backward_only:
            return super().differentiate(f, primals, tracked)  # type: ignore[safe-super]
        leaf: Callable[..., Any] = self.leaf  # type: ignore[attr-defined]
        given = tuple(map(leaf, primals, tracked))
        outputs = as_tuple(f(*given))

        def gradients(cotangents: Sequence[Any], _: Mask, differentiable: bool) -> Tensors:
            ends = [(y, g) for y, g in zip(outputs, cotangents, strict=True) if g is not None and self.requires_grad(y)]
            if ends:
                self.accumulate(*zip(*ends, strict=True), differentiable)  # type: ignore[attr-defined]
            found = tuple(x.grad for x in given)
            for x in given:
                x.grad = None
            return found

        return outputs, gradients
