"""What a user's Function class is, and which rules it defines."""

from __future__ import annotations

from typing import Any

from autograd_conformance.harness.check.declaration.calling import Native
from autograd_conformance.implementations.classes import derives
from autograd_conformance.implementations.protocol import Implementation


def native(function: Any, implementation: Implementation) -> Any:
    """The Function class that the user gave, directly or as its `apply`; any other callable as a `Native`."""
    base = getattr(implementation.ag, "Function", None)
    for given in (function, getattr(function, "__self__", None)):
        if derives(given, base):
            return given
    return Native(function)


def batches(cls: Any, implementation: Implementation) -> bool:
    """Whether a Function class has a vmap rule, written or generated."""
    return bool(getattr(cls, "generate_vmap_rule", False)) or overrides(cls, implementation, "vmap")


def has_jvp(cls: Any, implementation: Implementation) -> bool:
    """Whether a Function class has a rule for forward mode."""
    return overrides(cls, implementation, "jvp")


def overrides(cls: Any, implementation: Implementation, method: str) -> bool:
    return hasattr(cls, method) and getattr(cls, method) is not getattr(implementation.ag.Function, method, None)
