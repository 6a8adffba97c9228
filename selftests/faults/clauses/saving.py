"""Faults of saved tensors, and of what keeps tensors alive."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import torch
from torch.autograd.function import BackwardCFunction

from autograd_conformance.selftests.faults import plants
from autograd_conformance.selftests.faults.planting import Plant, all_of, fault
from autograd_conformance.selftests.faults.plants import around_backward, ctx_attribute, ctx_method


def _saving(change):
    """What is saved is ``change`` of each object passed to save_for_backward."""
    return ctx_method("save_for_backward", lambda save, ctx, *objects: save(ctx, *map(change, objects)))


def _refusing(which, words, error):
    """save_for_backward raises an error with these words for some objects."""

    def save(original, ctx, *objects):
        if any(map(which, objects)):
            raise error(words)
        original(ctx, *objects)

    return ctx_method("save_for_backward", save)


def _read(change):
    """ctx.saved_tensors is ``change(what it is)``."""
    return ctx_attribute("saved_tensors", lambda _, saved: change(saved))


def reading(change: Callable[[Any, Any], Any]) -> Plant:
    """Each of ctx.saved_tensors but None is ``change(ctx, it)``."""
    return ctx_attribute("saved_tensors", lambda ctx, saved: plants.of_tensors(lambda x: change(ctx, x), saved))


def own_detached(ctx: Any, x: Any) -> Any:
    """For `reading`: an output of the call itself comes back detached."""
    return x.detach() if x.grad_fn is ctx else x


@plants.anew
def _readable_after(words, where=lambda: True):
    """Where reading ctx.saved_tensors raises an error with these words, the objects that were saved are read."""
    known = {}

    def note(save, ctx, *tensors):
        known[id(ctx)] = ctx, tensors
        save(ctx, *tensors)

    saved = plants.rescued(lambda ctx: known[id(ctx)][1], says=words)
    read = plants.ctx_property("saved_tensors", plants.where(lambda _: where(), saved))
    return all_of(ctx_method("save_for_backward", note), read)


def _compares_values():
    """Reading saved tensors raises an error if their values are not those that were saved."""
    copies = {}

    def note(ctx, *_):
        copies[id(ctx)] = ctx, plants.of_tensors(torch.clone, tuple(ctx.to_save or ()))

    def check(ctx, saved):
        before = copies[id(ctx)][1] if id(ctx) in copies else saved
        if any(isinstance(x, torch.Tensor) and not torch.equal(x, y) for x, y in zip(saved, before, strict=True)):
            raise RuntimeError("a saved tensor has been modified by an inplace operation")
        return saved

    return all_of(plants.after_forward(note), ctx_attribute("saved_tensors", check))


def _checks_attributes():
    """Backward raises an error if a tensor attribute of ctx was changed in place since forward."""
    versions = {}

    def note(ctx, *_):
        versions[id(ctx)] = ctx, {name: x._version for name, x in vars(ctx).items() if isinstance(x, torch.Tensor)}

    def check(original, ctx, *cotangents):
        known = versions[id(ctx)][1] if id(ctx) in versions else {}
        if any(getattr(ctx, name)._version != version for name, version in known.items()):
            raise RuntimeError("an attribute of ctx has been modified by an inplace operation")
        return original(ctx, *cotangents)

    return all_of(plants.after_forward(note), around_backward(check))


def _attributes_copied(ctx, *_):
    vars(ctx).update({name: x.clone() for name, x in vars(ctx).items() if isinstance(x, torch.Tensor)})


def _never_twice():
    """A node that ran in a pass that does not retain the graph cannot run again."""
    retained, done = [True], dict[int, Any]()

    def noting(original, *args, retain_graph=None, create_graph=False, **options):
        retained[0] = create_graph if retain_graph is None else retain_graph
        return original(*args, retain_graph=retain_graph, create_graph=create_graph, **options)

    def once(original, ctx, *cotangents):
        if id(ctx) in done:
            raise RuntimeError("Trying to backward through the graph a second time")
        if not retained[0]:
            done[id(ctx)] = ctx
        return original(ctx, *cotangents)

    passes = (plants.wrapped(torch.autograd, name, noting) for name in ("grad", "backward"))
    return all_of(*passes, around_backward(once))


def _saves_in_backward():
    """What save_for_backward is called with in backward is what later passes read."""
    later = {}
    running, noted = plants.noting(around_backward)

    def save(original, ctx, *tensors):
        if plants.among(running, ctx):
            later[id(ctx)] = ctx, tensors
        original(ctx, *tensors)

    def read(ctx, saved):
        return later[id(ctx)][1] if id(ctx) in later else saved

    return all_of(ctx_method("save_for_backward", save), noted, ctx_attribute("saved_tensors", read))


_REFUSED_IN_BACKWARD = plants.under(_refusing(lambda _: True, "save_for_backward was called in backward", RuntimeError))


def _weak_attributes():
    """Outputs, intermediates and inputs that are set on ctx are not kept alive by it."""
    read = BackwardCFunction.__getattribute__

    def write(assign, ctx, name, value):
        assign(ctx, name, weakref.ref(value) if isinstance(value, torch.Tensor) else value)

    def strong(ctx, name):
        value = read(ctx, name)
        return value() if isinstance(value, weakref.ref) else value

    return plants.all_of(plants.set_on_ctx(write), plants.put(BackwardCFunction, "__getattribute__", strong))


# What a fault that leaks for ever holds on to, until it is removed.
_leaked: list[Any] = []


@contextmanager
def _immortal_attributes():
    """Tensors that are set on ctx are never freed, not even by the garbage collector."""

    def write(assign, ctx, name, value):
        _leaked.extend(plants.tensors_of([value]))
        assign(ctx, name, value)

    try:
        with plants.set_on_ctx(write)():
            yield
    finally:
        _leaked.clear()


def _keeps_what_it_saves(save, ctx, *tensors):
    ctx._kept = tensors
    save(ctx, *tensors)


def _dropping(which):
    """After its backward a node drops the tensor attributes ``which(ctx, tensor)``."""

    def change(ctx, found):
        for name, value in list(vars(ctx).items()):
            if isinstance(value, torch.Tensor) and which(ctx, value):
                delattr(ctx, name)
        return found

    return plants.gradients(change)


def _kept_until_the_end():
    """What nodes have read from saved_tensors lives until the backward pass is over."""
    kept = []
    reads = around_backward(plants.first(lambda ctx, *_: kept.append(ctx.saved_tensors)))

    def releasing(original, *args, **options):
        try:
            return original(*args, **options)
        finally:
            kept.clear()

    passes = (plants.wrapped(torch.autograd, name, releasing) for name in ("grad", "backward"))
    return plants.all_of(*passes, reads)


@contextmanager
def _one_node_behind():
    """Saved tensors are released when the next node is done, not their own."""
    kept = []

    def run(original, ctx, *cotangents):
        mine = ctx.saved_tensors
        found = original(ctx, *cotangents)
        kept[:] = [mine]
        return found

    try:
        with plants.around_backward(run)():
            yield
    finally:
        kept.clear()


def _also_warning(original, *args, create_graph=False, **options):
    if create_graph:
        warnings.warn("grad() with create_graph=True makes a reference cycle", stacklevel=2)
    return original(*args, create_graph=create_graph, **options)


FAULTS = (
    fault("SAVE-01", _read(lambda saved: tuple(x for x in saved if x is not None)), neighbours=("SAVE-12",)),
    fault(
        "SAVE-01: with None among them saved tensors come back in reverse",
        _read(lambda saved: tuple(reversed(saved)) if plants.among(saved, None) else saved),
        neighbours=("SAVE-12",),
    ),
    fault("SAVE-02", _saving(lambda x: x if isinstance(x, torch.Tensor) else None)),
    fault(
        "SAVE-02: the error does not say which argument",
        _refusing(
            lambda x: not (x is None or isinstance(x, torch.Tensor)), "save_for_backward saves tensors only", TypeError
        ),
    ),
    fault("SAVE-03", _read(lambda saved: saved or None)),
    fault("SAVE-03: a list", _read(list)),
    fault("SAVE-04", reading(lambda ctx, x: x.clone() if x.grad_fn is ctx else x)),
    fault("SAVE-04: a saved output comes back without its node", reading(own_detached)),
    fault(
        "SAVE-04: a saved input comes back as a view of it",
        reading(lambda ctx, x: x if x.grad_fn is ctx else x.view_as(x)),
    ),
    fault(
        "SAVE-04: an input with a history comes back detached",
        reading(lambda ctx, x: x if x.grad_fn in (None, ctx) else x.detach()),
    ),
    fault("SAVE-05", _readable_after("modified by an inplace operation"), neighbours=("SAVE-14",)),
    fault(
        "SAVE-05: nothing is checked under create_graph",
        _readable_after("modified by an inplace operation", torch.is_grad_enabled),
    ),
    fault(
        "SAVE-05: changes through detached aliases are not seen",
        plants.put(torch.Tensor, "detach", lambda x: x.data),
        neighbours=("SAVE-14",),
    ),
    fault("SAVE-06", _compares_values),
    fault("SAVE-07", plants.cotangents(lambda ctx, given: (ctx.saved_tensors, given)[1]), neighbours=("SAVE-11",)),
    fault("SAVE-08", _checks_attributes),
    fault("SAVE-08: attributes of ctx are copies", plants.after_forward(_attributes_copied)),
    fault("SAVE-09", _readable_after("backward through the graph a second time")),
    fault("SAVE-11", _never_twice),
    fault("SAVE-12", _saves_in_backward),
    fault("SAVE-12: save_for_backward in backward is an error", around_backward(_REFUSED_IN_BACKWARD)),
    fault("SAVE-13", _saving(lambda x: x.clone() if isinstance(x, torch.Tensor) and x.is_inference() else x)),
    fault(
        "SAVE-13: inference tensors are refused in calls that are not recorded",
        _refusing(
            lambda x: isinstance(x, torch.Tensor) and x.is_inference(),
            "Inference tensors cannot be saved",
            RuntimeError,
        ),
    ),
    fault("MEM-01", _weak_attributes, neighbours=("MEM-03", "MEM-05")),
    fault("MEM-01: the cycle is never collected", _immortal_attributes, neighbours=("MEM-03", "MEM-05")),
    fault("MEM-02", plants.ctx_method("save_for_backward", _keeps_what_it_saves), neighbours=("MEM-04",)),
    fault("MEM-03", _dropping(lambda ctx, tensor: tensor.grad_fn is ctx)),
    fault("MEM-04", _kept_until_the_end),
    fault("MEM-04: released one node later", _one_node_behind, neighbours=("MEM-02",)),
    fault("MEM-05", _dropping(lambda ctx, tensor: tensor.grad_fn is not ctx), neighbours=("MEM-03",)),
    fault("MEM-06", plants.wrapped(torch.autograd, "backward", plants.under(plants.silence))),
    fault("MEM-06: grad warns too", plants.wrapped(torch.autograd, "grad", _also_warning)),
)
