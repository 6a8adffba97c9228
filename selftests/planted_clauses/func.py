"""Faults of custom Functions under torch.func."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from torch._C._functorch import TransformType, is_functorch_wrapped_tensor
from torch._functorch import autograd_function as rules
from torch._functorch.pyfunctorch import retrieve_current_functorch_interpreter
from torch.autograd import Function, functional

from autograd_conformance.selftests.planted_clauses.definitions import Fix
from autograd_conformance.selftests.planted_clauses.intercept import (
    around_apply,
    ctx_attribute,
    ctx_method,
    replaced,
)
from autograd_conformance.selftests.planting import Fault


def _tuple(values: Any) -> tuple[Any, ...]:
    return values if isinstance(values, tuple) else (values,)


def transforming(*kinds: Any) -> bool:
    """Whether the innermost transform is one of these, by default any."""
    if not torch._C._are_functorch_transforms_active():
        return False
    return not kinds or retrieve_current_functorch_interpreter().key() in kinds


def _separate(cls: Any) -> bool:
    return cls.setup_context is not Function.setup_context


def in_each_level(change: Callable[[Any], dict[str, Any]]) -> AbstractContextManager[Any]:
    """Below func.grad, func.vjp and func.jvp a Function has the methods ``change(cls)`` instead of its own."""

    def generate(original: Any) -> Any:
        def generated(interpreter: Any, cls: Any) -> Any:
            if not hasattr(cls, "changed"):
                methods = {name: staticmethod(method) for name, method in change(cls).items()}
                cls = type(cls)(cls.__name__, (cls,), {**methods, "changed": True})
            return original(interpreter, cls)

        return generated

    return replaced(rules, "generate_single_level_function", generate)


def _changed_backward(method: Callable[..., Any]) -> AbstractContextManager[Any]:
    """Below a transform backward is ``method(original, ctx, *cotangents)``."""
    return in_each_level(lambda cls: {"backward": functools.partial(method, cls.backward)})


class Forgetful:
    """A ctx that takes anything and keeps attributes alone."""

    def _take(self, *_: Any) -> None:
        pass

    save_for_backward = save_for_forward = mark_dirty = mark_non_differentiable = set_materialize_grads = _take


def as_operations(when: Callable[..., bool]) -> AbstractContextManager[Any]:
    """Where ``when(cls, args)``, a call is its forward's operations."""

    def apply(original: Any, cls: Any, *args: Any, **options: Any) -> Any:
        if not when(cls, args):
            return original(cls, *args, **options)
        return cls.forward(*(() if _separate(cls) else (Forgetful(),)), *args, **options)

    return around_apply(apply)


def _combined_everywhere(cls: Any, _: Any) -> bool:
    return transforming() and not _separate(cls)


def _combined_but_under_vmap(cls: Any, _: Any) -> bool:
    return transforming(TransformType.Grad, TransformType.Jvp) and not _separate(cls)


def _combined_on_constants(cls: Any, args: Any) -> bool:
    plain = not any(isinstance(a, torch.Tensor) and is_functorch_wrapped_tensor(a) for a in args)
    return _combined_everywhere(cls, args) and plain


def _detaches(original: Any, ctx: Any, *cotangents: Any) -> Any:
    return tuple(None if g is None else g.detach() for g in _tuple(original(ctx, *cotangents)))


def _zero_tangents(cls: Any) -> dict[str, Any]:
    if cls.jvp is not Function.jvp:
        return {}

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        cls.setup_context(ctx, inputs, output)
        ctx.likes = [y if isinstance(y, torch.Tensor) and y.is_floating_point() else None for y in _tuple(output)]
        ctx.marked = [y is not None and any(y is m for m in ctx.non_differentiable or ()) for y in ctx.likes]

    def jvp(ctx: Any, *_: Any) -> Any:
        pairs = zip(ctx.likes, ctx.marked, strict=True)
        return tuple(None if y is None or marked else torch.zeros_like(y) for y, marked in pairs)

    return {"setup_context": setup_context, "jvp": jvp}


def _twice_backwards(_: Any) -> Any:
    def jvp(f: Any, primals: Any, tangents: Any) -> Any:
        outputs, pullback = torch.func.vjp(f, *primals)
        alike = torch.utils._pytree.tree_map(torch.zeros_like, outputs)
        return outputs, torch.func.vjp(pullback, alike)[1](tuple(tangents))[0]

    return jvp


def has_rule(cls: Any) -> bool:
    return cls.generate_vmap_rule or cls.vmap is not Function.vmap


@contextmanager
def _jacrev_asks_for_a_rule() -> Iterator[None]:
    within = []

    def change(original: Any) -> Any:
        def jacrev(*args: Any, **options: Any) -> Any:
            function = original(*args, **options)

            def jacobians(*xs: Any) -> Any:
                within.append(True)
                try:
                    return function(*xs)
                finally:
                    within.pop()

            return jacobians

        return jacrev

    def apply(original: Any, cls: Any, *args: Any, **options: Any) -> Any:
        if within and not has_rule(cls):
            raise RuntimeError(f"{cls.__name__} has no vmap support")
        return original(cls, *args, **options)

    with replaced(torch.func, "jacrev", change), around_apply(apply):
        yield


def generates_rules(original: Any, cls: Any, *args: Any, **options: Any) -> Any:
    if transforming() and not has_rule(cls):
        cls = type(cls)(cls.__name__, (cls,), {"generate_vmap_rule": True})
    return original(cls, *args, **options)


@contextmanager
def _leaves_none() -> Iterator[None]:
    """None comes out of func.grad where backward returned it."""
    missing = []

    def backward(original: Any, ctx: Any, *cotangents: Any) -> Any:
        found = _tuple(original(ctx, *cotangents))
        missing.append(any(g is None and need for g, need in zip(found, ctx.needs_input_grad, strict=True)))
        return found

    def grad(original: Any) -> Any:
        def gradients(*args: Any, **options: Any) -> Any:
            function = original(*args, **options)

            def found(*xs: Any) -> Any:
                missing.clear()
                zeros = function(*xs)
                return tuple(None if not g.any() else g for g in zeros) if any(missing) else zeros

            return found

        return gradients

    with _changed_backward(backward), replaced(torch.func, "grad", grad):
        yield


def _refuses_expanded(cls: Any) -> dict[str, Any]:
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        cls.setup_context(ctx, inputs, output)
        ctx.shapes = [x.shape if isinstance(x, torch.Tensor) else None for x in inputs]

    def backward(ctx: Any, *cotangents: Any) -> Any:
        found = cls.backward(ctx, *cotangents)
        if any(g is not None and g.shape != shape for g, shape in zip(_tuple(found), ctx.shapes, strict=True)):
            raise RuntimeError("a gradient has another shape than its input")
        return found

    return {"setup_context": setup_context, "backward": backward}


def _detached(value: Any) -> Any:
    return torch.utils._pytree.tree_map_only(torch.Tensor, torch.Tensor.detach, value)


def _untracked(cls: Any) -> dict[str, Any]:
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        cls.setup_context(ctx, inputs, output)
        vars(ctx).update({name: _detached(value) for name, value in vars(ctx).items() if name == "kept"})

    return {"setup_context": setup_context}


@contextmanager
def _doubles_dirty_outputs() -> Iterator[None]:
    def mark(original: Any, ctx: Any, *tensors: Any) -> None:
        ctx.is_dirty = True
        original(ctx, *tensors)

    def backward(original: Any, ctx: Any, *cotangents: Any) -> Any:
        return original(ctx, *((2 * g for g in cotangents) if getattr(ctx, "is_dirty", False) else cotangents))

    with ctx_method("mark_dirty", mark), _changed_backward(backward):
        yield


def _wraps_anew(original: Any) -> Any:
    def wrapped(outputs: Any, _: Any, inputs: Any, *args: Any, **options: Any) -> Any:
        return original(outputs, (), (), *args, **options)

    return wrapped


def _vjp_for_backward(change: Callable[[Any], Any]) -> AbstractContextManager[Any]:
    def methods(cls: Any) -> dict[str, Any]:
        if cls.vjp is Function.vjp:
            return {}
        return {"backward": lambda ctx, *given: tuple(map(change, _tuple(cls.vjp(ctx, *given))))}

    return in_each_level(methods)


def _drops_keywords(original: Any, cls: Any, *args: Any, **options: Any) -> Any:
    kept = {name: value for name, value in options.items() if name == "x" or not transforming()}
    return original(cls, *args, **kept)


def _drops_keyword_only(original: Any, cls: Any, *args: Any, **options: Any) -> Any:
    parameters = inspect.signature(cls.forward).parameters.values()
    if transforming() and any(p.kind is p.KEYWORD_ONLY for p in parameters):
        mine = cls.forward
        return original(type(cls)(cls.__name__, (cls,), {"forward": staticmethod(lambda *given: mine(*given))}), *args)
    return original(cls, *args, **options)


def _refuses_keywords_under_vmap(original: Any) -> Any:
    def call(cls: Any, *args: Any, **options: Any) -> Any:
        if options:
            raise TypeError(f"{cls.__name__} got an unexpected keyword argument {next(iter(options))!r}")
        return original(cls, *args)

    return call


def _zeros_from(name: str) -> AbstractContextManager[Any]:
    def change(original: Any) -> Any:
        def found(*args: Any, **options: Any) -> Any:
            outputs, values = original(*args, **options)
            return outputs, torch.utils._pytree.tree_map(torch.zeros_like, values)

        return found

    return replaced(functional, name, change)


def _negates_vectorized(original: Any) -> Any:
    def jacobian(*args: Any, vectorize: bool = False, **options: Any) -> Any:
        found = original(*args, vectorize=vectorize, **options)
        return torch.utils._pytree.tree_map(torch.neg, found) if vectorize else found

    return jacobian


def _set_up_twice(cls: Any) -> dict[str, Any]:
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        cls.setup_context(ctx, inputs, output)
        if transforming():
            cls.setup_context(ctx, inputs, output)

    return {"setup_context": setup_context}


def _pulls_once(original: Any) -> Any:
    def vjp(*args: Any, **options: Any) -> Any:
        outputs, pullback = original(*args, **options)
        calls: list[Any] = []

        def pull(*cotangents: Any) -> Any:
            calls.append(cotangents)
            return pullback(*calls[0])

        return outputs, pull

    return vjp


def _zero_outputs(original: Any) -> Any:
    def found(*args: Any, **options: Any) -> Any:
        outputs, values = original(*args, **options)
        return torch.utils._pytree.tree_map(torch.zeros_like, outputs), values

    return found


def _detached_pullback(original: Any) -> Any:
    def vjp(*args: Any, **options: Any) -> Any:
        outputs, pullback = original(*args, **options)
        return outputs, lambda *cotangents: _detached(pullback(*cotangents))

    return vjp


FAULTS = (
    Fault("FUNC-01", lambda: as_operations(_combined_everywhere)),
    Fault("FUNC-01", lambda: as_operations(_combined_but_under_vmap), words="vmap alone refuses"),
    Fault("FUNC-01", lambda: as_operations(_combined_on_constants), words="accepted on constants"),
    Fault(
        "FUNC-02",
        lambda: as_operations(lambda cls, _: transforming(TransformType.Grad) and _separate(cls)),
        neighbours=("FUNC-04", "FUNC-05", "FUNC-06", "FUNC-10", "FUNC-12", "FUNC-15"),
    ),
    Fault(
        "FUNC-02",
        lambda: _changed_backward(_detaches),
        neighbours=("FUNC-04",),
        words="backward is not differentiated again",
    ),
    Fault("FUNC-02", lambda: replaced(torch.func, "vjp", _pulls_once), words="a pullback gives its first result again"),
    Fault("FUNC-02", lambda: replaced(torch.func, "vjp", _zero_outputs), words="the outputs of vjp are zero"),
    Fault("FUNC-02", lambda: replaced(torch.func, "vjp", _detached_pullback), words="pullbacks are not differentiated"),
    Fault("FUNC-03", lambda: in_each_level(_zero_tangents)),
    Fault("FUNC-03", lambda: replaced(torch.func, "jvp", _zero_outputs), words="the outputs of jvp are zero"),
    Fault(
        "FUNC-03",
        lambda: replaced(torch.func, "jvp", _twice_backwards),
        neighbours=("FUNC-12",),
        words="backward twice instead of jvp",
    ),
    Fault("FUNC-04", _jacrev_asks_for_a_rule, neighbours=("FUNC-06",)),
    Fault("FUNC-04", lambda: around_apply(generates_rules), words="rules are generated without a request"),
    Fault("FUNC-05", _leaves_none),
    Fault("FUNC-05", lambda: in_each_level(_refuses_expanded), words="an expanded gradient is refused"),
    Fault("FUNC-05", lambda: ctx_method("set_materialize_grads", lambda *_: None), words="zeros instead of None"),
    Fault("FUNC-06", lambda: as_operations(lambda cls, _: transforming() and cls.__name__ == "Capturing")),
    Fault("FUNC-08", _doubles_dirty_outputs),
    Fault(
        "FUNC-08",
        lambda: replaced(rules, "wrap_outputs_maintaining_identity", _wraps_anew),
        words="the changed tensor is wrapped again",
    ),
    Fault("FUNC-09", lambda: _vjp_for_backward(torch.zeros_like), says=("gradients, position",)),
    Fault("FUNC-10", lambda: around_apply(_drops_keywords)),
    Fault("FUNC-10", lambda: around_apply(_drops_keyword_only), words="keyword-only arguments are dropped"),
    Fault("FUNC-11", lambda: _zeros_from("jvp")),
    Fault(
        "FUNC-11", lambda: replaced(functional, "jacobian", _negates_vectorized), words="vectorized ones are negated"
    ),
    Fault("FUNC-11", lambda: replaced(functional, "vjp", _zero_outputs), words="the outputs of vjp are zero"),
    Fault("FUNC-11", lambda: replaced(functional, "jvp", _zero_outputs), words="the outputs of jvp are zero"),
    Fault("FUNC-12", lambda: in_each_level(_set_up_twice)),
    Fault(
        "FUNC-12",
        lambda: ctx_attribute("needs_input_grad", lambda _, flags: (any(flags),) * len(flags)),
        words="every argument needs a gradient if one does",
    ),
)

FIXES = (
    Fix("FUNC-07", lambda: in_each_level(_untracked)),
    Fix("FUNC-09", lambda: _vjp_for_backward(lambda g: g)),
    Fix(
        "FUNC-10",
        lambda: replaced(torch.autograd.function, "custom_function_call", _refuses_keywords_under_vmap),
        variant="vmap",
    ),
)
