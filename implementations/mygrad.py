"""MyGrad: custom Functions as operations derived from `mygrad.operation_base.Operation`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any

import mygrad as mg
import numpy as np
from mygrad._utils import SkipGradient
from mygrad.errors import MyGradException
from mygrad.operation_base import Operation

from autograd_conformance.implementations import protocol
from autograd_conformance.implementations.lowering import Context, Lowered, as_tuple, autograd_namespace
from autograd_conformance.implementations.mygrad_deviations import DEVIATIONS
from autograd_conformance.implementations.protocol import Description, Environment, Pullback, Tensors


def _is_tensor(value: Any) -> bool:
    # Operations compute with arrays, and 0-d ones become NumPy's scalars.
    return isinstance(value, mg.Tensor | np.ndarray | np.generic)


class _Call(Operation, Context):
    """A call of a body, and its ctx; backward gives the gradients of all variables when the first is asked for."""

    def __call__(self, *variables: Any, lowered: Lowered) -> Any:
        self.variables, self.lowered = variables, lowered
        self.cotangent, self.gradients = None, ()
        arrays, needs = [x.data for x in variables], [not x.constant for x in variables]
        (output,), _ = lowered.forward(arrays, needs, self._context)
        return output

    def _context(self, needs: Sequence[bool]) -> Any:
        Context.__init__(self, needs)
        return self

    def backward_var(self, grad: Any, index: int, **_: Any) -> Any:
        if self.cotangent is not grad:
            self.cotangent, self.gradients = grad, self.lowered.backward(self, [grad])
        found: Any = self.gradients[index]
        if found is None:
            raise SkipGradient
        # Within an operation everything is an array.
        return found.data if isinstance(found, mg.Tensor) else found


def _apply(lowered: Lowered) -> Any:
    output = mg.execute_op(_Call, *lowered.tensors, op_kwargs={"lowered": lowered})
    # A call from within an operation, which computes with arrays.
    inside = not any(isinstance(x, mg.Tensor) for x in lowered.tensors)
    return lowered.returned([output.data if inside else output])


# Functions that MyGrad leaves to NumPy.
_OF_ARRAYS = ("argmax", "argsort", "flip", "take", "take_along_axis", "zeros_like", "ones_like")


def _of_arrays(function: Callable[..., Any]) -> Callable[..., Any]:
    def of_constants(*args: Any, **options: Any) -> Any:
        return function(*(x.data if isinstance(x, mg.Tensor) and x.constant else x for x in args), **options)

    return of_constants


def array_namespace() -> ModuleType:
    """``numpy``, which hands over to MyGrad where it is given tensors."""
    xp = ModuleType("mygrad_array_namespace")
    xp.__dict__.update(vars(np))
    xp.__dict__.update({name: _of_arrays(getattr(np, name)) for name in _OF_ARRAYS})
    xp.__dict__.update(
        copy=lambda x: +x if isinstance(x, mg.Tensor) else np.copy(x),
        from_numpy=lambda a, like: a,
        matrix_transpose=lambda x: np.swapaxes(x, -1, -2),
        to_numpy=np.asarray,
    )
    return xp


def _backward(outputs: Tensors, cotangents: Sequence[Any]) -> None:
    used = [(y, g) for y, g in zip(outputs, cotangents, strict=True) if g is not None]
    if len(used) == 1:
        used[0][0].backward(used[0][1])
    else:
        mg.add_sequence(0, 0, *(mg.sum(y * mg.asarray(g)) for y, g in used)).backward()


class MyGradImplementation(protocol.Implementation):
    """Custom Functions as operations derived from `mygrad.operation_base.Operation`, called by `mygrad.execute_op`."""

    name = "mygrad"
    capabilities = frozenset({"gradient_fitting", "memory", "needs_input_grad", "numpy", "requires_grad", "views"})
    deviations = DEVIATIONS
    dtypes = ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool")
    refusals = (*protocol.Implementation.refusals, AssertionError, MyGradException)
    supported = ">=2.5"
    dialect = "mygrad"
    xp = array_namespace()
    ag = autograd_namespace(_apply, _is_tensor)

    def environment(self) -> Environment:
        return Environment(mg.__version__, str(mg.__file__))

    def array(self, values: Any, dtype: str, device: str) -> Any:
        return mg.tensor(values, dtype=dtype, constant=True)

    def numpy(self, tensor: Any) -> Any:
        array = mg.asarray(tensor)
        return np.array(array, np.float64 if array.dtype.kind == "f" else array.dtype)

    def describe(self, tensor: Any) -> Description:
        return Description(tuple(tensor.shape), str(tensor.dtype), "cpu")

    def is_tensor(self, value: Any) -> bool:
        return _is_tensor(value)

    def vjp(
        self, f: Callable[..., Any], primals: Sequence[Any], *, track: Sequence[bool] | None = None
    ) -> tuple[Tensors, Pullback]:
        tracked = [True] * len(primals) if track is None else list(track)

        def run() -> tuple[list[Any], Tensors]:
            leaves = [mg.Tensor(x, constant=not t, copy=False) for x, t in zip(primals, tracked, strict=True)]
            return leaves, as_tuple(f(*leaves))

        first = run()
        graphs = [first]

        def pullback(
            cotangents: Sequence[Any], wrt: Sequence[bool] | None = None, differentiable: bool = False
        ) -> Tensors:
            # A backward pass clears the graph.
            leaves, outputs = graphs.pop() if graphs else run()
            _backward(outputs, cotangents)
            return tuple(x.grad if w else None for x, w in zip(leaves, tracked if wrt is None else wrt, strict=True))

        return first[1], pullback

    def requires_grad(self, tensor: Any) -> bool:
        return isinstance(tensor, mg.Tensor) and not tensor.constant

    def node(self, tensor: Any) -> Any:
        return getattr(tensor, "creator", None)

    def no_grad(self) -> AbstractContextManager[Any]:
        return mg.no_autodiff

    def shares_memory(self, a: Any, b: Any) -> bool:
        return bool(np.shares_memory(mg.asarray(a), mg.asarray(b)))

    def fill_(self, tensor: Any, value: float) -> None:
        with mg.no_autodiff:
            tensor[...] = value

    def strides(self, tensor: Any) -> tuple[int, ...]:
        return tuple(mg.asarray(tensor).strides)
