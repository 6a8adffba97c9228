"""What can be seen from inside a custom Function while it runs."""

from __future__ import annotations

import functools
import inspect
from dataclasses import dataclass
from typing import Any


@dataclass
class Observation:
    """What ctx and backward had when the observed Function ran last, and how often it ran."""

    forwards: int = 0
    backwards: int = 0
    needs_in_forward: Any = None
    needs_in_backward: Any = None
    cotangents: tuple[Any, ...] = ()
    gradients: tuple[Any, ...] = ()

    def gradient_of(self, argument: int) -> Any:
        """What backward returned for an argument, None where it returned nothing."""
        return self.gradients[argument] if argument < len(self.gradients) else None


def observed(cls: Any, base: Any, *, needs: bool = True) -> tuple[Any, Observation]:
    """A subclass of the custom Function ``cls`` that behaves alike and records what it sees.

    ``base`` is the implementation's ``Function``; ``needs`` says whether ctx has ``needs_input_grad``. What is no class
    is given back as it is, and nothing is seen.
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
        return getattr(cls, entry)(ctx, *args, **kwargs)

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
