"""Faults of the engine, of autograd.grad and of autograd.backward."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from typing import Any

import torch

from autograd_conformance.selftests.planted_clauses.definitions import Fix
from autograd_conformance.selftests.planted_clauses.intercept import (
    around_apply,
    around_backward,
    around_backward_with_graph,
    replaced,
)
from autograd_conformance.selftests.planting import Fault


def around_engine(method: Callable[..., Any]) -> AbstractContextManager[Any]:
    """A pass is ``method(run, outputs, cotangents, inputs, accumulate)``, and ``run`` takes the last but one."""

    def engine(original: Any) -> Any:
        def entered(
            outputs: Any, cotangents: Any, retain: Any, create: Any, inputs: Any, *unused: Any,
            accumulate_grad: bool, **options: Any,
        ) -> Any:  # fmt: skip
            def run(outputs: Any, cotangents: Any, inputs: Any, allow_unused: bool | None = None) -> Any:
                rest = unused if allow_unused is None or not unused else (allow_unused,)
                return original(
                    outputs, cotangents, retain, create, inputs, *rest, accumulate_grad=accumulate_grad, **options
                )

            return method(run, tuple(outputs), tuple(cotangents), tuple(inputs), accumulate_grad)

        return entered

    return replaced(torch.autograd, "_engine_run_backward", engine)


def leaves_of(outputs: Any) -> list[Any]:
    """The leaves of a graph, each once."""
    found: list[Any] = []
    stack, seen = [y.grad_fn for y in outputs], set()
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        found.extend([node.variable] if hasattr(node, "variable") else [])
        stack.extend(edge for edge, _ in node.next_functions)
    return found


def given_to_grad(change: Callable[..., Any]) -> AbstractContextManager[Any]:
    """``autograd.grad(...)`` is ``change(original, outputs, inputs, grad_outputs, **options)``."""

    def wrap(original: Any) -> Any:
        def grad(outputs: Any, inputs: Any, grad_outputs: Any = None, *args: Any, **options: Any) -> Any:
            return change(original, outputs, inputs, grad_outputs, *args, **options)

        return grad

    return replaced(torch.autograd, "grad", wrap)


def _cotangents(change: Callable[[Any, Any], Any]) -> AbstractContextManager[Any]:
    """Each cotangent given to grad or backward is ``change(it, its output)``."""

    def wrap(original: Any) -> Any:
        def make(outputs: Any, grads: Any, **options: Any) -> Any:
            changed = [change(g, y) for g, y in zip(grads, outputs, strict=False)]
            return original(outputs, [*changed, *grads[len(changed) :]], **options)

        return make

    return replaced(torch.autograd, "_make_grads", wrap)


def _zero_cotangents_are_ones(g: Any, y: Any) -> Any:
    return torch.ones_like(y) if g is None and y.numel() == 0 else g


def _broadcast(g: Any, y: Any) -> Any:
    try:
        return g.expand(y.shape)
    except (AttributeError, RuntimeError):
        return g


def _ravelled(g: Any, y: Any) -> Any:
    return g.reshape(y.shape) if isinstance(g, torch.Tensor) and g.numel() == y.numel() == 1 else g


def _real(g: Any, y: Any) -> Any:
    return g.real if isinstance(g, torch.Tensor) and g.is_complex() and not y.is_complex() else g


@contextmanager
def _casts_late() -> Iterator[None]:
    """Backward sees a cotangent of a caller in the dtype in which the caller gave it."""
    given: list[Any] = []

    def engine(run: Any, outputs: Any, cotangents: Any, inputs: Any, _: bool) -> Any:
        given[:] = [g.dtype for g in cotangents if g is not None]
        return run(outputs, cotangents, inputs)

    def backward(original: Any, ctx: Any, *cotangents: Any) -> Any:
        if len(set(given)) == 1 and not given[0].is_floating_point:
            cotangents = tuple(g.to(given[0]) if isinstance(g, torch.Tensor) else g for g in cotangents)
        return original(ctx, *cotangents)

    with around_engine(engine), around_backward(backward):
        yield


def _overwrites(run: Any, outputs: Any, cotangents: Any, inputs: Any, accumulate: bool) -> Any:
    if accumulate and not inputs:
        for leaf in leaves_of(outputs):
            leaf.grad = None
    return run(outputs, cotangents, inputs)


def _replaces_with_graph(original: Any) -> Any:
    def entered(outputs: Any, cotangents: Any, retain: Any, create: Any, *args: Any, **options: Any) -> Any:
        if create and options["accumulate_grad"]:
            for leaf in leaves_of(outputs):
                leaf.grad = None
        return original(outputs, cotangents, retain, create, *args, **options)

    return entered


def _fills_grad(run: Any, outputs: Any, cotangents: Any, inputs: Any, accumulate: bool) -> Any:
    found = run(outputs, cotangents, inputs)
    if not accumulate:
        for x, g in zip(inputs, found, strict=True):
            if x.is_leaf and x.grad is None and g is not None:
                x.grad = g.detach()
    return found


def _fills_grad_in_between(run: Any, outputs: Any, cotangents: Any, inputs: Any, accumulate: bool) -> Any:
    if accumulate and not inputs:
        for y in outputs:
            if not y.is_leaf:
                y.retain_grad()
    return run(outputs, cotangents, inputs)


def _in_halves(original: Any, ctx: Any, *given: Any) -> Any:
    halves = [g / 2 if isinstance(g, torch.Tensor) and g.is_floating_point() else g for g in given]
    if ctx.name().startswith("Step") and any(isinstance(g, torch.Tensor) and g.any() for g in given):
        pairs = zip(original(ctx, *halves), original(ctx, *halves), strict=True)
        return tuple(a if b is None else a + b for a, b in pairs)
    return original(ctx, *given)


def _one_output_after_another(run: Any, outputs: Any, cotangents: Any, inputs: Any, accumulate: bool) -> Any:
    linear = all(y.grad_fn is not None and y.grad_fn.name().startswith("Step") for y in outputs)
    if accumulate or len(outputs) < 2 or len(cotangents) != len(outputs) or not linear:
        return run(outputs, cotangents, inputs)
    each = [run((y,), (g,), inputs, True) for y, g in zip(outputs, cotangents, strict=True)]
    columns = [[g for g in column if g is not None] for column in zip(*each, strict=True)]
    return tuple(sum(column[1:], column[0]) if column else None for column in columns)


def _first_only(run: Any, outputs: Any, cotangents: Any, inputs: Any, accumulate: bool) -> Any:
    many = len(outputs) > 3 and all(y.grad_fn.name().startswith("Polynomial") for y in outputs)
    return run(outputs[:1], cotangents[:1], inputs) if many else run(outputs, cotangents, inputs)


def _repeated_once(run: Any, outputs: Any, cotangents: Any, inputs: Any, accumulate: bool) -> Any:
    if len(outputs) < 4:
        return run(outputs, cotangents, inputs)
    kept = [i for i, y in enumerate(outputs) if not any(y is other for other in outputs[:i])]
    return run(tuple(outputs[i] for i in kept), tuple(cotangents[i] for i in kept), inputs)


def _padded(original: Any) -> Any:
    def make(outputs: Any, grads: Any, **options: Any) -> Any:
        missing = [torch.ones_like(y) for y in outputs[len(grads) :]]
        return original(outputs, [*grads, *missing], **options)

    return make


def _counted(original: Any) -> Any:
    def make(outputs: Any, grads: Any, **options: Any) -> Any:
        if len(grads) > len(outputs):
            raise RuntimeError(f"got {len(outputs)} tensors and {len(grads)} gradients")
        return original(outputs, grads, **options)

    return make


def _paired(original: Any) -> Any:
    def make(outputs: Any, grads: Any, **options: Any) -> Any:
        if 0 < len(grads) < len(outputs):
            grads = [*grads, *([grads[-1]] * (len(outputs) - len(grads)))]
        return original(outputs, grads, **options)

    return make


def _numbered(order: Callable[[int], int]) -> AbstractContextManager[Any]:
    """The custom nodes are numbered as the order says."""
    created = count(1)

    def apply(original: Any, cls: Any, *args: Any, **options: Any) -> Any:
        found = original(cls, *args, **options)
        first = found[0] if isinstance(found, tuple) else found
        if cls.__name__.startswith("Step") and isinstance(first, torch.Tensor) and first.grad_fn is not None:
            getattr(first.grad_fn, "_set_sequence_nr")(order(next(created)))  # noqa: B009 - not in the stubs
        return found

    return around_apply(apply)


@contextmanager
def _refuses(depth: int) -> Iterator[None]:
    inside: list[bool] = []

    def engine(run: Any, *args: Any) -> Any:
        if len(inside) >= depth:
            raise RuntimeError("backward passes are nested too deeply")
        inside.append(True)
        try:
            return run(*args[:-1])
        finally:
            inside.pop()

    with around_engine(engine):
        yield


def _skips_zeros(original: Any, ctx: Any, *given: Any) -> Any:
    floats = [g for g in given if isinstance(g, torch.Tensor) and g.is_floating_point()]
    if floats and all(g.numel() and not g.any() for g in floats) and ctx.name().startswith("Step"):
        return tuple(torch.zeros_like(floats[0]) for _ in ctx.needs_input_grad)
    return original(ctx, *given)


def _skips_zero_outputs(run: Any, outputs: Any, cotangents: Any, inputs: Any, accumulate: bool) -> Any:
    zero = [g is not None and bool(g.numel()) and not g.any() for g in cotangents]
    if not zero or not all(zero) or not all(y.grad_fn is not None for y in outputs):
        return run(outputs, cotangents, inputs)
    return None if accumulate else tuple(torch.zeros_like(x) for x in inputs)


@contextmanager
def _drops_constant_outputs() -> Iterator[None]:
    def starts(outputs: Any, cotangents: Any) -> tuple[list[Any], list[Any]]:
        pairs = [p for p in zip(outputs, cotangents, strict=True) if p[0].requires_grad or p[1] is not None]
        return [y for y, _ in pairs], [g for _, g in pairs]

    def grad(original: Any, outputs: Any, inputs: Any, cotangents: Any, **options: Any) -> Any:
        kept, given = starts(outputs, cotangents)
        return original(kept, inputs, given, **options)

    def wrap(original: Any) -> Any:
        return lambda outputs, cotangents, **options: original(*starts(outputs, cotangents), **options)

    with given_to_grad(grad), replaced(torch.autograd, "backward", wrap):
        yield


FAULTS = (
    Fault(
        "ENG-01",
        lambda: _cotangents(lambda g, y: torch.ones_like(y) if g is None and not y.is_complex() else g),
        says=("a cotangent left out",),
    ),
    Fault("ENG-01", lambda: _cotangents(_zero_cotangents_are_ones), words="empty outputs need no cotangent"),
    Fault(
        "ENG-01",
        lambda: _cotangents(lambda g, y: torch.ones_like(y) if g is None and y.is_complex() else g),
        words="complex scalars need no cotangent",
    ),
    Fault(
        "ENG-01",
        lambda: _cotangents(lambda g, y: torch.full_like(y, 2) if g is None and y.dim() else g),
        words="it is not one where the output has dimensions",
        neighbours=("ENG-05",),
    ),
    Fault("ENG-02", lambda: _cotangents(_broadcast), says=("no error",)),
    Fault("ENG-02", lambda: _cotangents(_ravelled), words="single elements fit any shape"),
    Fault("ENG-02", lambda: _cotangents(_real), words="the real part of a complex cotangent is taken"),
    Fault("ENG-02", _casts_late, words="backward sees integer cotangents"),
    Fault("ENG-03", lambda: around_engine(_overwrites), neighbours=("ENG-05",)),
    Fault("ENG-03", lambda: around_engine(_fills_grad), words="grad fills .grad as well", neighbours=("ENG-11",)),
    Fault("ENG-03", lambda: around_engine(_fills_grad_in_between), words="outputs get a .grad", neighbours=("ENG-11",)),
    Fault(
        "ENG-03",
        lambda: replaced(torch.autograd, "_engine_run_backward", _replaces_with_graph),
        words="backward with create_graph replaces .grad",
    ),
    Fault("ENG-04", lambda: around_backward(_in_halves), neighbours=("ENG-10", "ENG-11", "ENG-13")),
    Fault(
        "ENG-04",
        lambda: around_backward_with_graph(_in_halves),
        neighbours=("ENG-10",),
        words="it runs twice under create_graph",
    ),
    Fault(
        "ENG-04",
        lambda: around_engine(_one_output_after_another),
        words="grad runs the graph once for each output",
        neighbours=("ENG-10", "ENG-11", "ENG-13", "ENG-16"),
    ),
    Fault("ENG-05", lambda: around_engine(_first_only)),
    Fault(
        "ENG-05",
        lambda: around_engine(_repeated_once),
        neighbours=("ENG-04",),
        words="of many outputs one that is given twice counts once",
    ),
    Fault("ENG-06", lambda: replaced(torch.autograd, "_make_grads", _padded), says=("fewer",)),
    Fault(
        "ENG-06",
        lambda: replaced(torch.autograd, "_make_grads", _paired),
        says=("fewer",),
        words="the last cotangent is used for all further outputs",
    ),
    Fault("ENG-13", lambda: _numbered(lambda _: 0)),
    Fault("ENG-13", lambda: _numbered(lambda n: 2**40 - n), words="the first created runs first"),
    Fault("ENG-14", lambda: _refuses(1)),
    Fault("ENG-14", lambda: _refuses(100), words="a hundred levels are too many"),
    Fault("ENG-16", lambda: around_backward(_skips_zeros), says=("steps that ran",), neighbours=("ENG-04",)),
    Fault(
        "ENG-16",
        lambda: around_engine(_skips_zero_outputs),
        neighbours=("ENG-04",),
        words="a pass from zeros runs nothing",
    ),
)

FIXES = (
    Fix("ENG-01", _drops_constant_outputs, variant="constant"),
    Fix("ENG-02", variant="later-message"),
    Fix("ENG-06", lambda: replaced(torch.autograd, "_make_grads", _counted)),
)
