"""The model's tensors, and the graph that the operations on them record."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

if np.lib.NumpyVersion(np.__version__) < "2.0.0":
    raise ImportError("the model needs NumPy 2, where the values of scalars do not decide dtypes")

CHANGED = "a tensor needed for the gradient has been modified by an inplace operation since it was saved"
RELEASED = "backward a second time, or access to saved tensors after they were released; pass retain_graph=True"

Edge = tuple["Node", int]


class ContractError(RuntimeError):
    """A use of a Function, ctx or engine that the contract forbids."""


class _Mode(threading.local):
    """The state of each thread: whether it records, and in forward mode the tangents of its tensors."""

    recording = True
    tangents: dict[Tensor, Tensor] | None = None


mode = _Mode()


@contextmanager
def switched(recording: bool, tangents: dict[Tensor, Tensor] | None = None) -> Iterator[None]:
    """Switch the mode within a ``with`` block."""
    before = mode.recording, mode.tangents
    mode.recording, mode.tangents = recording, tangents
    try:
        yield
    finally:
        mode.recording, mode.tangents = before


# --- tensors ---------------------------------------------------------------------------------------------------------


class Storage:
    """Memory that views share; ``version`` counts its in-place changes."""

    __slots__ = ("version",)

    def __init__(self) -> None:
        self.version = 0


def plain(argument: Any) -> Any:
    """An argument for NumPy. NumPy's scalars become Python's, which do not decide dtypes."""
    if isinstance(argument, Tensor):
        return argument.data
    if isinstance(argument, tuple):
        return tuple(map(plain, argument))
    return argument.item() if isinstance(argument, np.generic) else argument


def _operator(name: str, swapped: bool = False) -> Any:
    if swapped:
        return lambda self, other: call(name, other, self)
    return lambda self, *others: call(name, self, *others)


def _in_place(name: str) -> Any:
    def change(self: Tensor, other: Any) -> Tensor:
        result = call(name, self.alias(), other)
        if result.node is not None:
            self.refuse_untrackable_change()
        np.copyto(self.data, result.data, casting="same_kind")
        self.storage.version += 1
        if result.node is not None:
            self.rebase(result.node, 0)
        return self

    return change


class Tensor:
    """An array with a history: it is output number ``index`` of ``node``.

    A view has a ``base`` and the function ``view`` that makes it from the base, so that it can follow when the base's
    history changes. ``view`` is None if the graph does not know it: for a view made unrecorded or by a custom Function.
    """

    __slots__ = ("__weakref__", "_node", "base", "data", "grad", "index", "seen", "storage", "view")
    __array_ufunc__ = None  # so that NumPy's scalars leave mixed operators to this class

    def __init__(self, data: Any, storage: Storage | None = None, node: Node | None = None, index: int = 0) -> None:
        self.data = data
        self.storage = storage or Storage()
        self._node, self.index = node, index
        self.base: Tensor | None = None
        self.view: Callable[[Tensor], Tensor] | None = None
        self.seen = 0
        self.grad: Tensor | None = None

    shape: Any = property(lambda self: self.data.shape)
    dtype: Any = property(lambda self: self.data.dtype)
    ndim: Any = property(lambda self: len(self.shape))
    device: Any = property(lambda _: "cpu")
    requires_grad: Any = property(lambda self: self.node is not None)
    grad_fn: Any = property(lambda self: None if isinstance(self.node, Leaf) else self.node)
    T = mT = property(lambda self: call("matrix_transpose", self))  # noqa: N815

    @property
    def node(self) -> Node | None:
        if self.base is not None and self.seen != self.storage.version:
            self._follow(self.base)
        return self._node

    def _follow(self, base: Tensor) -> None:
        if self._node is None and base.node is None:
            return
        if self.view is None:
            raise ContractError("a view made unrecorded or by a custom Function, or its base, was changed inplace")
        with switched(recording=True):
            derived = self.view(base)
        self._node, self.index, self.seen = derived._node, derived.index, self.storage.version

    def requires_grad_(self, flag: bool = True) -> Tensor:
        """Make this tensor a leaf that requires grad."""
        if flag and self.node is None:
            if not differentiable(self.dtype):
                raise ContractError(f"only floating and complex tensors can require gradients, not {self.dtype}")
            self._node = Leaf(self)
        return self

    def alias(self) -> Tensor:
        """Another tensor object with the same memory and history."""
        return Tensor(self.data, self.storage, self.node, self.index)

    def detach(self) -> Tensor:
        """Another tensor object with the same memory and no history."""
        return Tensor(self.data, self.storage)

    def refuse_untrackable_change(self) -> None:
        """Raise if a recorded in-place change would lose history."""
        for tensor, what in ((self, "a leaf"), (self.base, "a view of a leaf")):
            if tensor is not None and isinstance(tensor.node, Leaf):
                raise ContractError(f"{what} that requires grad is being changed by an inplace operation")
        if self.base is not None and self.view is None:
            raise ContractError(
                "a view made unrecorded or by a custom Function is being changed by an inplace operation"
            )

    def rebase(self, node: Node, index: int) -> None:
        """Set the history after an in-place change; a base gets the history of an array with a replaced part."""
        self._node, self.index, self.seen = node, index, self.storage.version
        if self.base is not None and self.view is not None:
            part = Tensor(np.zeros(self.base.shape, bool))
            self.view(part).data[...] = True
            step = Step(operations["patch"], (self.base.alias(), self.alias(), part, self.view), {})
            self.base._node, self.base.index = step, 0

    def __getitem__(self, key: Any) -> Any:
        return call("getitem", self, key)

    def __bool__(self) -> bool:
        return bool(self.data)

    def __repr__(self) -> str:
        return f"Tensor({self.data!r}{', requires_grad=True' if self.requires_grad else ''})"

    __hash__ = object.__hash__
    __add__, __radd__ = _operator("add"), _operator("add", swapped=True)
    __sub__, __rsub__ = _operator("subtract"), _operator("subtract", swapped=True)
    __mul__, __rmul__ = _operator("multiply"), _operator("multiply", swapped=True)
    __truediv__, __rtruediv__ = _operator("divide"), _operator("divide", swapped=True)
    __matmul__, __pow__, __neg__ = _operator("matmul"), _operator("power"), _operator("negative")
    __eq__, __ne__ = _operator("equal"), _operator("not_equal")
    __lt__, __le__, __gt__, __ge__ = map(_operator, ("less", "less_equal", "greater", "greater_equal"))
    __iadd__, __imul__ = _in_place("add"), _in_place("multiply")


class Ghost(Tensor):
    """A tensor of which only the shape and dtype can still be read, not the values."""

    __slots__ = ("dtype", "reason", "shape")

    def __init__(self, tensor: Tensor, reason: str) -> None:
        self.shape, self.dtype, self.reason = tensor.shape, tensor.dtype, reason
        self.storage, self.base, self._node = Storage(), None, None

    @property
    def data(self) -> Any:
        raise ContractError(self.reason)


def differentiable(dtype: Any) -> bool:
    return dtype.kind in "fc"


# --- operations ------------------------------------------------------------------------------------------------------

Rule = Callable[..., Any]


class EachArgument:
    """One rule for any number of arguments: it gets the position of the argument after ``g``."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule

    def __getitem__(self, position: int) -> Rule:
        return lambda g, *args, **kwargs: self.rule(g, position, *args, **kwargs)


class Operation(NamedTuple):
    """A NumPy function with one rule per argument; without rules it is not differentiable.

    ``view`` means that the result may share memory with the first argument.
    """

    forward: Callable[..., Any]
    rules: tuple[Rule | None, ...] | EachArgument = ()
    view: bool = False


# The operations of the namespace, which registers them here.
operations: dict[str, Operation] = {}


# --- the graph -------------------------------------------------------------------------------------------------------

_sequence = itertools.count()


class _Freeing(threading.local):
    """The edges of each thread's nodes that ended while another one ends; None if none does."""

    edges: list[Sequence[Edge | None]] | None = None


_freeing = _Freeing()


class Node:
    """A node of the graph. It has one edge per argument, to an output of an earlier node, or None."""

    # The node of a Function is its ctx. All names without an underscore belong to the Function's author.
    def __init__(self, edges: Sequence[Edge | None] = ()) -> None:
        self._edges = edges
        self._sequence = next(_sequence)

    def __del__(self) -> None:
        """Free the nodes behind this one in turn. Each inside the one before it would need a stack of any size."""
        if _freeing.edges is not None:
            _freeing.edges.append(self._edges)
            return
        _freeing.edges, self._edges = [self._edges], ()
        while _freeing.edges:
            _freeing.edges.pop()
        _freeing.edges = None

    def _run(self, cotangents: dict[int, Tensor], retain: bool) -> Sequence[Tensor | None]:
        """One gradient per edge, from the cotangents of the outputs that were used."""
        raise NotImplementedError


class Leaf(Node):
    """The node of a leaf: a tensor that the user made."""

    def __init__(self, tensor: Tensor) -> None:
        super().__init__()
        self._tensor = weakref.ref(tensor)


class Step(Node):
    """A recorded operation of the namespace."""

    def __init__(self, operation: Operation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        super().__init__(edges_of(args))
        self._rules: Any = operation.rules
        self._kwargs = kwargs
        self._args = [(a, a.storage.version) if isinstance(a, Tensor) else (a, 0) for a in args]

    def _run(self, cotangents: dict[int, Tensor], retain: bool) -> Sequence[Tensor | None]:
        args = [
            Ghost(a, CHANGED) if isinstance(a, Tensor) and a.storage.version != version else a
            for a, version in self._args
        ]
        if not retain:
            self._args = [(Ghost(a, RELEASED) if isinstance(a, Tensor) else a, 0) for a in args]
        g = cotangents.get(0)
        if g is None:
            return [None] * len(args)
        return [
            None if edge is None else fit(self._rules[i](g, *args, **self._kwargs), args[i])
            for i, edge in enumerate(self._edges)
        ]


def edges_of(args: Sequence[Any]) -> tuple[Edge | None, ...]:
    nodes = (a.node if isinstance(a, Tensor) else None for a in args)
    return tuple(None if node is None else (node, a.index) for a, node in zip(args, nodes, strict=True))


def call(name: str, *args: Any, **kwargs: Any) -> Tensor:
    """Apply an operation of the namespace, and record it."""
    operation = operations[name]
    if mode.tangents and any(isinstance(a, Tensor) and a in mode.tangents for a in args):
        raise ContractError(f"forward mode is defined for Functions only, not for {name}")
    with np.errstate(all="ignore"):
        values = operation.forward(*map(plain, args), **{key: plain(a) for key, a in kwargs.items()})
    result = Tensor(np.asarray(values))
    if operation.view and np.may_share_memory(result.data, args[0].data):
        _link(result, name, *args, **kwargs)
    if mode.recording and operation.rules and any(edges_of(args)):
        result._node = Step(operation, args, kwargs)
    return result


def _link(result: Tensor, name: str, source: Tensor, *args: Any, **kwargs: Any) -> None:
    outer, nested = source.view, source.base is not None
    result.base = source.base if nested else source
    result.storage, result.seen = source.storage, source.storage.version
    if mode.recording and not nested:
        result.view = lambda base: call(name, base, *args, **kwargs)
    elif mode.recording and outer is not None:
        result.view = lambda base: call(name, outer(base), *args, **kwargs)


def fit(g: Tensor, like: Any) -> Tensor:
    """The gradient in the argument's shape and dtype: summed over the dimensions that were broadcast."""
    if g.shape != like.shape:
        extra = g.ndim - len(like.shape)
        axes = tuple(i for i, n in enumerate(g.shape) if i < extra or like.shape[i - extra] != n)
        g = call("reshape", call("sum", g, axis=axes), like.shape)
    if g.dtype.kind == "c" and like.dtype.kind != "c":
        g = call("real", g)
    return g if g.dtype == like.dtype else call("astype", g, like.dtype)
