"""Faults of compilers and tracers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import torch
from torch.autograd import Function
from torch.fx.experimental import proxy_tensor

from autograd_conformance.selftests.planted_clauses.definitions import Fix
from autograd_conformance.selftests.planted_clauses.intercept import (
    around_apply,
    around_backward,
    ctx_method,
    replaced,
)
from autograd_conformance.selftests.planting import Fault


def _nothing(*_: Any) -> None:
    pass


def _forward_of(cls: Any, args: Any) -> Any:
    """What forward computes, recorded operation by operation."""
    if cls.setup_context is not Function.setup_context:
        return cls.forward(*args)
    methods = (
        "save_for_backward",
        "save_for_forward",
        "mark_dirty",
        "mark_non_differentiable",
        "set_materialize_grads",
    )
    return cls.forward(SimpleNamespace(**dict.fromkeys(methods, _nothing)), *args)


def composite(original: Any, cls: Any, *args: Any) -> Any:
    return _forward_of(cls, args)


def _composite_if(chosen: Callable[[Any], bool]) -> Callable[..., Any]:
    return lambda original, cls, *args: _forward_of(cls, args) if chosen(cls) else original(cls, *args)


def _detached_if(chosen: Callable[[Any], bool]) -> Callable[..., Any]:
    def apply(original: Any, cls: Any, *args: Any) -> Any:
        outputs = original(cls, *args)
        if not chosen(cls):
            return outputs
        return tuple(y.detach() for y in outputs) if isinstance(outputs, tuple) else outputs.detach()

    return apply


def _repeated_once(original: Any, cls: Any, *args: Any) -> Any:
    return original(cls, *(x.detach() if any(x is y for y in args[:i]) else x for i, x in enumerate(args)))


@contextmanager
def compiled_as(under: Callable[[], AbstractContextManager[Any]] = nullcontext, **how: Any) -> Iterator[None]:
    """torch.compile runs the function as it is, within ``under()``: a compiler with these mistakes only.

    ``times`` is the number of graphs that it takes for it, ``full_only`` restricts ``under`` to full graphs, and
    ``on_copies`` gives the function copies of its arguments.
    """

    def compile(function: Any, backend: Any = None, fullgraph: bool = False, **_: Any) -> Any:
        def run(*args: Any) -> Any:
            given = [x.clone() for x in args] if how.get("on_copies") else args
            with under() if fullgraph or not how.get("full_only") else nullcontext():
                return function(*given)

        def running(*args: Any) -> Any:
            graphs = [backend(run, args) if callable(backend) else run for _ in range(how.get("times", 1))]
            return [graph(*args) for graph in graphs][-1]

        return running

    with (
        replaced(torch, "compile", lambda _: compile),
        replaced(torch._dynamo, "lookup_backend", lambda _: lambda name: lambda graph, inputs: graph),
    ):
        yield


def compiled_apply(method: Callable[..., Any], **how: Any) -> AbstractContextManager[Any]:
    """Compiled code calls a Function as ``method(original, cls, *args)``."""
    return compiled_as(lambda: around_apply(method), **how)


@contextmanager
def _backward_gives(change: Callable[[Any], Any]) -> Iterator[None]:
    """Every gradient that a Function's backward returns is ``change(what it was)``."""

    def backward(original: Any, ctx: Any, *cotangents: Any) -> Any:
        return tuple(None if g is None else change(g) for g in original(ctx, *cotangents))

    with compiled_as(), around_backward(backward):
        yield


def _constants(original: Any) -> Any:
    def make_fx(function: Any, **options: Any) -> Any:
        def trace(*args: Any) -> Any:
            outputs = tuple(y.detach() for y in function(*args))
            return original(lambda *_: outputs, **options)(*args)

        return trace

    return make_fx


def _opaque(function: Any) -> Any:
    """A graph with one node, the call of the function."""
    graph = torch.fx.Graph()
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    graph.output(graph.call_function(function, tuple(graph.placeholder(name) for name in names)))
    return torch.fx.GraphModule(torch.nn.Module(), graph)


def _composite_script(original: Any) -> Any:
    def trace(function: Any, inputs: Any) -> Any:
        def run(*args: Any) -> Any:
            with around_apply(composite):
                return function(*args)

        return run

    return trace


def _has_jvp(cls: Any) -> bool:
    return cls.jvp is not Function.jvp


def _has_vjp(cls: Any) -> bool:
    return cls.vjp is not Function.vjp


def _is_boxed(cls: Any) -> bool:
    return bool(getattr(cls, "boxed_grads_call", False))


def _unmarked() -> AbstractContextManager[Any]:
    return ctx_method("mark_non_differentiable", _nothing)


def _not_strict(original: Any) -> Any:
    return lambda module, args, strict: original(module, args, strict=False)


FAULTS = (
    Fault("COMPILE-01", lambda: compiled_apply(composite), says=("gradients",)),
    Fault("COMPILE-01", lambda: compiled_as(times=2), says=("number of graphs",), words="two graphs for one Function"),
    Fault("COMPILE-02", lambda: compiled_as(_unmarked), says=("requires_grad",)),
    Fault(
        "COMPILE-02",
        lambda: compiled_as(on_copies=True),
        says=("after the call",),
        words="compiled code changes copies of its arguments",
    ),
    Fault("COMPILE-03", lambda: compiled_apply(_repeated_once), says=("passed twice",)),
    Fault("COMPILE-04", lambda: compiled_apply(_detached_if(_has_jvp))),
    Fault(
        "COMPILE-04",
        lambda: compiled_apply(_composite_if(_has_jvp), full_only=True),
        says=("gradients",),
        words="a full graph differentiates the operations of a Function that defines jvp",
    ),
    Fault("COMPILE-05", lambda: compiled_apply(_composite_if(_has_vjp)), says=("gradients",)),
    Fault("COMPILE-06", lambda: compiled_apply(_detached_if(_is_boxed))),
    Fault("COMPILE-07", lambda: _backward_gives(torch.Tensor.detach), says=("second derivatives",)),
    Fault("COMPILE-08", lambda: _backward_gives(lambda g: g + (g - g.detach())), says=("second derivatives",)),
    Fault("COMPILE-09", lambda: replaced(proxy_tensor, "make_fx", _constants), says=("outputs",)),
    Fault(
        "COMPILE-09",
        lambda: replaced(torch.fx, "symbolic_trace", lambda _: _opaque),
        words="symbolic_trace does not look into a Function",
    ),
    Fault("COMPILE-10", lambda: replaced(torch.jit, "trace", _composite_script), says=("gradients",)),
)

FIXES = (
    Fix("COMPILE-01", compiled_as, variant="parent"),
    Fix("COMPILE-02", compiled_as, variant="argument"),
    Fix("COMPILE-04", compiled_as, variant="forward"),
    Fix("COMPILE-06", compiled_as, variant="one"),
    Fix("COMPILE-08", compiled_as),
    Fix("COMPILE-09", lambda: replaced(torch.export, "export", _not_strict), variant="strict"),
)
