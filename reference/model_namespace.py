"""The model's tensors and its differentiable array namespace ``xp``, in plain NumPy.

`OPERATIONS` holds every operation as data: its NumPy forward and its VJP, one rule per argument. A rule is called with
the cotangent ``g`` and the arguments of the forward, and returns the gradient of its argument. It is written in
operations of the namespace, so that it can be differentiated again. Complex gradients follow the conjugate Wirtinger
convention. A rule need not undo broadcasting, nor take the real part or restore the dtype that a real argument asks
for: `fit` does.
"""

# A rule has the parameters of its forward whether it needs them or not.
# ruff: noqa: ARG005

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

if np.lib.NumpyVersion(np.__version__) < "2.0.0":
    raise ImportError("the model needs NumPy 2, where the values of scalars do not decide dtypes")

DTYPES = (
    "float64", "float32", "float16", "complex128", "complex64",
    "int64", "int32", "int16", "int8", "uint8", "bool",
)  # fmt: skip

CHANGED = "a tensor needed for the gradient has been modified by an inplace operation since it was saved"
RELEASED = "backward a second time, or access to saved tensors after they were released; pass retain_graph=True"

Edge = tuple["Node", int]


class ContractError(RuntimeError):
    """A misuse that the contract refuses."""


class _Mode(threading.local):
    """What each thread is doing: recording or not, and in forward mode the tangents of its tensors."""

    recording = True
    tangents: dict[Tensor, Tensor] | None = None


mode = _Mode()
xp: Any = SimpleNamespace()


@contextmanager
def switched(recording: bool, tangents: dict[Tensor, Tensor] | None = None) -> Iterator[None]:
    """Another mode for a while."""
    before = mode.recording, mode.tangents
    mode.recording, mode.tangents = recording, tangents
    try:
        yield
    finally:
        mode.recording, mode.tangents = before


# --- tensors ---------------------------------------------------------------------------------------------------------


class Storage:
    """What all views of one piece of memory share: how often it was changed in place."""

    __slots__ = ("version",)

    def __init__(self) -> None:
        self.version = 0


def _value(argument: Any) -> Any:
    """An argument as NumPy wants it; NumPy's scalars are weakly typed like Python's, as users of tensors expect."""
    if isinstance(argument, Tensor):
        return argument.data
    if isinstance(argument, tuple):
        return tuple(map(_value, argument))
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
    """An array with a history: ``node`` and ``index`` say which output of which step of the graph it is.

    A view knows its ``base`` and how to ``view`` it, so that it can follow a change of the base's history; ``view`` is
    None for a view of which the graph knows nothing, made unrecorded or by a custom Function.
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
    device: Any = property(lambda self: "cpu")
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
        """Make this a leaf."""
        if flag and self.node is None:
            if not differentiable(self.dtype):
                raise ContractError(f"only floating and complex tensors can require gradients, not {self.dtype}")
            self._node = Leaf(self)
        return self

    def alias(self) -> Tensor:
        """The same memory and history in another object."""
        return Tensor(self.data, self.storage, self.node, self.index)

    def detach(self) -> Tensor:
        """The same memory without history."""
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
        """Take up a new history after an in-place change, and give the base that of an array with a new part."""
        self._node, self.index, self.seen = node, index, self.storage.version
        if self.base is not None and self.view is not None:
            part = Tensor(np.zeros(self.base.shape, bool))
            self.view(part).data[...] = True
            step = Step(OPERATIONS["patch"], (self.base.alias(), self.alias(), part, self.view), {})
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
    """A tensor whose values may not be read any more, only its shape and dtype."""

    __slots__ = ("dtype", "reason", "shape")

    def __init__(self, tensor: Tensor, reason: str) -> None:
        self.shape, self.dtype, self.reason = tensor.shape, tensor.dtype, reason
        self.storage, self.base, self._node = Storage(), None, None

    @property
    def data(self) -> Any:
        raise ContractError(self.reason)


def differentiable(dtype: Any) -> bool:
    return dtype.kind in "fc"


# --- the graph -------------------------------------------------------------------------------------------------------

_sequence = itertools.count()


class Node:
    """A step of the graph. Its edges lead, one per argument, to the output of an earlier step, or nowhere (None)."""

    # The node of a Function is its ctx. All names without an underscore belong to the Function's author.
    def __init__(self, edges: Sequence[Edge | None] = ()) -> None:
        self._edges = edges
        self._sequence = next(_sequence)

    def _run(self, cotangents: dict[int, Tensor], retain: bool) -> Sequence[Tensor | None]:
        """From the cotangents of the used outputs to one gradient per edge."""
        raise NotImplementedError


class Leaf(Node):
    """The end of an edge: a tensor made by the user."""

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
    operation = OPERATIONS[name]
    if mode.tangents and any(isinstance(a, Tensor) and a in mode.tangents for a in args):
        raise ContractError(f"forward mode is defined for Functions only, not for {name}")
    with np.errstate(all="ignore"):
        values = operation.forward(*map(_value, args), **{key: _value(a) for key, a in kwargs.items()})
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
    """The gradient summed over what was broadcast, and in the argument's dtype."""
    if g.shape != like.shape:
        extra = g.ndim - len(like.shape)
        axes = tuple(i for i, n in enumerate(g.shape) if i < extra or like.shape[i - extra] != n)
        g = xp.reshape(xp.sum(g, axis=axes), like.shape)
    if g.dtype.kind == "c" and like.dtype.kind != "c":
        g = xp.real(g)
    return g if g.dtype == like.dtype else xp.astype(g, like.dtype)


# --- operations ------------------------------------------------------------------------------------------------------

Rule = Callable[..., Any]


class EachArgument:
    """One rule for any number of arguments; after ``g`` it is told which of them it is for."""

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


def _sum(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """NumPy's sum, but of float16 in float32, as its mean and its products are."""
    if x.dtype != np.float16:
        return np.sum(x, axis=axis, keepdims=keepdims)
    return np.sum(x, axis=axis, keepdims=keepdims, dtype=np.float32).astype(np.float16)


def _at(axis: int, ndim: int, key: Any) -> tuple[Any, ...]:
    """The index that applies ``key`` to one axis."""
    return (slice(None),) * (axis % ndim) + (key,)


def _along(shape: tuple[int, ...], indices: Any, axis: int) -> tuple[Any, ...]:
    """The index that picks ``indices`` along an axis, as ``take_along_axis`` does."""
    grid = list(np.ogrid[tuple(slice(n) for n in shape)])
    grid[axis] = indices
    return tuple(grid)


def _scatter(values: Any, shape: tuple[int, ...], key: Any) -> Any:
    out = np.zeros(shape, values.dtype)
    np.add.at(out, key, values)
    return out


def _argsort(x: Any, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    if not descending:
        return np.argsort(x, axis=axis, stable=stable)
    backwards = np.flip(np.argsort(np.flip(x, axis=axis), axis=axis, stable=stable), axis=axis)
    return x.shape[axis] - 1 - backwards


def _power(x: Any, n: Any) -> Any:
    if isinstance(n, np.ndarray):
        raise TypeError("the exponent must be a number")
    return x**n


def _spread(g: Any, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """A reduction's cotangent in the shape of the reduction's argument."""
    axes = range(x.ndim) if axis is None else {a % x.ndim for a in (axis if isinstance(axis, tuple) else (axis,))}
    kept = g if keepdims else xp.reshape(g, tuple(1 if d in axes else n for d, n in enumerate(x.shape)))
    return xp.broadcast_to(kept, x.shape)


def _mean(g: Any, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    count = np.prod(x.shape, dtype=int) / max(np.prod(g.shape, dtype=int), 1)
    return _spread(g, x, axis, keepdims) / float(count)


def _max(g: Any, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Equal shares for those that tie."""
    ties = x == xp.max(x, axis=axis, keepdims=True)
    return _spread(g, x, axis, keepdims) * ties / xp.sum(ties, axis=axis, keepdims=True)


def _sign(g: Any, x: Any) -> Any:
    if x.dtype.kind != "c":
        return xp.zeros_like(g)
    s, nonzero = xp.sign(x), x != 0
    return xp.where(nonzero, g - s * xp.real(xp.conj(g) * s), 0) / xp.where(nonzero, xp.abs(x), 1)


def _columns(g: Any, x: Any, y: Any) -> Any:
    """The cotangent of ``x @ y`` with the dimensions that 1-D operands leave out."""
    g = g[..., None] if y.ndim == 1 else g
    return g[..., None, :] if x.ndim == 1 else g


def _left(g: Any, x: Any, y: Any) -> Any:
    adjoint = xp.conj(y)[None] if y.ndim == 1 else xp.matrix_transpose(xp.conj(y))
    return _columns(g, x, y) @ adjoint


def _right(g: Any, x: Any, y: Any) -> Any:
    adjoint = xp.conj(x)[:, None] if x.ndim == 1 else xp.matrix_transpose(xp.conj(x))
    product = adjoint @ _columns(g, x, y)
    return product[..., 0] if y.ndim == 1 else product


def _part(g: Any, position: int, *xs: Any, axis: int = 0) -> Any:
    start = sum(x.shape[axis] for x in xs[:position])
    return g[_at(axis, g.ndim, slice(start, start + xs[position].shape[axis]))]


def _like(create: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, dtype=None, device=None: create(x.shape, dtype or x.dtype)


OPERATIONS: dict[str, Operation] = {
    # arithmetic
    "add": Operation(np.add, (lambda g, x, y: g, lambda g, x, y: g)),
    "subtract": Operation(np.subtract, (lambda g, x, y: g, lambda g, x, y: -g)),
    "multiply": Operation(np.multiply, (lambda g, x, y: g * xp.conj(y), lambda g, x, y: xp.conj(x) * g)),
    "divide": Operation(np.divide, (lambda g, x, y: g / xp.conj(y), lambda g, x, y: -g * xp.conj(x / y / y))),
    "negative": Operation(np.negative, (lambda g, x: -g,)),
    "power": Operation(_power, (lambda g, x, n: g * xp.conj(n * x ** (n - 1)) if n else xp.zeros_like(g), None)),
    "matmul": Operation(np.matmul, (_left, _right)),
    "sparse_matmul": Operation(
        lambda indices, values, shape, b: _scatter(values, shape, tuple(indices)) @ b,
        (
            None,
            lambda g, indices, values, shape, b: (g @ xp.matrix_transpose(xp.conj(b)))[indices[0], indices[1]],
            None,
            lambda g, indices, values, shape, b: xp.sparse_matmul(
                xp.flip(indices, axis=0), xp.conj(values), tuple(shape)[::-1], g
            ),
        ),
    ),
    # functions of each element
    "abs": Operation(np.abs, (lambda g, x: g * xp.sign(x),)),
    "conj": Operation(np.conj, (lambda g, x: xp.conj(g),)),
    "cos": Operation(np.cos, (lambda g, x: -g * xp.conj(xp.sin(x)),)),
    "cosh": Operation(np.cosh, (lambda g, x: g * xp.conj(xp.sinh(x)),)),
    "exp": Operation(np.exp, (lambda g, x: g * xp.conj(xp.exp(x)),)),
    "imag": Operation(lambda x: np.imag(x).copy(), (lambda g, x: g * 1j,)),
    "real": Operation(lambda x: np.real(x).copy(), (lambda g, x: g,)),
    "sign": Operation(np.sign, (_sign,)),
    "sin": Operation(np.sin, (lambda g, x: g * xp.conj(xp.cos(x)),)),
    "sinh": Operation(np.sinh, (lambda g, x: g * xp.conj(xp.cosh(x)),)),
    "sqrt": Operation(np.sqrt, (lambda g, x: g / xp.conj(2 * xp.sqrt(x)),)),
    "tanh": Operation(np.tanh, (lambda g, x: g * xp.conj(1 - xp.tanh(x) ** 2),)),
    "where": Operation(np.where, (None, lambda g, c, x, y: xp.where(c, g, 0), lambda g, c, x, y: xp.where(c, 0, g))),
    "astype": Operation(lambda x, dtype: x.astype(dtype), (lambda g, x, dtype: g,)),
    "copy": Operation(np.copy, (lambda g, x: g,)),
    # reductions
    "sum": Operation(_sum, (_spread,)),
    "mean": Operation(np.mean, (_mean,)),
    "max": Operation(np.max, (_max,)),
    # shape
    "broadcast_to": Operation(np.broadcast_to, (lambda g, x, shape: g,), view=True),
    "expand_dims": Operation(np.expand_dims, (lambda g, x, axis=0: xp.reshape(g, x.shape),), view=True),
    "flip": Operation(lambda x, axis=None: np.flip(x, axis).copy(), (lambda g, x, axis=None: xp.flip(g, axis=axis),)),
    "matrix_transpose": Operation(np.matrix_transpose, (lambda g, x: xp.matrix_transpose(g),), view=True),
    "permute_dims": Operation(
        np.permute_dims,
        (lambda g, x, axes: xp.permute_dims(g, tuple(np.argsort(np.mod(axes, x.ndim)).tolist())),),
        view=True,
    ),
    "reshape": Operation(np.reshape, (lambda g, x, shape: xp.reshape(g, x.shape),), view=True),
    "concat": Operation(lambda *xs, axis=0: np.concat(xs, axis), EachArgument(_part)),
    "stack": Operation(
        lambda *xs, axis=0: np.stack(xs, axis),
        EachArgument(lambda g, position, *xs, axis=0: g[_at(axis, g.ndim, position)]),
    ),
    # indexing
    "getitem": Operation(lambda x, key: x[key], (lambda g, x, key: xp.scatter(g, x.shape, key),), view=True),
    "scatter": Operation(_scatter, (lambda g, x, shape, key: g[key],)),
    "take": Operation(
        lambda x, indices, axis=0: np.take(x, indices, axis),
        (lambda g, x, indices, axis=0: xp.scatter(g, x.shape, _at(axis, x.ndim, indices)),),
    ),
    "take_along_axis": Operation(
        lambda x, indices, axis=-1: x[_along(x.shape, indices, axis)],
        (lambda g, x, indices, axis=-1: xp.scatter(g, x.shape, _along(x.shape, xp.to_numpy(indices), axis)),),
    ),
    # the history of a base, of which a part was replaced through a view
    "patch": Operation(
        np.where, (lambda g, base, new, part, view: xp.where(part, 0, g), lambda g, base, new, part, view: view(g))
    ),
    # not differentiable
    "arange": Operation(lambda *args, device=None, **kwargs: np.arange(*args, **kwargs)),
    "argmax": Operation(np.argmax),
    "argsort": Operation(_argsort),
    "ones_like": Operation(_like(np.ones)),
    "zeros": Operation(lambda shape, dtype=float, device=None: np.zeros(shape, dtype)),
    "zeros_like": Operation(_like(np.zeros)),
    "equal": Operation(np.equal),
    "not_equal": Operation(np.not_equal),
    "less": Operation(np.less),
    "less_equal": Operation(np.less_equal),
    "greater": Operation(np.greater),
    "greater_equal": Operation(np.greater_equal),
}

xp.__dict__.update({name: partial(call, name) for name in OPERATIONS})
xp.__dict__.update({name: np.dtype(name) for name in DTYPES})
xp.concat = lambda arrays, axis=0: call("concat", *arrays, axis=axis)
xp.stack = lambda arrays, axis=0: call("stack", *arrays, axis=axis)
xp.to_numpy = _value
xp.from_numpy = lambda array, like: Tensor(np.asarray(array))
