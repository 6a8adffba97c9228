"""The ways to make an implementation wrong in one way."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from autograd_conformance.implementations.model import ModelImplementation
from autograd_conformance.implementations.protocol import Implementation
from autograd_conformance.implementations.torch import TorchImplementation

MODEL = ModelImplementation()


def engine(name: str, method: Callable[..., Any], of: type[Any] = TorchImplementation) -> Implementation:
    """An implementation of which ``name(*args)`` is ``method(original, *args)``."""
    original = getattr(of, name)

    def changed(self, *args, **options):
        return method(partial(original, self), *args, **options)

    # An exception counts as that of an implementation if it passes through the module of its class.
    return type(of.__name__, (of,), {name: changed, "__module__": __name__})()


def pulling(method: Callable[..., Any], of: type[Any] = TorchImplementation) -> Implementation:
    """An implementation in which a pullback is ``method(original, outputs, cotangents, ...)``."""

    def vjp(original, f, primals, *, track=None):
        outputs, pullback = original(f, primals, track=track)
        return outputs, lambda *args, **options: method(pullback, outputs, *args, **options)

    return engine("vjp", vjp, of)


def calling(method: Callable[..., Any]) -> Implementation:
    """An implementation in which a call of a Function is ``method(apply, *args)``."""
    return engine("function", lambda _, cls: partial(method, cls.apply))


def pulled(change: Callable[[Any], Any]) -> Implementation:
    """An implementation in which each gradient is ``change(it)`` when the engine hands it on."""

    def pull(original, _, *args, **options):
        return tuple(None if g is None else change(g) for g in original(*args, **options))

    return pulling(pull)


def _same(value):
    return value


class Meddling(TorchImplementation):
    """Changes what passes between the engine and a Function; each parameter is the change of one thing."""

    def __init__(
        self,
        *,
        needs: Callable[[Any], Any] = _same,
        cotangent: Callable[[Any], Any] = _same,
        argument: Callable[[Any], Any] = _same,
        output: Callable[[Any], Any] = _same,
    ) -> None:
        self.needs, self.cotangent, self.argument, self.output = needs, cotangent, argument, output

    def function(self, cls: Any) -> Callable[..., Any]:
        separate = cls.setup_context is not torch.autograd.Function.setup_context
        entry = "setup_context" if separate else "forward"

        def enter(ctx, *args):
            return getattr(cls, entry)(_Ctx(ctx, self.needs), *args)

        def backward(ctx, *given):
            boxed = getattr(cls, "boxed_grads_call", False)
            changed = [self.cotangent(g) for g in (given[0] if boxed else given)]
            return cls.backward(_Ctx(ctx, self.needs), *([changed] if boxed else changed))

        methods = {entry: staticmethod(enter), "backward": staticmethod(backward)}
        apply = type(cls.__name__, (cls,), methods).apply

        def call(*args):
            found = apply(*map(self.argument, args))
            return tuple(map(self.output, found)) if isinstance(found, tuple) else self.output(found)

        return call


class _Ctx:
    """A ctx with another ``needs_input_grad``."""

    def __init__(self, ctx, needs):
        self.__dict__.update(_ctx=ctx, _needs=needs)

    def __getattr__(self, name):
        value = getattr(self._ctx, name)
        return self._needs(value) if name == "needs_input_grad" else value

    def __setattr__(self, name, value):
        setattr(self._ctx, name, value)
