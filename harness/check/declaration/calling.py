"""The implementation adapted to one user's Function: how it is called and differentiated."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any

from autograd_conformance.harness.check.declaration.freedom import Canonical
from autograd_conformance.harness.outcomes import OutOfTime, one_line
from autograd_conformance.harness.testing.steering import STEERING
from autograd_conformance.implementations.classes import derives
from autograd_conformance.implementations.misbehaving import Misbehaves, Varies
from autograd_conformance.implementations.protocol import BackwardPass, Implementation, Mask, Tensors, as_tuple


@dataclass(frozen=True)
class Treatment:
    """How a Function must be called."""

    # It draws random numbers: seed them before each call and, with another seed, before each backward.
    seeded: bool = False
    # Its graph can be used only once: call it again for each backward.
    fresh: bool = False
    # Gradients must be read from the leaves after .backward().
    backward_only: bool = False
    # Turns the arguments of a call into what the Function gets.
    linked: Callable[[Sequence[Any]], Sequence[Any]] = tuple


class Native:
    """A callable that is not a Function class; stands where the suite expects a class."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self.apply = call


class NotTensors(TypeError):
    """A Function returned no tensor."""


def adapted(
    implementation: Implementation, treatment: Treatment, cls: Any = None, count: int = 0,
    canonical: Canonical | None = None,
) -> Implementation:  # fmt: skip
    """The implementation with this treatment; it calls a `Native` directly.

    The Function ``cls`` must return ``count`` tensors in every call, if that is known. Its outputs are mapped to their
    ``canonical`` form.
    """
    kind = type(implementation)
    treating: Any = type(kind.__name__, (_Treating, kind), {**vars(treatment), "__module__": kind.__module__})
    found: Implementation = treating.__new__(treating)
    vars(found).update(vars(implementation), mine=(cls, count, canonical))
    return found


def unseeded(implementation: Implementation) -> Implementation:
    """The adapted implementation, which seeds nothing."""
    found = copy(implementation)
    vars(found)["seeded"] = False
    return found


def _same(cls: Any, other: Any) -> bool:
    """Whether two classes or `Native` are the same Function, which may be observed."""
    both_native = isinstance(cls, Native) and isinstance(other, Native)
    return cls.apply == other.apply if both_native else derives(cls, other)


class Steered(Misbehaves):
    """A Function raised what steers pytest, Hypothesis or the process, and not the Function's caller."""

    cure = "a Function must not skip a test, discard an example or end the process; refuse with a ValueError"


@contextmanager
def orderly() -> Iterator[None]:
    """A context around the user's code: what it raises is an exception, and decides about nothing else."""
    try:
        yield
    except OutOfTime:
        raise
    except STEERING as raised:
        raise Steered(one_line(raised)) from raised
    except Exception:
        raise
    except KeyboardInterrupt as raised:
        # It may be the user's, except where interrupts are ignored.
        if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
            raise
        raise Steered(one_line(raised)) from raised
    except BaseException as raised:
        raise Steered(one_line(raised)) from raised


class _Treating(Implementation):
    """The methods that `adapted` puts before those of an implementation."""

    transparent = True
    seeded: bool
    fresh: bool
    backward_only: bool
    linked: Callable[[Sequence[Any]], Sequence[Any]]
    mine: tuple[Any, int, Canonical | None]
    # Called before each call and each backward of the Function.
    on_call: Callable[[], None] = staticmethod(lambda: None)

    def function(self, cls: Any) -> Callable[..., Any]:
        call = cls.apply if isinstance(cls, Native) else super().function(cls)
        keep, (mine, count, canonical) = self.is_tensor, self.mine
        linked = self.linked
        if not _same(cls, mine):
            count, canonical, linked = 0, None, tuple
        seeding = self.reseed if self.seeded else None

        def called(*args: Any) -> Any:
            self.on_call()
            if seeding is not None:
                seeding()
            with orderly():
                outputs = call(*linked(args))
            if canonical is not None:
                outputs = canonical(as_tuple(outputs), args)
            tensors = tuple(y for y in as_tuple(outputs) if keep(y))
            if not tensors:
                raise NotTensors(
                    f"it must return a tensor or a tuple with tensors, but returned {type(outputs).__name__}"
                )
            if count not in (0, len(tensors)):
                raise Varies(f"the number of tensors that it returns varies: {len(tensors)} here, {count} before")
            return outputs if keep(outputs) else tensors

        return called

    def differentiate(
        self, f: Callable[..., Tensors], primals: Tensors, tracked: Mask
    ) -> tuple[Tensors, Callable[..., Any]]:
        outputs, found = self._differentiated(f, primals, tracked)

        def gradients(cotangents: Sequence[Any], wanted: Mask, differentiable: bool) -> Any:
            self.on_call()
            with orderly():
                return found(cotangents, wanted, differentiable)

        if not (self.seeded or self.fresh):
            return outputs, gradients
        unused: list[BackwardPass] = [gradients]
        once_more = partial(self._once_more, f, primals, tracked)

        def again(cotangents: Sequence[Any], wanted: Mask, differentiable: bool) -> Any:
            use: BackwardPass = unused.pop() if unused else once_more()
            if self.seeded:
                # Another seed than before forward: a backward that draws its mask again must not get the same one.
                self.reseed(1)
            if not self.fresh:
                unused.append(use)
            return use(cotangents, wanted, differentiable)

        return outputs, again

    def _once_more(self, f: Callable[..., Tensors], primals: Tensors, tracked: Mask) -> BackwardPass:
        return self._differentiated(f, primals, tracked)[1]

    def _differentiated(
        self, f: Callable[..., Tensors], primals: Tensors, tracked: Mask
    ) -> tuple[Tensors, BackwardPass]:
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
