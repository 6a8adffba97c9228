"""Who is checked: one adapter a file."""

from __future__ import annotations

from importlib import import_module

from autograd_conformance.implementations.protocol import Implementation, Unavailable

# Name to module, class, and the requirement that brings the framework in.
ADAPTERS = {
    "model": ("autograd_conformance.implementations.model", "ModelImplementation", "nothing more"),
    "torch": ("autograd_conformance.implementations.torch", "TorchImplementation", "torch==2.13.0"),
}


def load(name: str) -> Implementation:
    """The implementation of that name. Raises Unavailable where its framework cannot be imported."""
    module, attribute, requirement = ADAPTERS[name]
    try:
        adapter: Implementation = getattr(import_module(module), attribute)()
    except ImportError as problem:
        cure = f"install it with: pip install {requirement}"
        raise Unavailable(f"{name} cannot be imported ({problem}); {cure}") from problem
    return adapter
