"""Faults of MyGrad."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import mygrad as mg
import numpy as np
from mygrad._utils import SkipGradient, lock_management
from mygrad.operation_base import Operation

from autograd_conformance.selftests.faults.planting import Plant, fault, replaced


def executing(change: Callable[..., Any]) -> Plant:
    """``execute_op`` is ``change(original, operation, inputs, options)``."""

    def wrap(original: Any) -> Any:
        return lambda operation, *inputs, **options: change(original, operation, inputs, options)

    return replaced(mg, "execute_op", wrap)


def going_back(change: Callable[..., Any]) -> Plant:
    """``Tensor.backward`` is ``change(original, tensor, gradient)``."""

    def wrap(original: Any) -> Any:
        return lambda tensor, grad=None: change(original, tensor, grad)

    return replaced(mg.Tensor, "backward", wrap)


def passing_on(
    *,
    added: Callable[[Any, Any], Any] = lambda a, b: b if a is None else a + b,
    position: Callable[[Any, int], int] = lambda _, index: index,
    array: Callable[[Any, Any], Any] = lambda found, _: np.asarray(found),
    dtype: Callable[[Any, Any], Any] = lambda found, var: found.astype(var.dtype),
    masked: Callable[[Any, Any], Any] = lambda found, where: found if where is True else found * where,
    ended: bool = False,
) -> Plant:
    """``Operation.backward`` without its checks, one of its steps replaced."""

    def backward(self: Any, grad: Any, **options: Any) -> None:
        for index, var in enumerate(self.variables):
            if var.constant:
                continue
            try:
                found = self.backward_var(grad, position(self, index), **options)
            except SkipGradient:
                if ended:
                    break
                continue
            found = self.grad_post_process_fn(masked(array(found, var), self.where), var.shape)
            var._grad = added(var._grad, dtype(found, var)) + 0

    return replaced(Operation, "backward", lambda _: backward)


def _variables(execute: Any, operation: Any, inputs: Any, options: Any) -> Any:
    tensors = (x if isinstance(x, mg.Tensor) else mg.tensor(x, dtype=float) for x in inputs)
    return execute(operation, *tensors, **options)


def _never_constant(execute: Any, operation: Any, inputs: Any, options: Any) -> Any:
    return execute(operation, *inputs, **{"constant": False, **options})


def _without(name: str) -> Callable[..., Any]:
    def change(execute: Any, operation: Any, inputs: Any, options: Any) -> Any:
        return execute(operation, *inputs, **{key: value for key, value in options.items() if key != name})

    return change


def _without_tensor_as_out(execute: Any, operation: Any, inputs: Any, options: Any) -> Any:
    change = _without("out") if isinstance(options.get("out"), mg.Tensor) else _without("")
    return change(execute, operation, inputs, options)


def _sharing() -> Plant:
    instances: dict[Any, Any] = {}

    def change(execute: Any, operation: Any, inputs: Any, options: Any) -> Any:
        return execute(lambda: instances.setdefault(operation, operation()), *inputs, **options)

    return executing(change)


def _keeping_gradients(execute: Any, operation: Any, inputs: Any, options: Any) -> Any:
    tensors = [x for x in inputs if isinstance(x, mg.Tensor)]
    held = [x._grad for x in tensors]
    output = execute(operation, *inputs, **options)
    for tensor, grad in zip(tensors, held, strict=True):
        tensor._grad = grad
    return output


def _locking_always(execute: Any, operation: Any, inputs: Any, options: Any) -> Any:
    output = execute(operation, *inputs, **options)
    for x in (*inputs, output):
        mg.asarray(x).flags.writeable = False
    return output


def _among_variables(operation: Any, index: int) -> int:
    return sum(not var.constant for var in operation.variables[:index])


def _averaged(reduce: Any) -> Any:
    def mean(grad: Any, shape: Any) -> Any:
        found = reduce(grad, shape)
        return np.asarray(found * (found.size / grad.size)) if grad.size else found

    return staticmethod(mean)


def _given_ones(_: Any) -> Any:
    def backward(tensor: Any) -> None:
        if tensor.creator is not None:
            tensor.creator.backward(np.ones_like(tensor.data))

    return backward


def _from_the_mean(backward: Any, tensor: Any, grad: Any) -> None:
    backward(tensor, 1 / max(tensor.size, 1) if grad is None else grad)


def _for_the_first_entry(backward: Any, tensor: Any, grad: Any) -> None:
    found = np.zeros(tensor.shape) if grad is None or np.shape(grad) != tensor.shape else np.array(mg.asarray(grad))
    if grad is not None and np.shape(grad) != tensor.shape:
        found.flat[:1] = np.ravel(mg.asarray(grad))[:1]
    backward(tensor, found)


def _cut(backward: Any, tensor: Any, grad: Any) -> None:
    backward(tensor, None if grad is None else np.resize(grad, tensor.shape))


def _for_leaves_alone(backward: Any, tensor: Any, grad: Any) -> None:
    made, stack = [], [tensor]
    while stack:
        found = stack.pop()
        if found.creator is not None:
            made.append(found)
            stack.extend(found.creator.variables)
    backward(tensor, grad)
    for found in made:
        found.null_grad()


def _zeroed(_: Any) -> Any:
    def null_grad(tensor: Any, **_: Any) -> Any:
        tensor._grad = np.zeros_like(tensor.data)
        return tensor

    return null_grad


def _of_any_dtype(tensor: Any) -> Any:
    def make(values: Any, **options: Any) -> Any:
        try:
            return tensor(values, **options)
        except ValueError:
            return tensor(values)

    return make


def _left_in(state: bool) -> Callable[[Any], Any]:
    def wrap(leave: Any) -> Any:
        def left(context: Any, *raised: Any) -> None:
            leave(context, *raised)
            context.state = state

        return left

    return wrap


@contextmanager
def leaving(cls: Any, state: bool) -> Iterator[None]:
    """A context of this class leaves that state behind."""
    # The method is inherited: it is put back by deleting the new one.
    cls.__exit__ = _left_in(state)(cls.__exit__)
    try:
        yield
    finally:
        del cls.__exit__


@contextmanager
def _staying_off() -> Iterator[None]:
    try:
        with leaving(type(mg.mem_guard_off), False):
            yield
    finally:
        mg.turn_memory_guarding_on()


def _at_once(release: Any) -> Any:
    def released(array: Any) -> None:
        if id(array) in lock_management._array_counter:
            lock_management._array_counter[id(array)] = 1
        release(array)

    return released


def _written_through(change: Any) -> Any:
    def written(tensor: Any, *given: Any, **options: Any) -> Any:
        for array in (tensor.data.base, tensor.data):
            if array is not None:
                array.flags.writeable = True
        with mg.no_autodiff:
            return change(tensor, *given, **options)

    return written


FAULTS = (
    fault("MYGRAD-OP-01", executing(_variables), "constants"),
    fault("MYGRAD-OP-02", executing(_never_constant), "the output is a constant"),
    fault("MYGRAD-OP-03", executing(_without("constant")), "the output is a constant"),
    fault("MYGRAD-OP-04", executing(_without("op_kwargs")), "keywords"),
    fault("MYGRAD-OP-05", replaced(mg.Tensor, "_backward", _given_ones), "derivatives"),
    fault("MYGRAD-OP-06", passing_on(position=_among_variables), "positions"),
    fault("MYGRAD-OP-07", replaced(Operation, "grad_post_process_fn", _averaged), "gradients"),
    fault(
        "MYGRAD-OP-08",
        passing_on(array=lambda f, var: f if isinstance(f, np.ndarray) else np.zeros(var.shape)),
        "no error",
        "InvalidGradient",
    ),
    fault("MYGRAD-OP-09", passing_on(ended=True), "gradients"),
    fault("MYGRAD-OP-10", passing_on(dtype=lambda found, _: found), "dtypes"),
    fault("MYGRAD-OP-11", passing_on(added=lambda _, last: last), "two tensors"),
    fault("MYGRAD-OP-12", _sharing(), "number of different creators"),
    fault("MYGRAD-OP-13", passing_on(masked=lambda found, _: found), "gradients"),
    fault("MYGRAD-OP-14", executing(_without_tensor_as_out), "out"),
    fault("MYGRAD-GRAPH-01", going_back(_from_the_mean), "gradient"),
    fault("MYGRAD-GRAPH-02", going_back(_for_the_first_entry), "gradients"),
    fault("MYGRAD-GRAPH-03", going_back(_cut), "no error", "ValueError"),
    fault("MYGRAD-GRAPH-05", replaced(mg.Tensor, "clear_graph", lambda _: lambda _: None), "creators after backward"),
    fault("MYGRAD-GRAPH-06", executing(_keeping_gradients), "gradients in a new graph"),
    fault("MYGRAD-GRAPH-07", replaced(mg.Tensor, "null_grad", _zeroed), "gradients"),
    fault("MYGRAD-GRAPH-08", going_back(_for_leaves_alone), "intermediate"),
    fault("MYGRAD-GRAPH-09", passing_on(), "no error", "InvalidBackprop"),
    fault("MYGRAD-GRAPH-10", replaced(mg, "tensor", _of_any_dtype), "no error", "ValueError"),
    fault("MYGRAD-GRAPH-11", lambda: leaving(type(mg.no_autodiff), True), "within it"),
    fault("MYGRAD-GUARD-01", lambda: mg.mem_guard_off, "writeable arrays in a graph"),
    fault("MYGRAD-GUARD-02", _staying_off, "mem_guard_active"),
    fault("MYGRAD-GUARD-03", executing(_locking_always), "writeable arrays"),
    fault(
        "MYGRAD-GUARD-04",
        replaced(lock_management, "_release_lock_on_arr_writeability", _at_once),
        "each graph is cleared",
    ),
    fault(
        "MYGRAD-GUARD-05",
        replaced(lock_management, "release_writeability_lock_on_op", lambda _: lambda _: None),
        "writeable arrays",
    ),
    fault("MYGRAD-VIEW-01", replaced(mg.Tensor, "_in_place_op", _written_through), "gradient"),
    fault(
        "MYGRAD-VIEW-02",
        replaced(mg.Tensor, "grad", lambda _: property(lambda tensor: tensor._grad)),
        "gradient of the view",
    ),
    fault("MYGRAD-VIEW-03", replaced(mg.Tensor, "_in_place_op", _written_through), "what it was made from"),
)
