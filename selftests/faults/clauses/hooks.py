"""Faults of hooks on nodes and tensors."""

from __future__ import annotations

import torch
from torch.autograd import graph
from torch.autograd.function import BackwardCFunction

from autograd_conformance.selftests.faults import plants
from autograd_conformance.selftests.faults.clauses.definitions import Fix
from autograd_conformance.selftests.faults.clauses.editing import edit
from autograd_conformance.selftests.faults.planting import fault


def _at_the_end(act):
    torch.autograd.Variable._execution_engine.queue_callback(act)


def _pre_hooks(change):
    """A pre-hook that is called with cotangents returns ``change(hook, cotangents)``."""
    return plants.ctx_method(
        "register_prehook", lambda original, ctx, hook: original(ctx, lambda given: change(hook, given))
    )


def _post_hooks(change):
    """A post-hook that is called returns ``change(ctx, hook, gradients, cotangents)``."""
    return plants.ctx_method(
        "register_hook",
        lambda original, ctx, hook: original(ctx, lambda gradients, given: change(ctx, hook, gradients, given)),
    )


def _of_tensors(name, method):
    """``tensor.name(hook)`` is ``method(original, tensor, hook)``."""
    return plants.wrapped(torch.Tensor, name, method)


def _hooks_of_tensors(change):
    """A hook of a tensor that is called with its gradient returns ``change(hook, gradient)``."""
    return _of_tensors("register_hook", lambda original, x, hook: original(x, lambda g: change(hook, g)))


def _after_accumulation(method):
    return _of_tensors("register_post_accumulate_grad_hook", method)


def _returned(change):
    """What hooks on nodes return is ``change(values, returned)``."""

    def changed(given, returned):
        return None if returned is None else change(given, returned)

    return lambda: plants.all_of(
        _pre_hooks(lambda hook, given: changed(given, hook(given))),
        _post_hooks(lambda _, hook, gradients, given: changed(gradients, hook(gradients, given))),
    )


def _cast(given, returned):
    pairs = zip(given, returned, strict=False)
    cast = [r if g is None or r is None else r.to(g.dtype) for g, r in pairs]
    return (*cast, *returned[len(given) :])


def _never_removes(original, of, hook, **options):
    handle = original(of, hook, **options)
    handle.remove = lambda: None
    return handle


def _one_on_each_leaf():
    known = {}

    def register(original, tensor, hook):
        if id(tensor) in known:
            known[id(tensor)].remove()
        known[id(tensor)] = original(tensor, hook)
        return known[id(tensor)]

    return _after_accumulation(register)()


def _materialized(_, hook, gradients, given):
    some = next(g for g in given if g is not None)
    return hook(gradients, tuple(torch.zeros_like(some) if g is None else g for g in given))


def _padded(ctx, hook, gradients, given):
    returned = hook((*gradients, *[None] * (len(ctx.needs_input_grad) - len(gradients))), given)
    return None if returned is None else returned[: len(gradients)]


def _without_none(_, hook, gradients, given):
    returned = hook(tuple(g for g in gradients if g is not None), given)
    found = iter(returned or ())
    return None if returned is None else tuple(None if g is None else next(found) for g in gradients)


def _late(original, tensor, hook):
    earlier = [None]

    def delayed(g):
        earlier.append(hook(g))
        return earlier[-2]

    return original(tensor, delayed)


def _keeps(tensor, g):
    tensor.grad = g


def _keeps_late(_, tensor):
    tensor.register_hook(lambda _: None)
    tensor.register_hook(lambda g: _at_the_end(lambda: _keeps(tensor, g)))


def _as_pre_hook(original, tensor, hook):
    node, position = tensor.grad_fn, tensor.output_nr
    if not isinstance(node, BackwardCFunction):
        return original(tensor, hook)

    def at_node(given):
        returned = hook(given[position])
        return None if returned is None else (*given[:position], returned, *given[position + 1 :])

    return node.register_prehook(at_node)


def _runs_the_nodes_asked_for(original, outputs, inputs, *args, **options):
    nodes = [x.grad_fn for x in inputs if isinstance(x.grad_fn, BackwardCFunction)]
    leaves = [node.variable for made in nodes for node, _ in made.next_functions if node is not None]
    return original(outputs, [*inputs, *leaves], *args, **options)[: len(inputs)]


def _before_it_is_set(original, tensor, hook):
    original(tensor, lambda _: None)
    return tensor.register_hook(lambda _: hook(tensor) and None)


def _from_the_next_pass_on():
    running, noted = plants.noting(plants.around_backward)

    def register(original, ctx, hook):
        return _at_the_end(lambda: original(ctx, hook)) if running else original(ctx, hook)

    return plants.all_of(noted, plants.ctx_method("register_hook", register))


def _loses_those_of_forward():
    running, noted = plants.noting(plants.around_apply)
    lost = plants.where(lambda *_: running, lambda *_: None)
    return plants.all_of(noted, plants.ctx_method("register_prehook", lost))


# --- what makes the listed deviations hold ---------------------------------------------------------------------------


def _hides_what_is_retained():
    kept = []

    def retain(original, tensor):
        kept.append(tensor)
        original(tensor)

    def hidden(hook, given):
        found = [tensor.grad for tensor in kept]
        for tensor in kept:
            tensor.grad = None
        returned = hook(given)
        for tensor, g in zip(kept, found, strict=True):
            tensor.grad = g
        return returned

    return plants.all_of(_of_tensors("retain_grad", retain), _pre_hooks(hidden))


def _with_another_root(original, tensors, grads, *args, **options):
    root = torch.zeros((), device=tensors[0].device, requires_grad=True) * 1
    return original([*tensors, root], [*grads, torch.zeros_like(root)], *args, **options)


_FIRES, _IF_DEFINED = "with lock:\n                prev,", "if grad is None:\n                return\n            "


def _grad_by_backward(_, outputs, inputs, cotangents, **__):
    _with_another_root(torch.autograd.backward, outputs, cotangents, True, inputs=inputs)
    found = tuple(x.grad for x in inputs)
    for x in inputs:
        x.grad = None
    return found


FAULTS = (
    fault("HOOK-01", _pre_hooks(lambda hook, given: hook(given) and None), neighbours=("HOOK-04", "HOOK-11")),
    fault("HOOK-01: removed pre-hooks still run", plants.ctx_method("register_prehook", _never_removes)),
    fault(
        "HOOK-02",
        _post_hooks(lambda _, hook, gradients, given: hook(gradients, given) and None),
        neighbours=("HOOK-04", "HOOK-11"),
    ),
    fault(
        "HOOK-01: pre-hooks get detached cotangents",
        _pre_hooks(lambda hook, given: hook(plants.detached(given))),
        "second derivative",
    ),
    fault("HOOK-02: post-hooks get zeros for unused outputs", _post_hooks(_materialized)),
    fault("HOOK-02: removed post-hooks still run", plants.ctx_method("register_hook", _never_removes)),
    fault(
        "HOOK-02: what post-hooks return is detached",
        _post_hooks(lambda _, hook, gradients, given: plants.detached(hook(gradients, given))),
        "second derivative",
    ),
    fault("HOOK-03", _post_hooks(_padded), neighbours=("HOOK-04",)),
    fault(
        "HOOK-03: post-hooks get no entry for tensors that require no grad",
        _post_hooks(_without_none),
        neighbours=("HOOK-02", "HOOK-04", "HOOK-11"),
    ),
    fault("HOOK-04", _returned(lambda given, values: values[: len(given)])),
    fault("HOOK-04: values of another dtype are cast silently", _returned(_cast)),
    fault("HOOK-05", _of_tensors("register_hook", _late), neighbours=("HOOK-04", "HOOK-07")),
    fault(
        "HOOK-05: hooks on tensors that require no grad are accepted",
        _of_tensors("register_hook", plants.where(lambda x, _: not x.requires_grad, lambda *_: None)),
    ),
    fault(
        "HOOK-05: removed hooks of tensors still run",
        _of_tensors("register_hook", _never_removes),
        neighbours=("HOOK-10",),
    ),
    fault(
        "HOOK-05: what hooks of tensors return is detached",
        _hooks_of_tensors(lambda hook, g: plants.detached(hook(g))),
        "second derivative",
    ),
    fault(
        "HOOK-06",
        plants.ctx_method(
            "register_prehook", lambda _, ctx, hook: ctx.register_hook(lambda _, given: hook(given) and None)
        ),
        neighbours=("HOOK-01", "HOOK-04", "HOOK-11"),
    ),
    fault(
        "HOOK-06: post-accumulate hooks run at the end of the pass",
        _after_accumulation(lambda original, x, hook: original(x, lambda leaf: _at_the_end(lambda: hook(leaf)))),
    ),
    fault("HOOK-07", _of_tensors("retain_grad", lambda _, tensor: tensor.register_hook(lambda g: _keeps(tensor, g)))),
    fault("HOOK-07: retain_grad keeps the grad after the pass", _of_tensors("retain_grad", _keeps_late)),
    fault("HOOK-08", _of_tensors("register_hook", _as_pre_hook), neighbours=("HOOK-06", "HOOK-07", "HOOK-10")),
    fault("HOOK-08: the nodes of tensors asked for run", plants.around_grad(_runs_the_nodes_asked_for)),
    fault("HOOK-09", _after_accumulation(_before_it_is_set), neighbours=("HOOK-06", "HOOK-12")),
    fault(
        "HOOK-09: post-accumulate hooks on other tensors than leaves are dropped silently",
        _after_accumulation(plants.where(lambda x, _: not x.is_leaf, lambda *_: None)),
    ),
    fault("HOOK-09: removed post-accumulate hooks still run", _after_accumulation(_never_removes)),
    fault("HOOK-09: a second post-accumulate hook replaces the first", _one_on_each_leaf),
    fault("HOOK-10: a removed hook still fires", plants.wrapped(graph, "register_multi_grad_hook", _never_removes)),
    fault("HOOK-11", _from_the_next_pass_on),
    fault("HOOK-11: pre-hooks registered in forward are lost", _loses_those_of_forward),
)

FIXES = (
    Fix("HOOK-06", _hides_what_is_retained, variant="retain_grad"),
    Fix("HOOK-10", plants.wrapped(torch.autograd, "backward", _with_another_root), variant="roots"),
    Fix(
        "HOOK-10", edit("torch.autograd.graph:register_multi_grad_hook", _FIRES, _IF_DEFINED + _FIRES), variant="unused"
    ),
    Fix("HOOK-10", plants.around_grad(_grad_by_backward), variant="grad"),
)
