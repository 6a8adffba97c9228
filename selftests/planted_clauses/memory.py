"""Faults of what keeps tensors alive."""

from __future__ import annotations

import warnings
import weakref
from contextlib import contextmanager
from typing import Any

import torch
from torch.autograd.function import BackwardCFunction

from autograd_conformance.selftests import plants
from autograd_conformance.selftests.planting import fault


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

    def change(ctx, cotangents):
        kept.append(ctx.saved_tensors)
        return cotangents

    def releasing(original, *args, **options):
        try:
            return original(*args, **options)
        finally:
            kept.clear()

    passes = (plants.wrapped(torch.autograd, name, releasing) for name in ("grad", "backward"))
    return plants.all_of(*passes, plants.cotangents(change))


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
