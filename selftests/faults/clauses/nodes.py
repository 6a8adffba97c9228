"""Faults of nodes and of gradient edges."""

from __future__ import annotations

import threading
import weakref
from contextlib import contextmanager

import torch
from torch.autograd import graph
from torch.autograd.function import BackwardCFunction
from torch.overrides import TorchFunctionMode

from autograd_conformance.selftests.faults import plants
from autograd_conformance.selftests.faults.clauses.definitions import Fix
from autograd_conformance.selftests.faults.planting import fault
from autograd_conformance.selftests.faults.plants import ctx_attribute, ctx_method


def _outside_the_engine(method):
    """Backward is this where no pass runs."""
    return plants.around_backward(plants.where(lambda *_: torch._C._current_graph_task_id() == -1, method))


def _runs_twice(original, ctx, *cotangents):
    original(ctx, *cotangents)
    return original(ctx, *cotangents)


def _runs_once(original, ctx, *cotangents):
    if "found" not in vars(ctx):
        ctx.found = original(ctx, *cotangents)
    return ctx.found


def _edges(change):
    """The gradient edge of a tensor is ``change(tensor, edge)``."""
    return plants.wrapped(graph, "get_gradient_edge", lambda original, tensor: change(tensor, original(tensor)))


def _weak_edges():
    dead = set()

    def edge_of(tensor, edge):
        dead.discard(id(edge.node))
        weakref.finalize(tensor, dead.add, id(edge.node))
        return edge

    def grad(original, outputs, *args, **options):
        if isinstance(outputs, graph.GradientEdge) and id(outputs.node) in dead:
            raise RuntimeError("the graph of this edge has been freed")
        return original(outputs, *args, **options)

    return plants.all_of(_edges(edge_of), plants.wrapped(torch.autograd, "grad", grad))


def _weak_nodes():
    inherited = torch.Tensor.grad_fn

    def grad_fn(tensor):
        node = inherited.__get__(tensor)
        return node if node is None else weakref.proxy(node)

    return plants.put(torch.Tensor, "grad_fn", property(grad_fn))()


class _BuiltIn(TorchFunctionMode):
    def __init__(self, see):
        super().__init__()
        self.see = see

    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and result.grad_fn is not None:
            self.see(result.grad_fn)
        return result


def _creation_hooks(times=1, when=lambda hook, active: True):
    """`graph.node_creation_hook`, also where torch has none yet; it gets a custom Function's node ``times`` times.

    A hook, among those that are active, is called ``when(hook, active)``. It sees no node of a leaf, and those of all
    threads.
    """
    active, running = [], []

    @contextmanager
    def node_creation_hook(hook):
        known = []

        def see(node, times=1):
            if running or plants.among(known, node) or not when(hook, active):
                return
            known.append(node)
            running.append(node)
            [hook(node) for _ in range(times)]
            running.clear()

        active.append(hook)
        with plants.noting_calls(lambda node, *_: see(node, times))(), _BuiltIn(see):
            yield
        active.remove(hook)

    return plants.put(graph, "node_creation_hook", node_creation_hook)


FAULTS = (
    fault("NODE-01", ctx_method("name", lambda *_: "FunctionBackward"), "FunctionBackward"),
    fault(
        "NODE-01: nodes are named as their class",
        ctx_method("name", lambda original, ctx: original(ctx).removesuffix("Backward")),
    ),
    fault("NODE-02", ctx_attribute("next_functions", lambda _, edges: tuple(e for e in edges if e[0] is not None))),
    fault(
        "NODE-02: every edge leads to a first output",
        ctx_attribute("next_functions", lambda _, edges: tuple((node, 0) for node, _ in edges)),
    ),
    fault(
        "NODE-02: a tensor that is passed twice has one edge",
        ctx_attribute(
            "next_functions",
            lambda _, edges: tuple(e for i, e in enumerate(edges) if e[0] is None or e not in edges[:i]),
        ),
    ),
    fault("NODE-03", ctx_attribute("metadata", lambda *_: dict), "entries kept"),
    fault("NODE-04", _outside_the_engine(lambda _, __, *cotangents: cotangents)),
    fault(
        "NODE-04: custom nodes can be called",
        plants.put(BackwardCFunction, "__call__", lambda ctx, *g: ctx.apply(*g)),
        "calling a custom node",
    ),
    fault("NODE-04: apply of a node runs backward twice", _outside_the_engine(_runs_twice), "number of times"),
    fault("NODE-04: a further apply of a node runs nothing", _outside_the_engine(_runs_once), "number of times"),
    fault("NODE-05", _weak_edges, "freed"),
    fault("NODE-06", _edges(lambda _, edge: edge._replace(output_nr=0)), neighbours=("NODE-05",)),
    fault("NODE-07", plants.put(torch.Tensor, "__deepcopy__", lambda x, _: x.detach().clone()), "deep copy"),
    fault(
        "NODE-07: the pickle of a node is its name",
        plants.put(BackwardCFunction, "__reduce_ex__", lambda ctx, _: (str, (type(ctx).__name__,))),
        "pickling a node",
    ),
    fault("NODE-08", _creation_hooks(0), neighbours=("NODE-09",)),
    fault(
        "NODE-08: node creation hooks are called twice for custom Functions",
        _creation_hooks(2),
        neighbours=("NODE-09",),
    ),
    fault(
        "NODE-08: creation hooks do not see the node of a leaf",
        _creation_hooks(),
        "are of the leaf",
        neighbours=("NODE-09",),
    ),
    fault(
        "NODE-09",
        _creation_hooks(when=lambda hook, active: hook is active[-1]),
        "nodes that each hook saw",
        neighbours=("NODE-08",),
    ),
    fault(
        "NODE-09: creation hooks do not see the nodes of a backward pass",
        _creation_hooks(when=lambda *_: torch._C._current_graph_task_id() == -1),
        "in the pass",
        neighbours=("NODE-08",),
    ),
    fault(
        "NODE-09: creation hooks see the nodes of all threads",
        _creation_hooks(),
        "numbered as they were made",
        neighbours=("NODE-08",),
    ),
    fault(
        "NODE-09: a creation hook may record",
        _creation_hooks(when=lambda *_: threading.current_thread() is threading.main_thread()),
        "no error",
        neighbours=("NODE-08",),
    ),
)

FIXES = (
    Fix("NODE-03", ctx_attribute("metadata", lambda _, it: lambda: it)),
    Fix("NODE-05", _weak_nodes, variant="node"),
    Fix("NODE-08", _creation_hooks(1)),
)
