"""The node of a call, what is around it in the graph, and what tests read from it."""

from __future__ import annotations

from typing import Any

from autograd_conformance.harness.testing.clauses import Run


def metadata_of(node: Any) -> dict[str, Any]:
    """A copy of a node's metadata, which is documented as a method and implemented as an attribute."""
    found = node.metadata
    return dict(found() if callable(found) else found)


def floats_of(run: Run) -> list[Any]:
    """The outputs that a pass can start from."""
    return [run.outputs[o] for o in run.polynomial.float_outputs]


def node_of(run: Run) -> Any:
    """The node of the call."""
    return floats_of(run)[0].grad_fn


def leaves_of(run: Run) -> list[Any]:
    """The leaves that require grad, on which the call ran."""
    return [node.variable for node, _ in node_of(run).next_functions if node is not None]
