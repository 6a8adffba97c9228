"""Planted faults of leaves: their flags, detach, and hooks that run after accumulation."""

from __future__ import annotations

import torch
from torch.autograd import forward_ad

from autograd_conformance.selftests.faults import plants
from autograd_conformance.selftests.faults.planting import fault


def _method(name, method):
    """``x.name(*args)`` is ``method(original, x, *args)``."""
    return plants.wrapped(torch.Tensor, name, method)


def _reading(name, read):
    """``x.name`` is ``read(what it is, x)``."""
    inherited = getattr(torch.Tensor, name)
    return plants.put(torch.Tensor, name, property(lambda x: read(inherited.__get__(x), x)))


def _hooks(change):
    """Each post-accumulate hook is ``change(hook)``."""
    return _method("register_post_accumulate_grad_hook", lambda add, x, hook: add(x, change(hook)))


def _on_a_copy(hook):
    def run(x):
        copy = x.detach().requires_grad_()
        copy.grad = None if x.grad is None else x.grad.clone()
        hook(copy)

    return run


def _keeping_grad(hook):
    def run(x):
        grad = x.grad
        hook(x)
        x.grad = grad if x.grad is None else x.grad

    return run


def _without_changes(hook):
    def run(x):
        version = x._version
        hook(x)
        if x._version != version:
            raise RuntimeError("a leaf was changed by its hook")

    return run


def _detached_if_false(set_flag, x, flag=True):
    return set_flag(x, flag) if flag or x.grad_fn is None else x.detach_()


def _leaves_alone(set_flag, x, flag=True):
    if flag and x.grad_fn is not None:
        raise RuntimeError("only leaves may be set to require grad")
    return set_flag(x, flag)


def _marked(retain, x):
    x.marked = True
    retain(x)


def _halving(retain, x):
    if x.is_leaf and x.requires_grad:
        x.register_hook(lambda g: g / 2)
    retain(x)


def _once(retain, x):
    if x.retains_grad:
        raise RuntimeError("it retains its grad already")
    retain(x)


def _with_tangent(detach, x):
    tangent = forward_ad.unpack_dual(x).tangent if forward_ad._current_level >= 0 else None
    return detach(x) if tangent is None else forward_ad.make_dual(detach(x), detach(tangent))


def _that_requires_grad(detach, x):
    found = detach(x)
    return found.requires_grad_() if x.requires_grad else found


FAULTS = (
    fault("HOOK-12", _hooks(_keeping_grad), "position"),
    fault("HOOK-12: hooks get a copy of their leaf", _hooks(_on_a_copy)),
    fault("HOOK-12: hooks run with grad mode on", _hooks(lambda hook: torch.enable_grad()(hook)), "grad mode"),
    fault("HOOK-12: hooks run with grad mode off", _hooks(lambda hook: torch.no_grad()(hook)), "grad mode"),
    fault("HOOK-12: hooks may not change their leaf", _hooks(_without_changes), "in place"),
    fault("LEAF-01", _reading("is_leaf", lambda leaf, x: leaf and x.requires_grad), neighbours=("LEAF-04", "LEAF-05")),
    fault(
        "LEAF-01: tensors of integers are no leaves",
        _reading("is_leaf", lambda leaf, x: leaf and x.dtype != torch.int64),
    ),
    fault("LEAF-01: scalars are leaves", _reading("is_leaf", lambda leaf, x: leaf or x.shape == ())),
    fault(
        "LEAF-01: outputs have a .grad",
        plants.each_output(lambda y: (y.requires_grad and y.retain_grad()) or y),
        neighbours=("LEAF-03",),
    ),
    fault("LEAF-02", _method("requires_grad_", _detached_if_false), "no error"),
    fault("LEAF-02: an output may not be set to require grad", _method("requires_grad_", _leaves_alone)),
    fault(
        "LEAF-02: requires_grad_ gives a new tensor",
        _method("requires_grad_", lambda set_flag, x, *flag: set_flag(x, *flag).view_as(x)),
        neighbours=("LEAF-01", "LEAF-03", "LEAF-04", "LEAF-05"),
    ),
    fault(
        "LEAF-02: requires_grad_ changes nothing by default",
        _method("requires_grad_", lambda set_flag, x, *flag: set_flag(x, *(flag or (x.requires_grad,)))),
        "requires_grad",
    ),
    fault(
        "LEAF-03",
        lambda: plants.all_of(
            _method("retain_grad", _marked), _reading("retains_grad", lambda _, x: getattr(x, "marked", False))
        ),
        "retains_grad",
    ),
    fault("LEAF-03: retain_grad halves the gradient of a leaf", _method("retain_grad", _halving), ".grad"),
    fault("LEAF-03: retain_grad can be called once", _method("retain_grad", _once)),
    fault("LEAF-03: retains_grad is never True", _reading("retains_grad", lambda *_: False)),
    fault("LEAF-04", _method("detach", _with_tangent), "tangent"),
    fault("LEAF-04: detach copies", _method("detach", lambda detach, x: detach(x).clone()), "memory"),
    fault("LEAF-04: what detach gives requires grad", _method("detach", _that_requires_grad)),
    fault(
        "LEAF-04: detach changes its tensor",
        _method("detach", lambda detach, x: detach(x.detach_())),
        neighbours=("LEAF-05",),
    ),
    fault("LEAF-05", _method("detach_", lambda detach, x: x if x._is_view() else detach(x)), "no error"),
    fault(
        "LEAF-05: what detach_ leaves requires grad", _method("detach_", lambda detach, x: detach(x).requires_grad_())
    ),
    fault("LEAF-05: detach_ gives another tensor", _method("detach_", lambda _, x: x.detach())),
)
