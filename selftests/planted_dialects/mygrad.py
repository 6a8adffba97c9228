"""Faults of MyGrad."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import mygrad as mg
import numpy as np
from mygrad._utils import SkipGradient, lock_management
from mygrad.operation_base import Operation

from autograd_conformance.selftests.planting import Fault


@contextmanager
def replaced(owner: Any, name: str, wrap: Callable[[Any], Any]) -> Iterator[None]:
    """``owner.name`` is what ``wrap`` makes of it."""
    original, mine = getattr(owner, name), vars(owner)[name]
    setattr(owner, name, wrap(original))
    try:
        yield
    finally:
        setattr(owner, name, mine)


def executing(change: Callable[..., Any]) -> AbstractContextManager[None]:
    """``execute_op`` is ``change(original, operation, inputs, options)``."""

    def wrap(original: Any) -> Any:
        return lambda operation, *inputs, **options: change(original, operation, inputs, options)

    return replaced(mg, "execute_op", wrap)


def going_back(change: Callable[..., Any]) -> AbstractContextManager[None]:
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
) -> AbstractContextManager[None]:
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


def _sharing() -> AbstractContextManager[None]:
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
    Fault("MYGRAD-OP-01", install=lambda: executing(_variables), says=("constants",)),
    Fault("MYGRAD-OP-02", install=lambda: executing(_never_constant), says=("the output is a constant",)),
    Fault("MYGRAD-OP-03", install=lambda: executing(_without("constant")), says=("the output is a constant",)),
    Fault("MYGRAD-OP-04", install=lambda: executing(_without("op_kwargs")), says=("keywords",)),
    Fault("MYGRAD-OP-05", install=lambda: replaced(mg.Tensor, "_backward", _given_ones), says=("derivatives",)),
    Fault("MYGRAD-OP-06", install=lambda: passing_on(position=_among_variables), says=("positions",)),
    Fault("MYGRAD-OP-07", install=lambda: replaced(Operation, "grad_post_process_fn", _averaged), says=("gradients",)),
    Fault(
        "MYGRAD-OP-08",
        install=lambda: passing_on(array=lambda f, var: f if isinstance(f, np.ndarray) else np.zeros(var.shape)),
        says=("no error", "InvalidGradient"),
    ),
    Fault("MYGRAD-OP-09", install=lambda: passing_on(ended=True), says=("gradients",)),
    Fault("MYGRAD-OP-10", install=lambda: passing_on(dtype=lambda found, _: found), says=("dtypes",)),
    Fault("MYGRAD-OP-11", install=lambda: passing_on(added=lambda _, last: last), says=("two tensors",)),
    Fault("MYGRAD-OP-12", install=_sharing, says=("number of different creators",)),
    Fault("MYGRAD-OP-13", install=lambda: passing_on(masked=lambda found, _: found), says=("gradients",)),
    Fault("MYGRAD-OP-14", install=lambda: executing(_without_tensor_as_out), says=("out",)),
    Fault("MYGRAD-GRAPH-01", install=lambda: going_back(_from_the_mean), says=("gradient",)),
    Fault("MYGRAD-GRAPH-02", install=lambda: going_back(_for_the_first_entry), says=("gradients",)),
    Fault("MYGRAD-GRAPH-03", install=lambda: going_back(_cut), says=("no error", "ValueError")),
    Fault(
        "MYGRAD-GRAPH-05",
        install=lambda: replaced(mg.Tensor, "clear_graph", lambda _: lambda _: None),
        says=("creators after backward",),
    ),
    Fault("MYGRAD-GRAPH-06", install=lambda: executing(_keeping_gradients), says=("gradients in a new graph",)),
    Fault("MYGRAD-GRAPH-07", install=lambda: replaced(mg.Tensor, "null_grad", _zeroed), says=("gradients",)),
    Fault("MYGRAD-GRAPH-08", install=lambda: going_back(_for_leaves_alone), says=("intermediate",)),
    Fault("MYGRAD-GRAPH-09", install=passing_on, says=("no error", "InvalidBackprop")),
    Fault("MYGRAD-GRAPH-10", install=lambda: replaced(mg, "tensor", _of_any_dtype), says=("no error", "ValueError")),
    Fault(
        "MYGRAD-GRAPH-11",
        install=lambda: leaving(type(mg.no_autodiff), True),
        says=("within it",),
    ),
    Fault("MYGRAD-GUARD-01", install=lambda: mg.mem_guard_off, says=("writeable arrays in a graph",)),
    Fault("MYGRAD-GUARD-02", install=_staying_off, says=("mem_guard_active",)),
    Fault("MYGRAD-GUARD-03", install=lambda: executing(_locking_always), says=("writeable arrays",)),
    Fault(
        "MYGRAD-GUARD-04",
        install=lambda: replaced(lock_management, "_release_lock_on_arr_writeability", _at_once),
        says=("each graph is cleared",),
    ),
    Fault(
        "MYGRAD-GUARD-05",
        install=lambda: replaced(lock_management, "release_writeability_lock_on_op", lambda _: lambda _: None),
        says=("writeable arrays",),
    ),
    Fault(
        "MYGRAD-VIEW-01",
        install=lambda: replaced(mg.Tensor, "_in_place_op", _written_through),
        says=("gradient",),
    ),
    Fault(
        "MYGRAD-VIEW-02",
        install=lambda: replaced(mg.Tensor, "grad", lambda _: property(lambda tensor: tensor._grad)),
        says=("gradient of the view",),
    ),
    Fault(
        "MYGRAD-VIEW-03",
        install=lambda: replaced(mg.Tensor, "_in_place_op", _written_through),
        says=("what it was made from",),
    ),
)
