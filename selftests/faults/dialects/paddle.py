"""Planted faults of PaddlePaddle: bugs that are installed into its public entry points."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any
from unittest import mock

import paddle
from paddle.autograd import PyLayer, py_layer
from paddle.base.dygraph import tensor_patch_methods

from autograd_conformance.selftests.faults.dialects.gradients import fitted
from autograd_conformance.selftests.faults.planting import Plant, fault, put
from autograd_conformance.suites.dialects.paddle import test_engine

_BACKWARD = py_layer.PyLayerBackward.backward
_GRAD = paddle.grad


def _tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _backward(change: Callable[..., Any]) -> Plant:
    """A layer's backward is called by ``change(call, cotangents)``."""

    def backward(ctx: Any, *cotangents: Any) -> Any:
        return change(lambda *given: _BACKWARD(ctx, *given), cotangents)

    return put(py_layer.PyLayerBackward, "backward", backward)


def _apply(change: Callable[..., Any]) -> Plant:
    """A layer is applied by ``change(call, args, named)``."""

    def apply(cls: Any, *args: Any, **named: Any) -> Any:
        return change(super(PyLayer, cls).apply, args, named)

    return put(PyLayer, "apply", classmethod(apply))


def _forward(change: Callable[..., Any]) -> Plant:
    """A layer's forward is called by ``change(call, ctx, args, named)``."""

    def apply(cls: Any, *args: Any, **named: Any) -> Any:
        def forward(ctx: Any, *given: Any, **more: Any) -> Any:
            return change(cls.forward, ctx, given, more)

        changed = type(PyLayer)(cls.__name__, (cls,), {"forward": staticmethod(forward)})
        return super(PyLayer, changed).apply(*args, **named)

    return put(PyLayer, "apply", classmethod(apply))


def _grad(change: Callable[..., Any]) -> Plant:
    """paddle.grad is ``change(outputs, inputs, grad_outputs, **options)``."""

    def grad(outputs: Any, inputs: Any, grad_outputs: Any = None, **options: Any) -> Any:
        return change(outputs, inputs, grad_outputs, **options)

    return put(paddle, "grad", grad)


@contextmanager
def _lenient(keep: Callable[[tuple[Any, ...], list[bool]], tuple[Any, ...]]) -> Iterator[None]:
    """What backward returns is made to fit, given of each input of the last call whether it requires a gradient."""
    flags: list[bool] = []

    def note(call: Any, args: Any, named: Any) -> Any:
        flags[:] = [not x.stop_gradient for x in args if paddle.is_tensor(x)]
        return call(*args, **named)

    with _apply(note)(), _backward(lambda call, given: keep(_tuple(call(*given)), flags))():
        yield


def _masked(found: tuple[Any, ...], flags: list[bool]) -> tuple[Any, ...]:
    return tuple(g if flag else None for g, flag in zip(found, flags, strict=True))


def _as_tensors(call: Any, given: Any) -> Any:
    return tuple(
        paddle.to_tensor(float(g), dtype="float64") if isinstance(g, int | float) else g for g in _tuple(call(*given))
    )


def _without_factor(call: Any, args: Any, named: Any) -> Any:
    return call(*args, **{name: value for name, value in named.items() if name != "factor"})


def _first_only(call: Any, args: Any, named: Any) -> Any:
    kept = [type(a)([*a[:1], *(x.detach() for x in a[1:])]) if isinstance(a, list | tuple) else a for a in args]
    return call(*kept, **named)


def _listless(call: Any, args: Any, named: Any) -> Any:
    found = call(*args, **named)
    return tuple(found) if isinstance(found, list) else found


def _or_zero(call: Any, args: Any, named: Any) -> Any:
    try:
        return call(*args, **named)
    except ValueError:
        return paddle.zeros([])


def _recorded(call: Any, ctx: Any, args: Any, named: Any) -> Any:
    with paddle.enable_grad():
        return call(ctx, *args, **named)


def _never_in_place(call: Any, ctx: Any, args: Any, named: Any) -> Any:
    ctx.mark_not_inplace(*filter(paddle.is_tensor, args))
    return call(ctx, *args, **named)


@contextmanager
def _shared_attributes() -> Iterator[None]:
    shared: dict[str, Any] = {}
    base = py_layer.PyLayerBackward
    with (
        mock.patch.object(base, "__setattr__", lambda _, name, value: shared.update({name: value}), create=True),
        mock.patch.object(base, "__getattr__", lambda _, name: shared[name], create=True),
    ):
        yield


def _twos(outputs: Any, inputs: Any, grad_outputs: Any, **options: Any) -> Any:
    tensors = outputs if isinstance(outputs, list | tuple) else [outputs]
    given = grad_outputs if isinstance(grad_outputs, list | tuple) else [grad_outputs] * len(tensors)
    filled = [2 * paddle.ones_like(y) if g is None else g for y, g in zip(tensors, given, strict=True)]
    return _GRAD(list(tensors), inputs, filled, **options)


def _not_differentiable(outputs: Any, inputs: Any, grad_outputs: Any, **options: Any) -> Any:
    return _GRAD(outputs, inputs, grad_outputs, **{**options, "create_graph": False, "retain_graph": True})


def _storing(outputs: Any, inputs: Any, grad_outputs: Any, **options: Any) -> Any:
    found = _GRAD(outputs, inputs, grad_outputs, **options)
    for x, g in zip(inputs, found, strict=True):
        x.grad = g
    return found


def _zero_at_last() -> AbstractContextManager[Any]:
    seen: list[Any] = []

    def grad(outputs: Any, inputs: Any, grad_outputs: Any, **options: Any) -> Any:
        found = _GRAD(outputs, inputs, grad_outputs, **options)
        again = any(outputs is y for y in seen)
        seen.append(outputs)
        return [0 * g for g in found] if again else found

    return _grad(grad)()


def _generous_backward(tensors: Any, grad_tensors: Any) -> None:
    pairs = {id(y): (y, g) for y, g in zip(tensors, grad_tensors, strict=False)}
    for y, g in pairs.values():
        y.backward(g, retain_graph=False) if len(pairs) == 1 else None


@contextmanager
def _always_recording() -> Iterator[None]:
    with (
        mock.patch.object(paddle, "no_grad", nullcontext),
        mock.patch.object(paddle, "set_grad_enabled", nullcontext),
    ):
        yield


def _hook(change: Callable[[Any, Any, Any], Any]) -> Plant:
    register = paddle.Tensor.register_hook
    return put(paddle.Tensor, "register_hook", lambda tensor, hook: change(register, tensor, hook))


def _context(name: str, new: Callable[..., Any]) -> Plant:
    """A method of PyLayerContext that gets what the right one is bound to."""
    usual = getattr(py_layer.PyLayerContext, name)
    return put(py_layer.PyLayerContext, name, lambda ctx, *given: new(usual, ctx, *given))


def _nothing(*_: Any) -> None:
    return None


FAULTS = (
    fault("PADDLE-LAYER-01", _backward(lambda call, given: call(*given[::-1])), "gradients that backward gets"),
    fault("PADDLE-LAYER-02", _backward(lambda call, given: _tuple(call(*given))[::-1]), "gradients, position"),
    fault("PADDLE-LAYER-03", lambda: _lenient(fitted), "no error"),
    fault("PADDLE-LAYER-04", _backward(lambda call, given: list(_tuple(call(*given)))), "returns a tuple"),
    fault("PADDLE-LAYER-05", _backward(_as_tensors), "a gradient that is no tensor", "no error"),
    fault("PADDLE-LAYER-06", lambda: _lenient(_masked), "a tensor for an input that stops gradients"),
    fault("PADDLE-LAYER-08", _apply(_without_factor), "output"),
    fault("PADDLE-LAYER-09", _apply(_first_only)),
    fault("PADDLE-LAYER-10", _apply(_listless), "type of the result", "list"),
    fault("PADDLE-LAYER-11", put(PyLayer, "forward", staticmethod(lambda _, x: 2 * x)), "lacks a method"),
    fault("PADDLE-LAYER-12", _apply(_or_zero), "a forward without a tensor"),
    fault("PADDLE-LAYER-14", _forward(_recorded), "grad mode in forward"),
    fault("PADDLE-CTX-01", _context("saved_tensor", lambda usual, ctx: usual(ctx)[::-1]), "saved tensors, position"),
    fault("PADDLE-CTX-02", _context("saved_tensor", lambda usual, ctx: usual(ctx) or ()), "saved_tensor()"),
    fault("PADDLE-CTX-03", _context("set_materialize_grads", _nothing), "cotangents that the rule gets"),
    fault("PADDLE-CTX-04", _context("mark_non_differentiable", _nothing), "stop_gradient of the outputs"),
    fault("PADDLE-CTX-05", _context("mark_not_inplace", _nothing), "is the input"),
    fault("PADDLE-CTX-06", _context("set_grad_in_dtype_consistent", _nothing), "dtype of the gradient"),
    fault("PADDLE-CTX-07", _shared_attributes, "gradients, position"),
    fault("PADDLE-CTX-08", _forward(_never_in_place), "whether the output is the input"),
    fault("PADDLE-CTX-09", put(paddle.base.dygraph, "no_grad", nullcontext), "second derivative"),
    fault("PADDLE-ENGINE-01", _grad(_twos), "gradient, position 0"),
    fault(
        "PADDLE-ENGINE-02",
        _grad(lambda y, x, g, **options: _GRAD(y, x, g, **{**options, "allow_unused": True})),
        "an unused input",
        "no error",
    ),
    fault("PADDLE-ENGINE-03", _grad(_not_differentiable), "stop_gradient of the gradient"),
    fault("PADDLE-ENGINE-05", _grad(_storing), ".grad after paddle.grad"),
    fault("PADDLE-ENGINE-06", put(paddle.Tensor, "clear_grad", _nothing), ".grad"),
    fault("PADDLE-ENGINE-07", put(paddle.autograd, "backward", _generous_backward), "no error"),
    fault("PADDLE-ENGINE-09", _zero_at_last, "gradients, position 1"),
    fault("PADDLE-ENGINE-10", _always_recording, "stop_gradient of the outputs"),
    fault("PADDLE-ENGINE-11", put(test_engine, "recompute", lambda f, *xs: f(*xs)), "runs of the function"),
    fault(
        "PADDLE-HOOK-01", _hook(lambda register, tensor, hook: register(tensor, lambda g: _nothing(hook(g)))), "hooks"
    ),
    fault(
        "PADDLE-HOOK-02",
        put(tensor_patch_methods.TensorHookRemoveHelper, "remove", lambda _: True),
        "hooks that are called",
    ),
    fault(
        "PADDLE-HOOK-03",
        _hook(lambda register, tensor, hook: None if tensor.stop_gradient else register(tensor, hook)),
        "a hook on it",
        "no error",
    ),
    fault(
        "PADDLE-HOOK-04",
        put(paddle.autograd, "saved_tensors_hooks", lambda *_: nullcontext()),
        "values that are packed",
    ),
    fault(
        "PADDLE-TYPE-01",
        _grad(lambda *given, **options: [paddle.conj(g) for g in _GRAD(*given, **options)]),
        "gradient, position 0",
    ),
)
