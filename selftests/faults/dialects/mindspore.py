"""Faults of MindSpore."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import mindspore as ms
from mindspore import nn, ops

from autograd_conformance.selftests.faults.dialects.gradients import filled, fitted
from autograd_conformance.selftests.faults.planting import Fault, Plant, fault, put, replaced

Call = Callable[..., Any]


def calling(clause: str, name: str, call: Call, *says: str, owner: Any = ms, words: str = "") -> Fault:
    """The fault that a call of ``owner.name`` is ``call(original, *args, **kwargs)``."""

    def wrap(original: Any) -> Any:
        return functools.wraps(original)(lambda *args, **kwargs: call(original, *args, **kwargs))

    install = replaced(owner, name, wrap)
    return fault(f"MINDSPORE-{clause}", install, *says, words=words)


# --- Functions -------------------------------------------------------------------------------------------------------


def functions(clause: str, change: Callable[[Any], dict[str, Any]], *says: str, words: str = "") -> Fault:
    """The fault that each call is one of a subclass with other methods, which ``change`` makes of the class."""
    original = vars(ms._Function)["apply"].__func__

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        methods = {name: staticmethod(method) for name, method in change(cls).items()}
        return original(type(cls.__name__, (cls,), methods), *args, **kwargs)

    return fault(f"MINDSPORE-{clause}", put(ms._Function, "apply", classmethod(apply)), *says, words=words)


def tensors(values: Any) -> tuple[Any, ...]:
    """What is a tensor among them."""
    return tuple(v for v in (values if isinstance(values, tuple) else (values,)) if isinstance(v, ms.Tensor))


def backward(change: Callable[[Any, tuple[Any, ...]], Any]) -> Callable[[Any], dict[str, Any]]:
    """A backward that returns what ``change`` makes of the ctx and of what it returned, as a tuple."""

    def methods(cls: Any) -> dict[str, Any]:
        def changed(ctx: Any, *cotangents: Any) -> Any:
            found = cls.backward(ctx, *cotangents)
            return change(ctx, found if isinstance(found, tuple) else (found,))

        return {"backward": changed}

    return methods


def _dropped(ctx: Any, found: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*found[:-1], None) if len(ctx.needs_input_grad) > 1 else found


def _only_tensors(ctx: Any, found: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(g if isinstance(g, ms.Tensor) else None for g in found)


def _first_entries(found: tuple[Any, ...], shapes: list[Any]) -> tuple[Any, ...]:
    def first(g: Any, ndim: int) -> Any:
        while isinstance(g, ms.Tensor) and g.ndim > ndim:
            g = g[0]
        return g

    return tuple(first(g, len(shape)) for g, shape in zip(found, shapes, strict=True))


def _first_entry_of_gradients(cls: Any) -> dict[str, Any]:
    def forward(ctx: Any, *args: Any) -> Any:
        ctx.shapes = [getattr(x, "shape", ()) for x in args]
        return cls.forward(ctx, *args)

    def changed(ctx: Any, *cotangents: Any) -> Any:
        return _first_entries(cls.backward(ctx, *cotangents), ctx.shapes)

    return {"forward": forward, "backward": changed}


def _flags(cls: Any) -> dict[str, Any]:
    def forward(ctx: Any, *args: Any) -> Any:
        ctx.needs_input_grad = (True,) * len(args)
        return cls.forward(ctx, *args)

    return {"forward": forward}


def _text(cls: Any) -> dict[str, Any]:
    def forward(ctx: Any, *args: Any) -> Any:
        found = cls.forward(ctx, *args)
        if not isinstance(found, tuple):
            return found
        return tuple(y if isinstance(y, ms.Tensor) else f"{y!r}." for y in found)

    return {"forward": forward}


def _defaults(cls: Any) -> dict[str, Any]:
    if cls.setup_context is ms._Function.setup_context:
        return {}
    return {"setup_context": lambda ctx, inputs, output: cls.setup_context(ctx, (inputs[0], 1, 2), output)}


def _handed_on(cls: Any) -> dict[str, Any]:
    def forward(ctx: Any, *args: Any) -> Any:
        found = cls.forward(ctx, *args)
        ctx.handed = len(args) == 1 and found is args[0]
        return found

    return {
        "forward": forward,
        "backward": lambda ctx, *gs: gs[0] if ctx.handed else cls.backward(ctx, *gs),
    }


def _constant(ctx: Any, found: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(ops.stop_gradient(g) if isinstance(g, ms.Tensor) else g for g in found)


def _told(cls: Any) -> dict[str, Any]:
    def observed(method: Any) -> Any:
        def run(*args: Any) -> Any:
            try:
                return method(*args)
            except Exception as raised:
                raise RuntimeError(str(raised)) from raised

        return run

    return {"forward": observed(cls.forward), "backward": observed(cls.backward)}


def ignored(name: str) -> Plant:
    """A method of ctx that does nothing."""
    return put(ms._Function, name, lambda self, *args: None)


class _Differentiated(ms._Function):
    """What calls of a class become whose backward is ignored."""

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        class Recorder:
            def __getattr__(self, _: str) -> Any:
                return lambda *_: None

        return cls.forward(Recorder(), *args, **kwargs)


FUNCTIONS = (
    fault("MINDSPORE-FUNCTION-01", put(ms._Function, "apply", vars(_Differentiated)["apply"]), "gradient"),
    functions("FUNCTION-02", backward(lambda ctx, found: fitted(found, ctx.needs_input_grad)), "gradients"),
    functions("FUNCTION-03", backward(_dropped), "non-tensor argument"),
    functions("FUNCTION-04", backward(_only_tensors), "no tensor"),
    functions("FUNCTION-05", _flags, "needs_input_grad"),
    functions("FUNCTION-06", _first_entry_of_gradients, "gradients"),
    functions("FUNCTION-07", _text, "output"),
    fault("MINDSPORE-FUNCTION-08", ignored("set_materialize_grads"), "cotangents"),
    fault("MINDSPORE-FUNCTION-09", ignored("mark_non_differentiable"), "gradients"),
    functions("FUNCTION-10", _defaults, "setup_context"),
    functions("FUNCTION-11", _handed_on, "gradients"),
    functions("FUNCTION-12", backward(_constant), "second derivative"),
    functions("FUNCTION-13", _told, "raises"),
)


# --- cells -----------------------------------------------------------------------------------------------------------


def cells(clause: str, change: Callable[..., Any], *says: str) -> Fault:
    """The fault that a bprop is ``change(cell, bprop, *what it got)``."""
    original = nn.Cell._call_custom_bprop

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        bprop = type(self).bprop.__get__(self)
        object.__setattr__(self, "bprop", lambda *given: change(self, bprop, *given))
        return original(self, *args, **kwargs)

    return fault(f"MINDSPORE-{clause}", put(nn.Cell, "_call_custom_bprop", call), *says)


def _as_tuple(found: Any) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else (found,)


def _swapped(cell: Any, bprop: Any, *given: Any) -> Any:
    *args, out, dout = given
    return bprop(*args, dout, out)


def _first(cell: Any, bprop: Any, *given: Any) -> Any:
    return _first_entries(bprop(*given), [x.shape for x in given[:-2]])


def _without_parameters(cell: Any, bprop: Any, *given: Any) -> Any:
    *found, last = bprop(*given)
    return (*found, {key: 0 * g for key, g in last.items()} if isinstance(last, dict) else last)


def _doubling_jit(jit: Any, f: Any) -> Any:
    compiled = jit(f)

    def call(*args: Any) -> Any:
        found = compiled(*args)
        return tuple(2 * g for g in found) if isinstance(found, tuple) else 2 * found

    return call


CELLS = (
    fault(
        "MINDSPORE-CELL-01",
        put(nn.Cell, "_call_custom_bprop", lambda self, *args: self.construct(*args)),
        "gradients",
    ),
    cells("CELL-02", _swapped, "out"),
    cells("CELL-03", lambda cell, bprop, *given: fitted(bprop(*given), given[:-2]), "gradients"),
    cells("CELL-04", lambda cell, bprop, *given: filled(bprop(*given), given, ops.ones_like), "gradients"),
    calling("CELL-05", "jit", _doubling_jit, "gradients"),
    cells("CELL-06", lambda cell, bprop, *given: _constant(None, _as_tuple(bprop(*given))), "second derivative"),
    cells("CELL-07", _first, "gradients"),
    cells("CELL-08", _without_parameters, "parameter"),
)


# --- functions that differentiate ------------------------------------------------------------------------------------


def _ascending(grad: Any, f: Any, position: Any = 0, *args: Any, **kwargs: Any) -> Any:
    return grad(f, tuple(sorted(position)) if isinstance(position, tuple) else position, *args, **kwargs)


def _lenient(grad: Any, f: Any, position: Any = 0, *args: Any, **kwargs: Any) -> Any:
    try:
        return grad(f, position, *args, **kwargs)
    except (TypeError, ValueError):
        return grad(f, 0, *args, **kwargs)


def _with_all(grad: Any, f: Any, position: Any = 0, *args: Any, has_aux: bool = False, **kwargs: Any) -> Any:
    found = grad(f, position, *args, **kwargs)
    return (lambda *xs: (found(*xs), f(*xs)[1:])) if has_aux else found


def _ones_for_sens(grad: Any, f: Any, *args: Any, sens_param: bool = False, **kwargs: Any) -> Any:
    found = grad(f, *args, **kwargs)
    return (lambda *xs, sens=None: found(*(xs if sens is not None else xs[:-1]))) if sens_param else found


def _first_output(value_and_grad: Any, f: Any, *args: Any, **kwargs: Any) -> Any:
    def first(*xs: Any) -> Any:
        outputs, found = value_and_grad(f, *args, **kwargs)(*xs)
        return (outputs[0] if isinstance(outputs, tuple) else outputs), found

    return first


def _backwards(grad: Any, f: Any, position: Any = 0, weights: Any = None, **kwargs: Any) -> Any:
    return grad(f, position, weights[::-1] if weights else weights, **kwargs)


def _pullbacks(change: Callable[..., Any]) -> Call:
    """The function that `mindspore.vjp` gives is ``change(it, inputs)``."""

    def call(vjp: Any, f: Any, *inputs: Any, **kwargs: Any) -> Any:
        output, pullback, *aux = vjp(f, *inputs, **kwargs)
        return (output, change(pullback, inputs), *aux)

    return call


def _ones_for_unused(pullback: Any, inputs: Any) -> Any:
    return lambda *vs: tuple(ops.ones_like(g) if not g.asnumpy().any() else g for g in pullback(*vs))


def _remembering(pullback: Any) -> Any:
    found: list[Any] = []

    def call(*vs: Any) -> Any:
        found.append(found[0] if found else pullback(*vs))
        return found[0]

    return call


def _last_for_all() -> Call:
    last: list[Any] = []

    def change(pullback: Any, inputs: Any) -> Any:
        last[:] = [pullback]
        return lambda *vs: last[0](*vs)

    return _pullbacks(change)


def _last_as_first(vjp: Any, f: Any, *inputs: Any, **kwargs: Any) -> Any:
    output, pullback, *aux = vjp(f, *inputs, **kwargs)
    swapped = aux and isinstance(aux[0], ms.Tensor)
    return (aux[0], pullback, output) if swapped else (output, pullback, *aux)


def _fitting(vjp: Any, f: Any, *inputs: Any, **kwargs: Any) -> Any:
    output, pullback, *aux = vjp(f, *inputs, **kwargs)

    def fits(*vs: Any) -> Any:
        return pullback(
            *(ops.ones_like(y) * v.astype(y.dtype).sum() for y, v in zip(tensors(output), vs, strict=False))
        )

    return (output, fits, *aux)


def _closing(vjp: Any, f: Any, *inputs: Any, **kwargs: Any) -> Any:
    given = [x for x in inputs if isinstance(x, ms.Tensor)]

    def of_tensors(*xs: Any) -> Any:
        moving = iter(xs)
        return f(*(next(moving) if isinstance(x, ms.Tensor) else x for x in inputs))

    try:
        return vjp(of_tensors, *given, **kwargs)
    except TypeError as raised:
        raise RuntimeError(str(raised)) from raised


GRADIENTS = (
    calling("GRAD-01", "grad", _ascending, "gradients"),
    calling("GRAD-02", "grad", _lenient, "grad_position"),
    calling("GRAD-03", "grad", _with_all, "gradients"),
    calling("GRAD-04", "get_grad", lambda get, found, _: found[0][1], "gradient"),
    calling("GRAD-05", "grad", _ones_for_sens, "gradients"),
    calling("GRAD-06", "value_and_grad", _first_output, "outputs"),
    calling("GRAD-07", "grad", _backwards, "gradients of the weights"),
    calling("GRAD-08", "vjp", _pullbacks(_ones_for_unused), "gradients"),
    calling("VJP-01", "vjp", _pullbacks(lambda pullback, inputs: _remembering(pullback)), "product"),
    calling("VJP-02", "vjp", _last_for_all(), words="all functions are the one of the last call"),
    calling("VJP-03", "vjp", _last_as_first, "output"),
    calling("VJP-04", "vjp", _fitting, "vector"),
    calling("VJP-05", "vjp", _closing, "non-tensor input"),
    calling("STOP-01", "stop_gradient", lambda stop, x: x, "gradients", owner=ops),
)


# --- hooks -----------------------------------------------------------------------------------------------------------


def _unheeded(register: Any, owner: Any, hook: Any, *args: Any, **kwargs: Any) -> Any:
    """The hook is called, and what it returns ignored."""

    def silent(*given: Any) -> None:
        hook(*given)

    return register(owner, silent if callable(hook) else hook, *args, **kwargs)


def _careless(register: Any, owner: Any, hook: Any, *args: Any, **kwargs: Any) -> Any:
    return register(owner, hook, *args, **kwargs) if callable(hook) else None


def _doubling(node: Any, hook: Any) -> Any:
    made = node(hook)
    return lambda x: made(2 * x)


def _as_it_is(recompute: Any, block: Any, *args: Any, **kwargs: Any) -> Any:
    return block(*args) if isinstance(block, nn.Cell) else recompute(block, *args, **kwargs)


HOOKS = (
    calling("HOOK-01", "register_hook", _unheeded, "gradient", owner=ms.Tensor),
    calling("HOOK-02", "register_hook", _careless, "hook", owner=ms.Tensor),
    calling("HOOK-03", "HookBackward", _doubling, "output", owner=ops),
    calling("HOOK-04", "register_backward_hook", _unheeded, "gradient", owner=nn.Cell),
    calling("HOOK-05", "register_backward_pre_hook", _unheeded, "gradient", owner=nn.Cell),
    calling("HOOK-06", "register_forward_hook", _unheeded, "output", owner=nn.Cell),
    calling("HOOK-07", "register_forward_pre_hook", _unheeded, "output", owner=nn.Cell),
    calling("SAVED-01", "saved_tensors_hooks", lambda hooks, pack, unpack: contextlib.nullcontext(), "packed"),
    calling("RECOMPUTE-01", "recompute", _as_it_is, "runs of the function"),
    calling("RECOMPUTE-02", "recompute", lambda recompute, block, *args, **kwargs: block(*args), "block"),
)

FAULTS = (*FUNCTIONS, *CELLS, *GRADIENTS, *HOOKS)
