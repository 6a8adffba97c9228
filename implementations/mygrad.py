"""MyGrad: custom Functions as operations derived from `mygrad.operation_base.Operation`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import mygrad as mg
import numpy as np
from mygrad._utils import SkipGradient
from mygrad.errors import MyGradException
from mygrad.operation_base import Operation

from autograd_conformance.implementations import adapting
from autograd_conformance.implementations.adapting.lowering import Context, Lowered, autograd_namespace
from autograd_conformance.implementations.deviations.mygrad import DEVIATIONS
from autograd_conformance.implementations.protocol import BackwardPass, Mask, Tensors


def _is_tensor(value: Any) -> bool:
    # Operations compute with arrays, and 0-d arrays become NumPy scalars.
    return isinstance(value, mg.Tensor | np.ndarray | np.generic)


class _Call(Operation, Context):
    """A call of a body, and its ctx. The request for the first gradient computes those of all variables."""

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
        # Inside an operation everything is an array.
        return found.data if isinstance(found, mg.Tensor) else found


def _apply(lowered: Lowered) -> Any:
    output = mg.execute_op(_Call, *lowered.tensors, op_kwargs={"lowered": lowered})
    # A call from inside an operation, which computes with arrays.
    inside = not any(isinstance(x, mg.Tensor) for x in lowered.tensors)
    return lowered.returned([output.data if inside else output])


# Functions that MyGrad leaves to NumPy.
_OF_ARRAYS = ("argmax", "argsort", "flip", "take", "take_along_axis", "zeros_like", "ones_like")


def _of_arrays(function: Callable[..., Any]) -> Callable[..., Any]:
    def of_constants(*args: Any, **options: Any) -> Any:
        return function(*(x.data if isinstance(x, mg.Tensor) and x.constant else x for x in args), **options)

    return of_constants


def _backward(outputs: Sequence[Any], cotangents: Sequence[Any]) -> None:
    if len(outputs) == 1:
        outputs[0].backward(cotangents[0])
    else:
        products = (mg.sum(y * mg.asarray(g)) for y, g in zip(outputs, cotangents, strict=True))
        mg.add_sequence(0, 0, *products).backward()


class MyGradImplementation(adapting.NumPyImplementation):
    """Custom Functions as operations derived from `mygrad.operation_base.Operation`, called by `mygrad.execute_op`."""

    name = "mygrad"
    capabilities = frozenset({"gradient_fitting", "memory", "needs_input_grad", "numpy", "requires_grad", "views"})
    deviations = DEVIATIONS
    dtypes = ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool")
    refusals = (*adapting.NumPyImplementation.refusals, AssertionError, MyGradException)
    supported = ">=2.5"
    dialect = "mygrad"
    package = mg
    # NumPy calls MyGrad when it gets tensors.
    xp = adapting.namespace(
        np,
        **{name: _of_arrays(getattr(np, name)) for name in _OF_ARRAYS},
        copy=lambda x: +x if isinstance(x, mg.Tensor) else np.copy(x),
        from_numpy=lambda a, like: a,
        matrix_transpose=lambda x: np.swapaxes(x, -1, -2),
        to_numpy=np.asarray,
    )
    ag = autograd_namespace(_apply, _is_tensor)
    is_tensor = staticmethod(_is_tensor)

    def array(self, values: Any, dtype: str, device: str) -> Any:
        return mg.tensor(values, dtype=dtype, constant=True)

    def as_numpy(self, tensor: Any) -> Any:
        return mg.asarray(tensor)

    def differentiate(self, f: Callable[..., Tensors], primals: Tensors, tracked: Mask) -> tuple[Tensors, BackwardPass]:
        def run() -> tuple[list[Any], Tensors]:
            leaves = [mg.Tensor(x, constant=not t, copy=False) for x, t in zip(primals, tracked, strict=True)]
            return leaves, f(*leaves)

        graphs = [run()]

        def gradients(cotangents: Sequence[Any], wanted: Mask, differentiable: bool) -> list[Any]:
            # A backward pass clears the graph.
            leaves, outputs = graphs.pop() if graphs else run()
            _backward(*adapting.used(outputs, cotangents))
            return [x.grad for x in leaves]

        return graphs[0][1], gradients

    def requires_grad(self, tensor: Any) -> bool:
        return isinstance(tensor, mg.Tensor) and not tensor.constant

    def node(self, tensor: Any) -> Any:
        return getattr(tensor, "creator", None)

    def no_grad(self) -> AbstractContextManager[Any]:
        return mg.no_autodiff

    def fill_(self, tensor: Any, value: Any) -> None:
        with mg.no_autodiff:
            tensor[...] = value
