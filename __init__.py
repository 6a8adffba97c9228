"""A property-based conformance suite for custom autograd Functions."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autograd_conformance.harness.check.declaration.declaration import Declaration as Declaration
    from autograd_conformance.harness.check.declaration.declaration import Factory as Factory
    from autograd_conformance.harness.check.declaration.freedom import signs as signs
    from autograd_conformance.harness.check.declaration.restoring import restored as restored
    from autograd_conformance.implementations.torch.processes import in_processes as in_processes
    from autograd_conformance.suites.declared import checks as checks

# Imported on first use: the command line must not wait for Hypothesis and NumPy.
_PUBLIC = {
    "Declaration": "autograd_conformance.harness.check.declaration.declaration",
    "Factory": "autograd_conformance.harness.check.declaration.declaration",
    "checks": "autograd_conformance.suites.declared",
    "in_processes": "autograd_conformance.implementations.torch.processes",
    "restored": "autograd_conformance.harness.check.declaration.restoring",
    "signs": "autograd_conformance.harness.check.declaration.freedom",
}

__all__ = list(_PUBLIC)


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)
