"""The documented contract of custom autograd Functions, in plain NumPy and without a framework.

It is a short model of what a Function, its ``ctx`` and the engine do. Where PyTorch differs from its documentation,
the model follows the documentation: it is always an error to differentiate a once-differentiable backward again, and
to use a saved tensor that the same forward changed afterwards.
"""

from __future__ import annotations

import heapq
import inspect
import warnings
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, NamedTuple

from autograd_conformance.reference.model_namespace import xp
from autograd_conformance.reference.model_tensors import (
    CHANGED,
    RELEASED,
    ContractError,
    Edge,
    Leaf,
    Node,
    Tensor,
    differentiable,
    edges_of,
    fit,
    mode,
    switched,
)


class Like(NamedTuple):
    """What the model remembers about a tensor argument or output."""

    shape: tuple[int, ...]
    dtype: Any


class Saved(NamedTuple):
    """A saved tensor, with its version at that time. ``output`` is its position if the Function returned it."""

    tensor: Tensor
    version: int
    output: int | None = None


def _likes(values: Sequence[Any]) -> list[Like | None]:
    return [Like(v.shape, v.dtype) if isinstance(v, Tensor) else None for v in values]


def _tuple(values: Any) -> tuple[Any, ...]:
    return values if isinstance(values, tuple) else (values,)


def _contains(tensors: Sequence[Any], value: Any) -> bool:
    return any(t is value for t in tensors)


# --- ctx -------------------------------------------------------------------------------------------------------------


class Context(Node):
    """``ctx``: shared by the methods of one call, and the call's node in the graph. It takes any attribute."""

    def __init__(self, function: type[Function], args: Sequence[Any]) -> None:
        super().__init__(edges_of(args))
        self.needs_input_grad = tuple(edge is not None for edge in self._edges)
        self._function, self._name, self._inputs = function, function.__name__, _likes(args)
        self._outputs: list[Like | None] = []
        self._materialize = True
        self._dirty: tuple[Any, ...] = ()
        self._constant: tuple[Any, ...] = ()
        self._kept: dict[str, list[Saved | None]] = {"backward": [], "forward": []}
        self._saved: list[Saved | None] | None = []

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for backward."""
        self._keep("backward", tensors)

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for jvp."""
        self._keep("forward", tensors)

    def _keep(self, use: str, tensors: tuple[Any, ...]) -> None:
        for i, t in enumerate(tensors):
            if not (t is None or isinstance(t, Tensor)):
                raise TypeError(f"save_for_{use} saves only tensors and None; argument {i} is of {type(t)}")
        self._kept[use] = [None if t is None else Saved(t, t.storage.version) for t in tensors]

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """The saved tensors, in backward or jvp."""
        if self._saved is None:
            raise ContractError(RELEASED)
        return tuple(None if saved is None else self._unpack(saved) for saved in self._saved)

    def _unpack(self, saved: Saved) -> Tensor:
        tensor = saved.tensor
        if tensor.storage.version != saved.version:
            raise ContractError(CHANGED)
        return tensor if saved.output is None else Tensor(tensor.data, tensor.storage, self, saved.output)

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Declare the inputs that forward changed in place."""
        self._dirty = _only_tensors("mark_dirty", tensors)

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Declare outputs that have no gradient."""
        self._constant = _only_tensors("mark_non_differentiable", tensors)

    def set_materialize_grads(self, value: bool) -> None:
        """Say whether unused outputs give zeros (the default) or None."""
        if not isinstance(value, bool):
            raise TypeError(f"set_materialize_grads expects a bool, not {type(value)}")
        self._materialize = value

    def _zeros(self, like: Like | None) -> Tensor | None:
        return xp.zeros(like.shape, like.dtype) if like is not None and self._materialize else None

    def _run(self, cotangents: dict[int, Tensor], retain: bool) -> Sequence[Tensor | None]:
        given = [cotangents[i] if i in cotangents else self._zeros(like) for i, like in enumerate(self._outputs)]
        returned = _tuple(self._function._rule()(self, *given))
        if self._saved and not retain:
            self._saved = None
        return self._accepted(returned)

    def _accepted(self, returned: tuple[Any, ...]) -> list[Tensor | None]:
        """The gradients that backward returned, checked and fitted to the arguments."""
        name, expected = f"{self._name}.backward", len(self._inputs)
        if len(returned) < expected or any(g is not None for g in returned[expected:]):
            raise ContractError(
                f"{name} returned an incorrect number of gradients: expected {expected}, got {len(returned)}"
            )
        what = f"the gradient that {name} returned for argument"
        return [
            None if g is None else _accepted_gradient(f"{what} {i}", g, like, edge)
            for i, (g, like, edge) in enumerate(zip(returned[:expected], self._inputs, self._edges, strict=True))
        ]

    def _record(self, args: Sequence[Any], outputs: Sequence[Any], separate: bool) -> list[Any]:
        """Make this ctx the node of the outputs; returns them as the caller gets them."""
        recorded = mode.recording and any(self.needs_input_grad)
        self._check_dirty(args, outputs, recorded)
        for t in self._dirty:
            t.storage.version += 1
        self._outputs = _likes(outputs)
        results = [self._output(i, y, args, recorded) if isinstance(y, Tensor) else y for i, y in enumerate(outputs)]
        untouched = [t for t in args if _contains(outputs, t) and not _contains(self._dirty, t)]
        for use, kept in self._kept.items():
            if separate and any(saved is not None and _contains(untouched, saved.tensor) for saved in kept):
                raise ContractError(f"{self._name} returns an input as it is and saves it in setup_context")
            self._kept[use] = [saved and self._settled(saved) for saved in kept]
        return results

    def _check_dirty(self, args: Sequence[Any], outputs: Sequence[Any], recorded: bool) -> None:
        for t in self._dirty:
            if not _contains(outputs, t):
                raise ContractError(f"{self._name}: a tensor marked dirty was not returned as output")
            if not _contains(args, t):
                warnings.warn("a tensor that is not an input was passed to mark_dirty", stacklevel=4)
            if recorded:
                t.refuse_untrackable_change()
                if t.base is not None and len(outputs) > 1:
                    raise ContractError("a Function that changes a view in place may return only one tensor")

    def _output(self, i: int, y: Tensor, args: Sequence[Any], recorded: bool) -> Tensor:
        node = self if recorded and differentiable(y.dtype) and not _contains(self._constant, y) else None
        if _contains(self._dirty, y) and (node is not None or not y.requires_grad):
            if node is not None:
                y.rebase(self, i)
            return y
        if _contains(args, y):
            source, y = y, y.detach()
            y.base = source if source.base is None else source.base
        y._node, y.index, y.view, y.seen = node, i, None, y.storage.version
        return y

    def _close(self) -> None:
        """Make the tensors saved for backward readable, and drop what only forward needed."""
        self._saved = self._kept["backward"]
        self._kept, self._dirty, self._constant = {}, (), ()

    def _settled(self, saved: Saved) -> Saved:
        """The saved tensor after the call: marking it dirty is not a change, and an output is kept without a cycle."""
        tensor = saved.tensor
        version = saved.version + _contains([t.storage for t in self._dirty], tensor.storage)
        return Saved(tensor.detach(), version, tensor.index) if tensor.node is self else Saved(tensor, version)


def _only_tensors(method: str, tensors: tuple[Any, ...]) -> tuple[Any, ...]:
    for i, t in enumerate(tensors):
        if not isinstance(t, Tensor):
            raise ContractError(f"{method} accepts only tensors; argument {i} is of {type(t)}")
    return tensors


def _accepted_gradient(what: str, g: Any, like: Like | None, edge: Edge | None) -> Tensor | None:
    if like is None:
        raise ContractError(f"{what} must be None, since that is not a tensor")
    if not isinstance(g, Tensor):
        raise ContractError(f"{what} must be a tensor or None, not {type(g)}")
    if edge is None:
        return None
    trailing = g.shape[g.ndim - len(like.shape) :] if g.ndim >= len(like.shape) else None
    if trailing is None or any(n not in (m, 1) for m, n in zip(trailing, like.shape, strict=True)):
        raise ContractError(f"{what} has shape {g.shape}, expected one that reduces to {like.shape}")
    if g.dtype.kind == "c" and like.dtype.kind != "c":
        raise ContractError(f"{what} is complex, but the argument is real")
    return fit(g, like)


# --- Functions -------------------------------------------------------------------------------------------------------


class Function:
    """The base class of custom Functions: subclasses override the static methods, users call `apply`."""

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """``forward(ctx, *args)``, or ``forward(*args)`` if `setup_context` is defined."""
        raise NotImplementedError("You must implement the forward of a custom Function")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Save what backward needs; called after forward if overridden."""
        raise NotImplementedError("setup_context is not implemented")

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        """One gradient per argument from one cotangent per output."""
        raise NotImplementedError("You must implement the backward or the vjp of a custom Function to differentiate it")

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """One tangent per output from one tangent per argument."""
        raise NotImplementedError("You must implement the jvp of a custom Function to use it in forward mode")

    @classmethod
    def _rule(cls) -> Callable[..., Any]:
        given = [f for f in (cls.backward, cls.vjp) if f is not Function.backward]
        if len(given) > 1:
            raise ContractError(f"{cls.__name__} implements both backward and vjp; one of them is allowed")
        return given[0] if given else Function.backward

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward without recording, and record the call as one node."""
        separate = cls.setup_context is not Function.setup_context
        if separate or kwargs:
            bound = inspect.signature(cls.forward).bind(*(() if separate else (None,)), *args, **kwargs)
            bound.apply_defaults()
            args, kwargs = bound.args[0 if separate else 1 :], bound.kwargs
        ctx = Context(cls, args)
        with switched(recording=False):
            output = cls.forward(*args, **kwargs) if separate else cls.forward(ctx, *args, **kwargs)
            if separate:
                cls.setup_context(ctx, args, output)
        results = ctx._record(args, _tuple(output), separate)
        if mode.tangents:
            _forward_mode(ctx, args, results, mode.tangents)
        ctx._close()
        return tuple(results) if isinstance(output, tuple) else results[0]


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Declare that the gradients of a backward cannot be differentiated; trying to is always an error."""

    @wraps(backward)
    def wrapper(ctx: Any, *cotangents: Any) -> Any:
        with switched(recording=False):
            returned = backward(ctx, *cotangents)
        if not mode.recording:
            return returned
        # The result may depend on every input of the call, whatever backward has read.
        barrier = _Barrier((*ctx._edges, *edges_of(cotangents)))
        closed = tuple(
            Tensor(g.data, g.storage, barrier, i) if isinstance(g, Tensor) else g
            for i, g in enumerate(_tuple(returned))
        )
        return closed if isinstance(returned, tuple) else closed[0]

    return wrapper


class _Barrier(Node):
    def _run(self, cotangents: dict[int, Tensor], retain: bool) -> Sequence[Tensor | None]:  # noqa: ARG002
        raise ContractError("trying to differentiate twice a function that was marked with @once_differentiable")


# --- forward mode ----------------------------------------------------------------------------------------------------


def jvp(
    f: Callable[..., Any], primals: Sequence[Tensor], tangents: Sequence[Tensor | None]
) -> tuple[tuple[Any, ...], tuple[Tensor | None, ...]]:
    """Outputs of ``f``, a composition of custom Functions, and their tangents."""
    duals = [x.alias() for x in primals]
    moving = {x: t for x, t in zip(duals, tangents, strict=True) if t is not None}
    with switched(mode.recording, moving):
        outputs = _tuple(f(*duals))
    return outputs, tuple(moving.get(y) if isinstance(y, Tensor) else None for y in outputs)


def _forward_mode(ctx: Context, args: Sequence[Any], outputs: Sequence[Any], moving: dict[Tensor, Tensor]) -> None:
    """Run the Function's own jvp if an argument has a tangent."""
    if not any(isinstance(a, Tensor) and a in moving for a in args):
        return
    given = [
        moving.get(a, ctx._zeros(like)) if like is not None and differentiable(like.dtype) else None
        for a, like in zip(args, ctx._inputs, strict=True)
    ]
    ctx._saved = ctx._kept["forward"]
    with switched(mode.recording):
        returned = _tuple(ctx._function.jvp(ctx, *given))
    name = f"{ctx._name}.jvp"
    if len(returned) != len(outputs):
        raise ContractError(f"{name} returned {len(returned)} tangents, expected {len(outputs)}")
    for i, (y, t) in enumerate(zip(outputs, returned, strict=True)):
        if t is None:
            if isinstance(y, Tensor):
                moving.pop(y, None)
            continue
        what = f"the tangent that {name} returned for output {i}"
        if not isinstance(y, Tensor) or not differentiable(y.dtype) or _contains(ctx._constant, y):
            raise ContractError(f"{what} must be None, since that is not differentiable")
        if not isinstance(t, Tensor) or t.shape != y.shape:
            raise ContractError(f"{what} must be a tensor of shape {y.shape}")
        for a, tangent in zip(args, given, strict=True):
            if tangent is not None and a.storage is y.storage and t.storage is not tangent.storage:
                raise ContractError(f"{what} must share the memory of an input's tangent, as the output does")
        moving[y] = t


# --- engine ----------------------------------------------------------------------------------------------------------


def grad(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor], cotangents: Sequence[Tensor | None] | None = None, *,
    create_graph: bool = False, retain_graph: bool | None = None, allow_unused: bool = False,
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """The gradients of the outputs, weighted by their cotangents, with respect to the inputs."""
    starts, wanted = _starts(outputs, cotangents), edges_of(inputs)
    if None in wanted:
        raise ContractError(f"input {wanted.index(None)} does not require grad")
    retain = create_graph if retain_graph is None else retain_graph
    with switched(recording=create_graph):
        found = _propagate(starts, {edge for edge in wanted if edge is not None}, retain)
    results = tuple(found.get(edge) for edge in wanted if edge is not None)
    unused = [i for i, g in enumerate(results) if g is None]
    if unused and not allow_unused:
        raise ContractError(f"inputs {unused} appear not to have been used in the graph; pass allow_unused=True")
    return results


def backward(
    outputs: Sequence[Tensor], cotangents: Sequence[Tensor | None] | None = None, *,
    create_graph: bool = False, retain_graph: bool | None = None,
) -> None:  # fmt: skip
    """Add the gradients of the outputs, weighted by their cotangents, to the ``grad`` of the leaves."""
    starts = _starts(outputs, cotangents)
    leaves = [node for node in _reachable([edge[0] for edge, _ in starts]) if isinstance(node, Leaf)]
    retain = create_graph if retain_graph is None else retain_graph
    with switched(recording=create_graph):
        for (leaf, _), g in _propagate(starts, {(leaf, 0) for leaf in leaves}, retain).items():
            tensor = leaf._tensor() if isinstance(leaf, Leaf) else None
            if tensor is not None:
                tensor.grad = xp.copy(g) if tensor.grad is None else tensor.grad + g


def _starts(outputs: Sequence[Tensor], cotangents: Sequence[Any] | None) -> list[tuple[Edge, Tensor]]:
    given = [None] * len(outputs) if cotangents is None else cotangents
    if len(given) != len(outputs):
        raise ContractError(f"expected one cotangent per output: {len(outputs)}, got {len(given)}")
    return [_start(i, y, g) for i, (y, g) in enumerate(zip(outputs, given, strict=True))]


def _start(i: int, y: Tensor, g: Tensor | None) -> tuple[Edge, Tensor]:
    if y.node is None:
        raise ContractError(f"output {i} does not require grad and does not have a grad_fn")
    if g is None:
        if y.data.size != 1 or y.dtype.kind == "c":
            raise ContractError(f"a cotangent can be left out only for a real scalar; output {i} has shape {y.shape}")
        g = xp.ones_like(y)
    if g.shape != y.shape:
        raise ContractError(f"cotangent {i} has shape {g.shape}, its output {y.shape}")
    if (g.dtype.kind == "c") != (y.dtype.kind == "c"):
        raise ContractError(f"cotangent {i} is {g.dtype}, its output {y.dtype}; both or none must be complex")
    return (y.node, y.index), fit(g, y)


def _reachable(nodes: Sequence[Node]) -> list[Node]:
    """All nodes that can be reached from these, in the order of creation."""
    seen, stack = set(nodes), list(nodes)
    while stack:
        for edge in stack.pop()._edges:
            if edge is not None and edge[0] not in seen:
                seen.add(edge[0])
                stack.append(edge[0])
    return sorted(seen, key=lambda node: node._sequence)


def _propagate(starts: Sequence[tuple[Edge, Tensor]], wanted: set[Edge], retain: bool) -> dict[Edge, Tensor]:
    """The sum of the gradients that arrive at each wanted edge.

    A node's edges lead to nodes that were created before it. So the pending node that was created last has all its
    cotangents and runs next. Nodes from which no wanted edge can be reached do not run.
    """
    ends = {node for node, _ in wanted}
    running: set[Node] = set()
    for node in _reachable([edge[0] for edge, _ in starts]):
        if any(edge is not None and (edge[0] in running or edge[0] in ends) for edge in node._edges):
            running.add(node)
    pending: dict[Node, dict[int, Tensor]] = {}
    queue: list[tuple[int, Node]] = []
    found: dict[Edge, Tensor] = {}

    def deliver(edge: Edge | None, g: Tensor | None) -> None:
        if edge is None or not (edge[0] in running or edge[0] in ends):
            return
        node, index = edge
        if node not in pending:
            pending[node] = {}
            heapq.heappush(queue, (-node._sequence, node))
        if g is not None:
            pending[node][index] = pending[node][index] + g if index in pending[node] else g

    for start in starts:
        deliver(*start)
    while queue:
        node = heapq.heappop(queue)[1]
        cotangents = pending.pop(node)
        found.update({(node, i): g for i, g in cotangents.items() if (node, i) in wanted})
        if node in running:
            for edge, g in zip(node._edges, node._run(cotangents, retain), strict=True):
                deliver(edge, g)
    return found
