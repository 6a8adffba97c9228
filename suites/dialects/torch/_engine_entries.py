"""The entry points of the engine, on the same graph: autograd.grad, autograd.backward and Tensor.backward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from autograd_conformance.harness.testing.clauses import ClauseSubject
from autograd_conformance.suites.contract._graphs import DTYPE, Graph, PassLog, computed

GRAD, BACKWARD, METHOD = "autograd.grad", "autograd.backward", "Tensor.backward"
ENTRIES = (GRAD, BACKWARD, METHOD)
FUNCTIONS = (GRAD, BACKWARD)


def built(subject: ClauseSubject, graph: Graph) -> tuple[list[Any], tuple[Any, ...], tuple[Any, ...], PassLog]:
    """A graph's leaves, all its values, its outputs, and the record of what runs in backward passes."""
    leaves = [x.requires_grad_() for x in subject.tensors(graph.values, DTYPE)]
    values, ran = computed(subject, graph, leaves)
    return leaves, values, tuple(values[o] for o in graph.outputs), ran


def run_pass(entry: str, outputs: Sequence[Any], inputs: Any, cotangents: Any = None, /, **options: Any) -> Any:
    """Run a pass that retains the graph and return its result; Tensor.backward runs once for each output.

    If ``cotangents`` is None, the argument is left out. ``inputs`` is for grad; pass those of backward as an option.
    """
    given = {"retain_graph": True, **options}
    if entry == METHOD:
        each = [()] * len(outputs) if cotangents is None else [(g,) for g in cotangents]
        for y, cotangent in zip(outputs, each, strict=True):
            y.backward(*cotangent, **given)
        return None
    more = () if cotangents is None else (cotangents,)
    if entry == BACKWARD:
        torch.autograd.backward(outputs, *more, **given)
        return None
    return torch.autograd.grad(outputs, inputs, *more, **{"allow_unused": True, **given})


def gradients(entry: str, outputs: Sequence[Any], leaves: Sequence[Any], cotangents: Any = None) -> tuple[Any, ...]:
    """The gradients of leaves without .grad; .grad is None again afterwards."""
    found = run_pass(entry, outputs, leaves, cotangents)
    if found is None:
        found = tuple(x.grad for x in leaves)
        for x in leaves:
            x.grad = None
    return tuple(found)
