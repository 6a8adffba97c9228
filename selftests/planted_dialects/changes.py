"""How a fault is planted into a framework: a name stands for something else while the fault is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from autograd_conformance.selftests.planting import Fault

# A context in which the fault is there, made when it is to be installed.
Install = Callable[[], AbstractContextManager[Any]]


def fault(clause: str, install: Install, *says: str, words: str = "") -> Fault:
    """A fault of a clause, and what a message about it says; ``words`` describe it where it is not the clause's own."""
    return Fault(clause, install, says, words=words)


def instead(owner: Any, name: str, value: Any) -> Install:
    """``owner.name`` is that value."""
    return lambda: patch.object(owner, name, value, create=True)


def replaced(owner: Any, name: str, change: Callable[[Any], Any]) -> Install:
    """``owner.name`` is ``change(what it was)``."""
    return lambda: patch.object(owner, name, change(getattr(owner, name)))


def around(owner: Any, name: str, call: Callable[..., Any]) -> Install:
    """A call of ``owner.name`` is ``call(original, *args, **kwargs)``."""
    return replaced(owner, name, lambda original: lambda *args, **kwargs: call(original, *args, **kwargs))


def every(*installs: Install) -> Install:
    """All of these at once."""

    @contextmanager
    def installed() -> Iterator[None]:
        with ExitStack() as stack:
            for install in installs:
                stack.enter_context(install())
            yield

    return installed


def fitted(found: Any, arguments: Any) -> tuple[Any, ...]:
    """As many gradients as there are arguments: surplus ones are dropped, and missing ones are None."""
    return (*found, *[None] * len(arguments))[: len(arguments)]


def filled(found: Any, arguments: Any, ones_like: Callable[[Any], Any]) -> tuple[Any, ...]:
    """The gradients with ones for None."""
    return tuple(ones_like(x) if g is None else g for g, x in zip(found, arguments, strict=False))
