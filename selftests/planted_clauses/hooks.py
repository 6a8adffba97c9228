"""Faults of hooks on nodes and tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

import torch
from torch.autograd import graph
from torch.autograd.function import BackwardCFunction

from autograd_conformance.selftests.planted_clauses.definitions import Fix
from autograd_conformance.selftests.planted_clauses.intercept import (
    around_apply,
    around_backward,
    ctx_method,
    replaced,
)
from autograd_conformance.selftests.planting import Fault

Change = Callable[[Any, Any], Any]


def _at_the_end(act: Callable[[], Any]) -> None:
    torch.autograd.Variable._execution_engine.queue_callback(act)


def _pre_hooks(change: Callable[[Any, Any, Any], Any]) -> AbstractContextManager[Any]:
    """A pre-hook that is called with cotangents returns ``change(ctx, hook, cotangents)``."""
    return ctx_method(
        "register_prehook", lambda original, ctx, hook: original(ctx, lambda given: change(ctx, hook, given))
    )


def _post_hooks(change: Callable[[Any, Any, Any, Any], Any]) -> AbstractContextManager[Any]:
    """A post-hook that is called returns ``change(ctx, hook, gradients, cotangents)``."""
    return ctx_method(
        "register_hook",
        lambda original, ctx, hook: original(ctx, lambda gradients, given: change(ctx, hook, gradients, given)),
    )


def _on_tensors(name: str, change: Callable[..., Any]) -> AbstractContextManager[Any]:
    """``tensor.name(hook)`` is ``change(original, tensor, hook)``."""
    return replaced(torch.Tensor, name, lambda original: lambda tensor, *hook: change(original, tensor, *hook))


@contextmanager
def _returned(change: Change) -> Iterator[None]:
    """What hooks on nodes return is ``change(values, returned)``."""

    def changed(given: Any, returned: Any) -> Any:
        return None if returned is None else change(given, returned)

    with (
        _pre_hooks(lambda _, hook, given: changed(given, hook(given))),
        _post_hooks(lambda _, hook, gradients, given: changed(gradients, hook(gradients, given))),
    ):
        yield


def _cast(given: Sequence[Any], returned: Sequence[Any]) -> Any:
    pairs = zip(given, returned, strict=False)
    cast = [r if g is None or r is None else r.to(g.dtype) for g, r in pairs]
    return (*cast, *returned[len(given) :])


def _never_removes(original: Any, of: Any, hook: Any, **options: Any) -> Any:
    handle = original(of, hook, **options)
    handle.remove = lambda: None
    return handle


def _one_on_each_leaf() -> AbstractContextManager[Any]:
    known: dict[int, Any] = {}

    def register(original: Any, tensor: Any, hook: Any) -> Any:
        if id(tensor) in known:
            known[id(tensor)].remove()
        known[id(tensor)] = original(tensor, hook)
        return known[id(tensor)]

    return _on_tensors("register_post_accumulate_grad_hook", register)


def _detached(values: Any) -> Any:
    return None if values is None else tuple(None if v is None else v.detach() for v in values)


def _detaches(original: Any, tensor: Any, hook: Any) -> Any:
    return original(tensor, lambda g: (_detached((hook(g),)) or (None,))[0])


def _materialized(_: Any, hook: Any, gradients: Any, given: Any) -> Any:
    some = next(g for g in given if g is not None)
    return hook(gradients, tuple(torch.zeros_like(some) if g is None else g for g in given))


def _padded(ctx: Any, hook: Any, gradients: Any, given: Any) -> Any:
    returned = hook((*gradients, *[None] * (len(ctx.needs_input_grad) - len(gradients))), given)
    return None if returned is None else returned[: len(gradients)]


def _without_none(_: Any, hook: Any, gradients: Any, given: Any) -> Any:
    returned = hook(tuple(g for g in gradients if g is not None), given)
    found = iter(returned or ())
    return None if returned is None else tuple(None if g is None else next(found) for g in gradients)


def _late(original: Any, tensor: Any, hook: Any) -> Any:
    earlier: list[Any] = [None]

    def delayed(g: Any) -> Any:
        earlier.append(hook(g))
        return earlier[-2]

    return original(tensor, delayed)


def _unasked(original: Any, tensor: Any, hook: Any) -> Any:
    return original(tensor, hook) if tensor.requires_grad else None


def _pre_hooks_afterwards(_: Any, ctx: Any, hook: Any) -> Any:
    return ctx.register_hook(lambda _, given: hook(given) and None)


def _at_the_end_of_the_pass(original: Any, tensor: Any, hook: Any) -> Any:
    return original(tensor, lambda leaf: _at_the_end(lambda: hook(leaf)))


def _keeps(tensor: Any, g: Any) -> None:
    tensor.grad = g


def _keeps_early(_: Any, tensor: Any) -> None:
    tensor.register_hook(lambda g: _keeps(tensor, g))


def _keeps_late(_: Any, tensor: Any) -> None:
    tensor.register_hook(lambda _: None)
    seen = torch.Tensor.register_hook
    seen(tensor, lambda g: _at_the_end(lambda: _keeps(tensor, g)))


def _as_pre_hook(original: Any, tensor: Any, hook: Any) -> Any:
    node, position = tensor.grad_fn, tensor.output_nr
    if not isinstance(node, BackwardCFunction):
        return original(tensor, hook)

    def at_node(given: Any) -> Any:
        returned = hook(given[position])
        return None if returned is None else (*given[:position], returned, *given[position + 1 :])

    return node.register_prehook(at_node)


def _runs_the_nodes_asked_for(original: Any) -> Any:
    def grad(outputs: Any, inputs: Any, *args: Any, **options: Any) -> Any:
        nodes = [x.grad_fn for x in inputs if isinstance(x.grad_fn, BackwardCFunction)]
        leaves = [node.variable for made in nodes for node, _ in made.next_functions if node is not None]
        return original(outputs, [*inputs, *leaves], *args, **options)[: len(inputs)]

    return grad


def _before_it_is_set(original: Any, tensor: Any, hook: Any) -> Any:
    original(tensor, lambda _: None)
    return tensor.register_hook(lambda _: hook(tensor) and None)


def _on_anything(original: Any, tensor: Any, hook: Any) -> Any:
    return original(tensor, hook) if tensor.is_leaf else None


def _at_every_gradient(original: Any) -> Any:
    def register(tensors: Any, fn: Any, *, mode: str = "all") -> Any:
        return [t.register_hook(fn) for t in tensors] if mode == "any" else original(tensors, fn, mode=mode)

    return register


def _waits_for_all(original: Any) -> Any:
    def register(tensors: Any, fn: Any, *, mode: str = "all") -> Any:
        def unless_incomplete(gradients: Any) -> None:
            if all(g is not None for g in gradients):
                fn(gradients)

        return original(tensors, unless_incomplete if mode == "all" else fn, mode=mode)

    return register


def _never_again(original: Any) -> Any:
    def register(tensors: Any, fn: Any, *, mode: str = "all") -> Any:
        calls: list[Any] = []
        return original(tensors, lambda g: calls or calls.append(g) or fn(g), mode=mode)

    return register


@contextmanager
def _from_the_next_pass_on() -> Iterator[None]:
    running = []

    def backward(original: Any, ctx: Any, *cotangents: Any) -> Any:
        running.append(ctx)
        try:
            return original(ctx, *cotangents)
        finally:
            running.pop()

    def register(original: Any, ctx: Any, hook: Any) -> Any:
        return _at_the_end(lambda: original(ctx, hook)) if running else original(ctx, hook)

    with around_backward(backward), ctx_method("register_hook", register):
        yield


@contextmanager
def _loses_those_of_forward() -> Iterator[None]:
    running = []

    def apply(original: Any, cls: Any, *args: Any) -> Any:
        running.append(cls)
        try:
            return original(cls, *args)
        finally:
            running.pop()

    with around_apply(apply), ctx_method("register_prehook", lambda o, ctx, hook: None if running else o(ctx, hook)):
        yield


# What makes the listed deviations hold.


@contextmanager
def _hides_what_is_retained() -> Iterator[None]:
    kept: list[Any] = []

    def retain(original: Any, tensor: Any) -> None:
        kept.append(tensor)
        original(tensor)

    def hidden(_: Any, hook: Any, given: Any) -> Any:
        found = [tensor.grad for tensor in kept]
        for tensor in kept:
            tensor.grad = None
        returned = hook(given)
        for tensor, g in zip(kept, found, strict=True):
            tensor.grad = g
        return returned

    with _on_tensors("retain_grad", retain), _pre_hooks(hidden):
        yield


def _another_root(original: Any) -> Any:
    def backward(tensors: Any, grads: Any, **options: Any) -> Any:
        root = torch.zeros((), device=tensors[0].device, requires_grad=True) * 1
        return original([*tensors, root], [*grads, torch.zeros_like(root)], **options)

    return backward


def _skips_none(original: Any) -> Any:
    def register(tensors: Any, fn: Any, *, mode: str = "all") -> Any:
        if mode == "all":
            return original(tensors, fn, mode=mode)
        shown: set[int] = set()

        def hook(g: Any) -> None:
            task = torch._C._current_graph_task_id()
            if g is not None and task not in shown:
                shown.add(task)
                fn(g)

        return [tensor.register_hook(hook) for tensor in tensors]

    return register


def _grad_by_backward(_: Any) -> Any:
    def grad(outputs: Any, inputs: Any, grad_outputs: Any, **options: Any) -> Any:
        root = torch.zeros((), device=outputs[0].device, requires_grad=True) * 1
        torch.autograd.backward([*outputs, root], [*grad_outputs, torch.zeros_like(root)], True, inputs=inputs)
        found = tuple(x.grad for x in inputs)
        for x in inputs:
            x.grad = None
        return found

    return grad


FAULTS = (
    Fault(
        "HOOK-01",
        lambda: _pre_hooks(lambda _, hook, given: hook(given) and None),
        neighbours=("HOOK-04", "HOOK-11"),
    ),
    Fault("HOOK-01", lambda: ctx_method("register_prehook", _never_removes), words="removed pre-hooks still run"),
    Fault(
        "HOOK-02",
        lambda: _post_hooks(lambda _, hook, gradients, given: hook(gradients, given) and None),
        neighbours=("HOOK-04", "HOOK-11"),
    ),
    Fault(
        "HOOK-01",
        lambda: _pre_hooks(lambda _, hook, given: hook(_detached(given))),
        says=("second derivative",),
        words="pre-hooks get detached cotangents",
    ),
    Fault("HOOK-02", lambda: _post_hooks(_materialized), words="post-hooks get zeros for unused outputs"),
    Fault("HOOK-02", lambda: ctx_method("register_hook", _never_removes), words="removed post-hooks still run"),
    Fault(
        "HOOK-02",
        lambda: _post_hooks(lambda _, hook, gradients, given: _detached(hook(gradients, given))),
        says=("second derivative",),
        words="what post-hooks return is detached",
    ),
    Fault("HOOK-03", lambda: _post_hooks(_padded), neighbours=("HOOK-04",)),
    Fault(
        "HOOK-03",
        lambda: _post_hooks(_without_none),
        neighbours=("HOOK-02", "HOOK-04", "HOOK-11"),
        words="post-hooks get no entry for tensors that require no grad",
    ),
    Fault("HOOK-04", lambda: _returned(lambda given, values: values[: len(given)])),
    Fault("HOOK-04", lambda: _returned(_cast), words="values of another dtype are cast silently"),
    Fault(
        "HOOK-05",
        lambda: _on_tensors("register_hook", _late),
        neighbours=("HOOK-04", "HOOK-07"),
    ),
    Fault(
        "HOOK-05",
        lambda: _on_tensors("register_hook", _unasked),
        words="hooks on tensors that require no grad are accepted",
    ),
    Fault(
        "HOOK-05",
        lambda: _on_tensors("register_hook", _never_removes),
        neighbours=("HOOK-10",),
        words="removed hooks of tensors still run",
    ),
    Fault(
        "HOOK-05",
        lambda: _on_tensors("register_hook", _detaches),
        says=("second derivative",),
        words="what hooks of tensors return is detached",
    ),
    Fault(
        "HOOK-06",
        lambda: ctx_method("register_prehook", _pre_hooks_afterwards),
        neighbours=("HOOK-01", "HOOK-04", "HOOK-11"),
    ),
    Fault(
        "HOOK-06",
        lambda: _on_tensors("register_post_accumulate_grad_hook", _at_the_end_of_the_pass),
        words="post-accumulate hooks run at the end of the pass",
    ),
    Fault("HOOK-07", lambda: _on_tensors("retain_grad", _keeps_early)),
    Fault(
        "HOOK-07", lambda: _on_tensors("retain_grad", _keeps_late), words="retain_grad keeps the grad after the pass"
    ),
    Fault(
        "HOOK-08",
        lambda: _on_tensors("register_hook", _as_pre_hook),
        neighbours=("HOOK-06", "HOOK-07", "HOOK-10"),
    ),
    Fault(
        "HOOK-08",
        lambda: replaced(torch.autograd, "grad", _runs_the_nodes_asked_for),
        words="the nodes of tensors asked for run",
    ),
    Fault(
        "HOOK-09",
        lambda: _on_tensors("register_post_accumulate_grad_hook", _before_it_is_set),
        neighbours=("HOOK-06",),
    ),
    Fault(
        "HOOK-09",
        lambda: _on_tensors("register_post_accumulate_grad_hook", _on_anything),
        words="post-accumulate hooks on other tensors than leaves are dropped silently",
    ),
    Fault(
        "HOOK-09",
        lambda: _on_tensors("register_post_accumulate_grad_hook", _never_removes),
        words="removed post-accumulate hooks still run",
    ),
    Fault("HOOK-09", _one_on_each_leaf, words="a second post-accumulate hook replaces the first"),
    Fault("HOOK-10", lambda: replaced(graph, "register_multi_grad_hook", _at_every_gradient)),
    Fault(
        "HOOK-10",
        lambda: replaced(graph, "register_multi_grad_hook", _waits_for_all),
        words="a hook in mode all waits for gradients that no pass needs",
    ),
    Fault(
        "HOOK-10",
        lambda: replaced(graph, "register_multi_grad_hook", _never_again),
        words="a hook fires in the first pass only",
    ),
    Fault(
        "HOOK-10",
        lambda: replaced(graph, "register_multi_grad_hook", lambda original: partial(_never_removes, original)),
        words="a removed hook still fires",
    ),
    Fault("HOOK-11", _from_the_next_pass_on),
    Fault("HOOK-11", _loses_those_of_forward, words="pre-hooks registered in forward are lost"),
)

FIXES = (
    Fix("HOOK-06", _hides_what_is_retained, variant="retain_grad"),
    Fix("HOOK-10", lambda: replaced(torch.autograd, "backward", _another_root), variant="roots"),
    Fix("HOOK-10", lambda: replaced(graph, "register_multi_grad_hook", _skips_none), variant="unused"),
    Fix("HOOK-10", lambda: replaced(torch.autograd, "grad", _grad_by_backward), variant="grad"),
)
