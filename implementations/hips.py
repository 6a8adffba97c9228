"""HIPS autograd: custom Functions as primitives with a vector-Jacobian product."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from importlib import metadata
from types import ModuleType
from typing import Any

import autograd
import numpy as np
from autograd import numpy as anp
from autograd.builtins import tuple as traced_tuple
from autograd.extend import defjvp_argnums, defvjp_argnums, primitive, vspace
from autograd.tracer import getval, isbox

from autograd_conformance.implementations import protocol
from autograd_conformance.implementations.hips_deviations import DEVIATIONS
from autograd_conformance.implementations.lowering import Context, Lowered, as_tuple, autograd_namespace
from autograd_conformance.implementations.protocol import Description, Environment, Pullback, Tensors


class _Call:
    """A call of the one primitive: what forward was given and left, for its rules at every level of nesting."""

    def __init__(self, lowered: Lowered) -> None:
        self.lowered = lowered
        self.needs = [isbox(x) for x in lowered.tensors]

    def forward(self, tensors: Tensors) -> Any:
        # Views, so that one array given for two arguments is told apart.
        self.given = tuple(x.view() for x in tensors)
        self.outputs, self.ctx = self.lowered.forward(self.given, self.needs)
        return self.lowered.returned(self.outputs)

    def leaving(self, answer: Any) -> Tensors:
        """The outputs, of which those that are marked as non-differentiable leave the trace."""
        outputs = (answer,) if self.lowered.bare else answer
        pairs = zip(self.outputs, outputs, strict=True)
        return tuple(getval(y) if self.ctx.holds(raw) else y for raw, y in pairs)

    def context(self, answer: Any, tensors: Sequence[Any], argnums: Sequence[int]) -> Context:
        """The ctx of this level, whose saved inputs and outputs are those of the level."""
        pairs = zip((*self.outputs, *self.given), (*self.leaving(answer), *tensors), strict=True)
        known = {id(raw): mine for raw, mine in pairs}
        ctx, needed = copy(self.ctx), {self.lowered.slots[n - 1] for n in argnums}
        ctx.saved_tensors = tuple(known.get(id(x), x) for x in self.ctx.saved_tensors)
        ctx.needs_input_grad = tuple(i in needed for i in range(len(self.lowered.args)))
        return ctx


def _vjp(argnums: Sequence[int], answer: Any, args: Tensors, kwargs: Any) -> Callable[[Any], Tensors]:
    call, *tensors = args
    ctx = call.context(answer, tensors, argnums)

    def vjp(g: Any) -> Tensors:
        cotangents = (g,) if call.lowered.bare else g
        found = call.lowered.backward(ctx, [_conjugate(each) for each in cotangents])
        return tuple(_conjugate(found[n - 1]) for n in argnums)

    return vjp


def _jvp(argnums: Sequence[int], tangents: Sequence[Any], answer: Any, args: Tensors, kwargs: Any) -> Any:
    call, *tensors = args
    ctx, moving = call.context(answer, tensors, argnums), dict(zip(argnums, tangents, strict=True))
    still = [vspace(x).zeros() if ctx.materialize_grads else None for x in tensors]
    found = call.lowered.jvp(ctx, [moving.get(n, zero) for n, zero in enumerate(still, 1)])
    return call.lowered.returned(found)


def _apply(lowered: Lowered) -> Any:
    call = _Call(lowered)
    called = _two_ways if hasattr(lowered.cls, "jvp") else _one_way
    return lowered.returned(call.leaving(called(call, *lowered.tensors)))


# Functions that define no jvp are to have none.
_one_way, _two_ways = (primitive(lambda call, *tensors: call.forward(tensors)) for _ in range(2))
defvjp_argnums(_one_way, _vjp)
defvjp_argnums(_two_ways, _vjp)
defjvp_argnums(_two_ways, _jvp)


def _conjugate(x: Any) -> Any:
    """Between the suite's convention and that of the tutorial, which gives z*w the VJP g*w."""
    return None if x is None else vspace(x).covector(x)


def _is_tensor(value: Any) -> bool:
    return isinstance(getval(value), np.ndarray | np.generic)


def _traced(outputs: Any) -> Any:
    """A tuple that can be traced for a tuple; a bare output as it is."""
    return traced_tuple(outputs) if isinstance(outputs, tuple) else outputs


def _packed(f: Callable[..., Any]) -> Callable[..., Any]:
    """The function with its outputs as one tuple that can be traced."""
    return lambda *primals: traced_tuple(as_tuple(f(*primals)))


def array_namespace() -> ModuleType:
    """``autograd.numpy`` under the names of the array API."""
    xp = ModuleType("hips_array_namespace")
    xp.__dict__.update(vars(anp))
    xp.__dict__.update(
        # autograd.numpy's own has a VJP for an equal number of dimensions alone.
        broadcast_to=lambda x, shape: x * anp.ones(shape, x.dtype),
        copy=anp.array,
        to_numpy=lambda x: np.asarray(getval(x)),
        from_numpy=lambda a, like: a,
        matrix_transpose=lambda x: anp.swapaxes(x, -1, -2),
        permute_dims=anp.transpose,
    )
    return xp


class HipsImplementation(protocol.Implementation):
    """Custom Functions as calls of a primitive, with the rules of `defvjp_argnums` and `defjvp_argnums`."""

    name = "hips"
    capabilities = frozenset({"tuples", "needs_input_grad", "double_backward", "jvp", "checkpoint", "numpy", "views"})
    deviations = DEVIATIONS
    dtypes = (
        "float64", "float32", "float16", "complex128", "complex64", "int64", "int32", "int16", "int8", "uint8", "bool",
    )  # fmt: skip
    xp = array_namespace()
    ag = autograd_namespace(_apply, _is_tensor)
    dialect = "hips"
    zeros_for_none = True
    supported = ">=1.9"

    def environment(self) -> Environment:
        return Environment(metadata.version("autograd"), str(autograd.__file__))

    def array(self, values: Any, dtype: str, device: str) -> Any:
        return np.array(values, dtype, order="C")

    def numpy(self, tensor: Any) -> Any:
        wide = {"f": np.float64, "c": np.complex128}
        array = np.asarray(getval(tensor))
        return np.array(array, wide.get(array.dtype.kind))

    def describe(self, tensor: Any) -> Description:
        array = np.asarray(getval(tensor))
        return Description(array.shape, str(array.dtype), "cpu")

    def is_tensor(self, value: Any) -> bool:
        return _is_tensor(value)

    def shares_memory(self, a: Any, b: Any) -> bool:
        return np.shares_memory(getval(a), getval(b))

    def fill_(self, tensor: Any, value: float) -> None:
        # A scalar of NumPy cannot be changed.
        if isinstance(tensor, np.ndarray):
            tensor[...] = value

    def strides(self, tensor: Any) -> tuple[int, ...]:
        array = np.asarray(getval(tensor))
        return tuple(step // array.itemsize for step in array.strides)

    def vjp(
        self, f: Callable[..., Any], primals: Sequence[Any], *, track: Sequence[bool] | None = None
    ) -> tuple[Tensors, Pullback]:
        tracked = [i for i in range(len(primals)) if track is None or track[i]]
        pull, outputs = autograd.make_vjp(_packed(f), tracked)(*primals)

        def pullback(
            cotangents: Sequence[Any],
            wrt: Sequence[bool] | None = None,
            differentiable: bool = False,
        ) -> Tensors:
            full = traced_tuple(
                vspace(y).zeros() if g is None else _conjugate(g) for y, g in zip(outputs, cotangents, strict=True)
            )
            found = dict(zip(tracked, pull(full), strict=True))
            wanted = [i in found if wrt is None else wrt[i] for i in range(len(primals))]
            return tuple(_conjugate(found.get(i)) if w else None for i, w in enumerate(wanted))

        return tuple(outputs), pullback

    def jvp(self, f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Tensors, Tensors]:
        moving = [i for i, t in enumerate(tangents) if t is not None]
        push = autograd.make_jvp(_packed(f), moving)(*primals)
        outputs, moved = push(tuple(tangents[i] for i in moving))
        return tuple(outputs), tuple(moved)

    def checkpoint(self, f: Callable[..., Any]) -> Callable[..., Any]:
        def checkpointed(*primals: Any) -> Any:
            outputs = autograd.checkpoint(lambda *given: _traced(f(*given)))(*primals)
            return tuple(outputs) if isinstance(getval(outputs), tuple) else outputs

        return checkpointed
