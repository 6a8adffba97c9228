"""Faults of ctx: which object it is, what is stored on it, and its own attributes."""

from __future__ import annotations

import copy

import torch
from torch.autograd.function import BackwardCFunction

from autograd_conformance.selftests import plants
from autograd_conformance.selftests.planting import fault
from autograd_conformance.selftests.plants import around_backward, ctx_attribute, ctx_method


def _unless(ignored):
    """An assignment to this attribute of ctx is ignored."""
    return plants.set_on_ctx(plants.where(lambda _, name, __: name == ignored, lambda *_: None))


def _calls_backward_with(other):
    return around_backward(lambda _, ctx, *cotangents: ctx._forward_cls.backward(other(ctx), *cotangents))


class _Wrapper:
    def __init__(self, ctx):
        self.__dict__["ctx"] = ctx

    def __getattr__(self, name):
        return getattr(self.ctx, name)

    def __setattr__(self, name, value):
        setattr(self.ctx, name, value)


class _Bare(_Wrapper):
    def __getattr__(self, name):
        # The body of a generated Function needs its own attribute.
        if name in self.ctx.__dict__ and name != "count":
            raise AttributeError(name)
        return getattr(self.ctx, name)


def _forgets(ctx, found):
    # The body of a generated Function needs its own attribute in the next pass.
    for name in ctx.__dict__.keys() - {"count"}:
        delattr(ctx, name)
    return found


def _forgets_what_backward_stores(original, ctx, *cotangents):
    before = dict(ctx.__dict__)
    found = original(ctx, *cotangents)
    ctx.__dict__.clear()
    ctx.__dict__.update(before)
    return found


def _first_call_counts(name, attribute):
    return ctx_method(name, plants.where(lambda ctx, *_: getattr(ctx, attribute) is not None, lambda *_: None))


def _adds_up(name, attribute):
    return ctx_method(name, lambda original, ctx, *tensors: original(ctx, *(getattr(ctx, attribute) or ()), *tensors))


_ASSIGNABLE = plants.ctx_property(
    "saved_tensors",
    lambda original, ctx: ctx.__dict__["saved"] if "saved" in ctx.__dict__ else original(ctx),
    lambda _, ctx, value: ctx.__dict__.update(saved=value),
)


def _ignores_hooks_of_forward(original, ctx, hook):
    handle = original(ctx, hook)
    if not torch.is_grad_enabled():
        handle.remove()
    return handle


def _keeps_to_save():
    kept = [None]

    def save(original, ctx, *tensors):
        kept[0] = tensors
        original(ctx, *tensors)

    def note(node, *_):
        node.to_save = kept[0]

    return plants.all_of(ctx_method("save_for_backward", save), plants.noting_calls(note))


def _takes_lists(assign, ctx, name, value):
    pending = name in ("to_save", "dirty_tensors", "non_differentiable")
    assign(ctx, name, tuple(value) if pending and isinstance(value, list) else value)


def _keeps_the_pairs(original, ctx, *pairs):
    original(ctx, *pairs)
    ctx.shared_pairs = pairs


def _notes_retain_variables(ctx, cotangents):
    ctx.retain_variables = False
    return cotangents


FAULTS = (
    fault("CTX-01", _calls_backward_with(_Bare), "missing", neighbours=plants.numbers("CTX", 2, 3, 5)),
    fault(
        "CTX-01: jvp gets a wrapper around ctx",
        plants.wrapped(
            BackwardCFunction, "apply_jvp", lambda _, ctx, *tangents: ctx._forward_cls.jvp(_Wrapper(ctx), *tangents)
        ),
        "ctx of jvp",
    ),
    fault(
        "CTX-01: ctx keeps copies of what is stored on it",
        plants.set_on_ctx(lambda assign, ctx, name, value: assign(ctx, name, copy.copy(value))),
        neighbours=("CTX-05", "CTX-07"),
    ),
    fault("CTX-02", _calls_backward_with(_Wrapper), neighbours=("CTX-01",)),
    fault("CTX-03", plants.gradients(_forgets), "missing", neighbours=("CTX-05",)),
    fault("CTX-03: what backward stores on ctx is lost", around_backward(_forgets_what_backward_stores)),
    fault("CTX-04", _adds_up("save_for_backward", "to_save")),
    fault("CTX-04: marks of several calls add up", _adds_up("mark_non_differentiable", "non_differentiable")),
    fault("CTX-04: the first mark_dirty counts", _first_call_counts("mark_dirty", "dirty_tensors")),
    fault("CTX-04: the first save_for_forward counts", _first_call_counts("save_for_forward", "saved_for_forward")),
    fault("CTX-05", _ASSIGNABLE),
    fault(
        "CTX-05: materialize_grads takes the truth of any value",
        plants.ctx_property(
            "materialize_grads",
            lambda original, ctx: original(ctx),
            lambda assign, ctx, value: assign(ctx, bool(value)),
        ),
        "bool",
    ),
    fault("CTX-05: metadata is a new dict each time", ctx_attribute("metadata", lambda _, it: dict(it)), "metadata"),
    fault(
        "CTX-05: next_functions leaves out what needs no gradient",
        ctx_attribute("next_functions", lambda _, it: tuple(edge for edge in it if edge[0])),
        "next_functions",
    ),
    fault(
        "CTX-05: requires_grad follows the mode",
        ctx_attribute("requires_grad", lambda *_: torch.is_grad_enabled()),
        "requires_grad",
    ),
    fault(
        "CTX-05: hooks registered in forward are lost", ctx_method("register_hook", _ignores_hooks_of_forward), "hooks"
    ),
    fault("CTX-05: ctx.apply cannot be replaced", _unless("apply")),
    fault("CTX-05: needs_input_grad cannot be replaced", _unless("needs_input_grad"), "needs_input_grad"),
    fault("CTX-06", ctx_attribute("saved_tensors", lambda ctx, it: it or ctx.to_save or ())),
    fault(
        "CTX-06: saved_tensors of a freed node is empty",
        plants.ctx_property("saved_tensors", plants.rescued(lambda _: ())),
    ),
    fault(
        "CTX-06: saved inputs come back as other tensors",
        ctx_attribute("saved_tensors", lambda _, it: plants.detached(it)),
        neighbours=("CTX-08",),
    ),
    fault("CTX-07", _keeps_to_save),
    fault(
        "CTX-07: ctx.dirty_tensors reads None even in forward",
        ctx_attribute("dirty_tensors", lambda *_: None),
        neighbours=("CTX-05",),
    ),
    fault("CTX-07: a list can be assigned as well", plants.set_on_ctx(_takes_lists)),
    fault("CTX-08", plants.ctx_property("saved_variables", lambda _, ctx: ctx.saved_tensors)),
    fault(
        "CTX-08: ctx.saved_variables leaves out None",
        ctx_attribute("saved_variables", lambda _, it: tuple(x for x in it if x is not None)),
    ),
    fault("CTX-09", ctx_method("mark_shared_storage", plants.under(plants.silence))),
    fault("CTX-09: the pairs are kept on ctx", ctx_method("mark_shared_storage", _keeps_the_pairs)),
    fault("CTX-10", plants.put(BackwardCFunction, "_do_backward", BackwardCFunction.apply), "_do_backward"),
    fault("CTX-10: backward notes retain_variables", plants.cotangents(_notes_retain_variables)),
)
