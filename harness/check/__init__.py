"""Check your own Function: a declaration of it, and all properties of any Function."""

from __future__ import annotations

from autograd_conformance.harness.check.declaration.declaration import Declaration, Factory

__all__ = ["Declaration", "Factory"]
