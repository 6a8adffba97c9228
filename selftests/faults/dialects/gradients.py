"""Changes of the gradients that a rule returned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def fitted(found: Any, arguments: Any) -> tuple[Any, ...]:
    """As many gradients as there are arguments: surplus ones are dropped, and missing ones are None."""
    return (*found, *[None] * len(arguments))[: len(arguments)]


def filled(found: Any, arguments: Any, ones_like: Callable[[Any], Any]) -> tuple[Any, ...]:
    """The gradients with ones for None."""
    return tuple(ones_like(x) if g is None else g for g, x in zip(found, arguments, strict=False))
