"""Faults of nodes and of gradient edges."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

import torch
from torch.autograd import graph
from torch.autograd.function import BackwardCFunction
from torch.overrides import TorchFunctionMode

from autograd_conformance.selftests.planted_clauses.definitions import Fix
from autograd_conformance.selftests.planted_clauses.intercept import (
    around_apply,
    around_backward,
    ctx_attribute,
    ctx_method,
    replaced,
)
from autograd_conformance.selftests.planting import Fault


def _echoes_outside_the_engine(original: Any, ctx: Any, *cotangents: Any) -> Any:
    return original(ctx, *cotangents) if torch._C._current_graph_task_id() != -1 else cotangents


def _runs_twice_outside_the_engine(original: Any, ctx: Any, *cotangents: Any) -> Any:
    if torch._C._current_graph_task_id() == -1:
        original(ctx, *cotangents)
    return original(ctx, *cotangents)


def _once_outside_the_engine(original: Any, ctx: Any, *cotangents: Any) -> Any:
    if torch._C._current_graph_task_id() != -1:
        return original(ctx, *cotangents)
    if "found" not in vars(ctx):
        ctx.found = original(ctx, *cotangents)
    return ctx.found


def _first_edge_alone(original: Any) -> Any:
    def grad(outputs: Any, inputs: Any, cotangents: Any = None, **options: Any) -> Any:
        edges = isinstance(outputs, list) and any(isinstance(y, graph.GradientEdge) for y in outputs)
        return original(*((outputs[:1], inputs, cotangents[:1]) if edges else (outputs, inputs, cotangents)), **options)

    return grad


def _edges(change: Callable[[Any, Any], Any]) -> AbstractContextManager[Any]:
    """The gradient edge of a tensor is ``change(tensor, edge)``."""
    return replaced(graph, "get_gradient_edge", lambda original: lambda tensor: change(tensor, original(tensor)))


@contextmanager
def _weak_edges() -> Iterator[None]:
    dead: set[int] = set()

    def edge_of(tensor: Any, edge: Any) -> Any:
        dead.discard(id(edge.node))
        weakref.finalize(tensor, dead.add, id(edge.node))
        return edge

    def grad(original: Any) -> Any:
        def checking(outputs: Any, *args: Any, **options: Any) -> Any:
            if isinstance(outputs, graph.GradientEdge) and id(outputs.node) in dead:
                raise RuntimeError("the graph of this edge has been freed")
            return original(outputs, *args, **options)

        return checking

    with _edges(edge_of), replaced(torch.autograd, "grad", grad):
        yield


def _edge_of_anything(original: Any) -> Any:
    return lambda tensor: original(tensor if tensor.requires_grad else tensor.detach().requires_grad_())


def _forgets_inputs_of_backward(original: Any) -> Any:
    def backward(tensors: Any, *args: Any, inputs: Any = None, **options: Any) -> Any:
        edges = inputs is not None and any(isinstance(i, graph.GradientEdge) for i in inputs)
        return None if edges else original(tensors, *args, inputs=inputs, **options)

    return backward


def _weak_nodes() -> AbstractContextManager[Any]:
    inherited = torch.Tensor.grad_fn

    def grad_fn(tensor: Any) -> Any:
        node = inherited.__get__(tensor)
        return node if node is None else weakref.proxy(node)

    return patch.object(torch.Tensor, "grad_fn", property(grad_fn), create=True)


def _detaching_copy(tensor: Any, memo: Any) -> Any:
    return tensor.detach().clone()


def _pickled_by_name(ctx: Any, protocol: int) -> Any:
    return str, (type(ctx).__name__,)


class _BuiltIn(TorchFunctionMode):
    def __init__(self, see: Callable[[Any], None]) -> None:
        super().__init__()
        self.see = see

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and result.grad_fn is not None:
            self.see(result.grad_fn)
        return result


def _creation_hooks(times: int) -> AbstractContextManager[Any]:
    """`graph.node_creation_hook`, also where torch has none yet; it gets a custom Function's node ``times`` times."""

    @contextmanager
    def node_creation_hook(hook: Callable[[Any], None]) -> Iterator[None]:
        known: list[Any] = []

        def see(node: Any, times: int = 1) -> None:
            if not any(node is k for k in known):
                known.append(node)
                [hook(node) for _ in range(times)]

        def apply(original: Any, cls: Any, *args: Any) -> Any:
            outputs = original(cls, *args)
            [see(y.grad_fn, times) for y in outputs if getattr(y, "grad_fn", None) is not None]
            return outputs

        with around_apply(apply), _BuiltIn(see):
            yield

    return patch.object(graph, "node_creation_hook", node_creation_hook, create=True)


FAULTS = (
    Fault("NODE-01", lambda: ctx_method("name", lambda original, ctx: "FunctionBackward"), says=("FunctionBackward",)),
    Fault(
        "NODE-01",
        lambda: ctx_method("name", lambda original, ctx: original(ctx).removesuffix("Backward")),
        words="nodes are named as their class",
    ),
    Fault(
        "NODE-02",
        lambda: ctx_attribute("next_functions", lambda _, edges: tuple(e for e in edges if e[0] is not None)),
    ),
    Fault(
        "NODE-02",
        lambda: ctx_attribute("next_functions", lambda _, edges: tuple((node, 0) for node, _ in edges)),
        words="every edge leads to a first output",
    ),
    Fault(
        "NODE-02",
        lambda: ctx_attribute(
            "next_functions",
            lambda _, edges: tuple(e for i, e in enumerate(edges) if e[0] is None or e not in edges[:i]),
        ),
        words="a tensor that is passed twice has one edge",
    ),
    Fault("NODE-03", lambda: ctx_attribute("metadata", lambda _, it: dict), says=("entries kept",)),
    Fault("NODE-04", lambda: around_backward(_echoes_outside_the_engine)),
    Fault(
        "NODE-04",
        lambda: patch.object(BackwardCFunction, "__call__", lambda ctx, *g: ctx.apply(*g), create=True),
        says=("calling a custom node",),
        words="custom nodes can be called",
    ),
    Fault(
        "NODE-04",
        lambda: around_backward(_runs_twice_outside_the_engine),
        says=("number of times",),
        words="apply of a node runs backward twice",
    ),
    Fault(
        "NODE-04",
        lambda: around_backward(_once_outside_the_engine),
        says=("number of times",),
        words="a further apply of a node runs nothing",
    ),
    Fault("NODE-05", _weak_edges, says=("freed",)),
    Fault("NODE-06", lambda: _edges(lambda tensor, edge: edge._replace(output_nr=0)), neighbours=("NODE-05",)),
    Fault(
        "NODE-06",
        lambda: replaced(graph, "get_gradient_edge", _edge_of_anything),
        says=("asking for its edge",),
        words="a tensor that does not require grad has an edge",
    ),
    Fault(
        "NODE-06",
        lambda: replaced(torch.autograd, "backward", _forgets_inputs_of_backward),
        words="backward ignores edges given as inputs",
    ),
    Fault(
        "NODE-06",
        lambda: replaced(torch.autograd, "grad", _first_edge_alone),
        words="of several outputs an edge is the only one",
    ),
    Fault("NODE-07", lambda: patch.object(torch.Tensor, "__deepcopy__", _detaching_copy), says=("deep copy",)),
    Fault(
        "NODE-07",
        lambda: patch.object(BackwardCFunction, "__reduce_ex__", _pickled_by_name, create=True),
        says=("pickling a node",),
        words="the pickle of a node is its name",
    ),
    Fault("NODE-08", partial(_creation_hooks, 0)),
    Fault("NODE-08", partial(_creation_hooks, 2), words="node creation hooks are called twice for custom Functions"),
)

FIXES = (
    Fix("NODE-03", lambda: ctx_attribute("metadata", lambda _, it: lambda: it)),
    Fix("NODE-05", _weak_nodes, variant="node"),
    Fix("NODE-08", partial(_creation_hooks, 1)),
)
