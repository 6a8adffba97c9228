"""What tests read from the nodes of a graph."""

from __future__ import annotations

from typing import Any


def metadata_of(node: Any) -> dict[str, Any]:
    """A copy of a node's metadata, which is documented as a method and implemented as an attribute."""
    found = node.metadata
    return dict(found() if callable(found) else found)
