"""HIPS autograd: custom Functions as primitives with a vector-Jacobian product."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import autograd
import numpy as np
from autograd import numpy as anp
from autograd.builtins import tuple as traced_tuple
from autograd.extend import defjvp_argnums, defvjp_argnums, primitive, vspace
from autograd.tracer import getval, isbox

from autograd_conformance.implementations import adapting
from autograd_conformance.implementations.adapting.lowering import Context, Lowered, autograd_namespace
from autograd_conformance.implementations.deviations.hips import DEVIATIONS
from autograd_conformance.implementations.protocol import DTYPES, Description, Tensors


class _Call:
    """A call of the primitive: inputs and results of forward, for the rules at every level of nesting."""

    def __init__(self, lowered: Lowered) -> None:
        self.lowered = lowered
        self.needs = [isbox(x) for x in lowered.tensors]

    def forward(self, tensors: Tensors) -> Any:
        # Views, so that one array given for two arguments becomes two objects.
        self.given = tuple(x.view() for x in tensors)
        self.outputs, self.ctx = self.lowered.forward(self.given, self.needs)
        return self.lowered.returned(self.outputs)

    def leaving(self, answer: Any) -> Tensors:
        """The outputs; those marked as non-differentiable leave the trace."""
        return self.lowered.leaving(self.lowered.parts(answer), getval)

    def context(self, answer: Any, tensors: Sequence[Any], argnums: Sequence[int]) -> Context:
        """The ctx of this level of nesting, with the inputs and outputs of this level as saved tensors."""
        ctx = self.ctx.rebound((*self.outputs, *self.given), (*self.leaving(answer), *tensors))
        ctx.needs_input_grad = self.lowered.needed([n in argnums for n, _ in enumerate(tensors, 1)])
        return ctx


def _vjp(argnums: Sequence[int], answer: Any, args: Tensors, kwargs: Any) -> Callable[[Any], Tensors]:
    call, *tensors = args
    ctx = call.context(answer, tensors, argnums)

    def vjp(g: Any) -> Tensors:
        found = call.lowered.backward(ctx, list(map(_conjugate, call.lowered.parts(g))))
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


# A Function that does not define jvp must not have one.
_one_way, _two_ways = (primitive(lambda call, *tensors: call.forward(tensors)) for _ in range(2))
defvjp_argnums(_one_way, _vjp)
defvjp_argnums(_two_ways, _vjp)
defjvp_argnums(_two_ways, _jvp)


def _conjugate(x: Any) -> Any:
    """Converts between the suite's convention and that of the tutorial, in which z*w has the VJP g*w."""
    return None if x is None else vspace(x).covector(x)


def _is_tensor(value: Any) -> bool:
    return isinstance(getval(value), np.ndarray | np.generic)


def _cotangent(value: Any, output: Any) -> Any:
    return vspace(output).zeros() if value is None else _conjugate(value)


def _traced(f: Callable[..., Any]) -> Callable[..., Any]:
    """The function, returning a traceable tuple where it returns a tuple."""

    def traced(*primals: Any) -> Any:
        outputs = f(*primals)
        return traced_tuple(outputs) if isinstance(outputs, tuple) else outputs

    return traced


class HipsImplementation(adapting.TransformingImplementation, adapting.NumPyImplementation):
    """Custom Functions as calls of a primitive, with the rules of `defvjp_argnums` and `defjvp_argnums`."""

    name = "hips"
    capabilities = frozenset({"tuples", "needs_input_grad", "double_backward", "jvp", "checkpoint", "numpy", "views"})
    deviations = DEVIATIONS
    dtypes = tuple(dtype for dtype in DTYPES if dtype != "bfloat16")
    package = autograd
    xp = adapting.namespace(
        anp,
        # The one of autograd.numpy has a VJP only if the number of dimensions stays the same.
        broadcast_to=lambda x, shape: x * anp.ones(shape, x.dtype),
        # The one of autograd.numpy has no VJP: its result is a constant.
        concat=anp.concatenate,
        copy=anp.array,
        to_numpy=lambda x: np.asarray(getval(x)),
        from_numpy=lambda a, like: a,
        matrix_transpose=lambda x: anp.swapaxes(x, -1, -2),
        permute_dims=anp.transpose,
    )
    ag = autograd_namespace(_apply, _is_tensor)
    is_tensor = staticmethod(_is_tensor)
    dialect = "hips"
    zeros_for_none = True
    supported = ">=1.9"

    def array(self, values: Any, dtype: str, device: str) -> Any:
        return np.array(values, dtype, order="C")

    def as_numpy(self, tensor: Any) -> Any:
        return np.asarray(getval(tensor))

    def describe(self, tensor: Any) -> Description:
        return super().describe(self.as_numpy(tensor))

    def fill_(self, tensor: Any, value: Any) -> None:
        # A NumPy scalar cannot be changed.
        if isinstance(tensor, np.ndarray):
            tensor[...] = value

    def pulled(self, f: Callable[..., Tensors], primals: Tensors) -> tuple[Tensors, Callable[..., Any]]:
        pull, outputs = autograd.make_vjp(_traced(f), list(range(len(primals))))(*primals)
        return tuple(outputs), lambda gs: map(_conjugate, pull(traced_tuple(map(_cotangent, gs, outputs))))

    def pushed(self, f: Callable[..., Tensors], primals: Tensors, tangents: Tensors) -> tuple[Tensors, Tensors]:
        outputs, moved = autograd.make_jvp(_traced(f), list(range(len(primals))))(*primals)(tangents)
        return tuple(outputs), tuple(moved)

    def checkpoint(self, f: Callable[..., Any]) -> Callable[..., Any]:
        def checkpointed(*primals: Any) -> Any:
            outputs = autograd.checkpoint(_traced(f))(*primals)
            return tuple(outputs) if isinstance(getval(outputs), tuple) else outputs

        return checkpointed
