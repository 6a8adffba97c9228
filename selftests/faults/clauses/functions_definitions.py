"""Faults of how a Function is defined: methods that are missing, doubled, inherited, replaced, nested or that raise."""

from __future__ import annotations

from functools import wraps

import torch
from torch.autograd import Function
from torch.autograd.function import FunctionMeta

from autograd_conformance.selftests.faults import plants
from autograd_conformance.selftests.faults.clauses.definitions import Fix
from autograd_conformance.selftests.faults.planting import all_of, fault
from autograd_conformance.selftests.faults.plants import around_apply, around_backward, defines


def _new_classes(change):
    """Each Function class that is made goes through ``change(cls, bases, attrs)``."""

    def init(original, cls, name, bases, attrs):
        original(cls, name, bases, attrs)
        change(cls, bases, attrs)

    return plants.wrapped(FunctionMeta, "__init__", init)


def _without_forward(method):
    """apply is this on a class without a forward."""
    return around_apply(plants.where(lambda cls, *_: not defines(cls, "forward"), method))


def _where(holds, method):
    """backward is this where ``holds(whether there is a backward, and a vjp, cls)``."""

    def chosen(ctx, *_):
        cls = ctx._forward_cls
        return holds(defines(cls, "backward"), defines(cls, "vjp"), cls)

    return around_backward(plants.where(chosen, method))


_no_attribute = plants.raising("forward, or backward and vjp", AttributeError)


def _default_backward(_, ctx, *cotangents):
    return Function.backward(ctx, *cotangents)


def _nearest(cls):
    """The name of the one rule that the nearest class with any defines, if it is one."""
    own = next({"backward", "vjp"} & vars(c).keys() for c in cls.__mro__ if {"backward", "vjp"} & vars(c).keys())
    return own.pop() if len(own) == 1 else None


def _warns_once():
    warned = []

    def init(original, instance, *args, **kwargs):
        if type(instance) not in warned:
            warned.append(type(instance))
            original(instance, *args, **kwargs)

    return plants.wrapped(Function, "__init__", init)()


def _applies(_, instance, *args):
    return type(instance).apply(*args)


def _refuse_undecorated(cls, _, attrs):
    for name in ("forward", "backward"):
        if name in attrs and not isinstance(attrs[name], staticmethod):
            raise TypeError(f"{cls.__name__}.{name} must be static")


@plants.anew
def _direct_calls(call):
    """``F.forward(*args)`` outside apply is ``call(original, F, *args)``."""
    applying, noted = plants.noting(around_apply)

    def change(cls, _, __):
        mine = getattr(cls.forward, "mine", cls.forward)

        @wraps(mine)
        def forward(*args, **kwargs):
            return mine(*args, **kwargs) if applying else call(mine, cls, *args, **kwargs)

        if defines(cls, "forward"):
            forward.mine = mine
            cls.forward = staticmethod(forward)

    return all_of(_new_classes(change), noted)


def _applies_instead(_, cls, *args):
    return cls.apply(*(args if plants.separate(cls) else args[1:]))


def _unrecorded(mine, _, *args):
    with torch.no_grad():
        return mine(*args)


def _unrecorded_in_backward():
    running, noted = plants.noting(around_backward)
    mode = plants.recording_if(lambda: torch.is_grad_enabled() and not running)
    return all_of(noted, around_apply(plants.under(mode)))


def _recorded_in_forward():
    running, noted = plants.noting(around_apply)
    mode = plants.recording_if(lambda: torch.is_grad_enabled() or running)
    return all_of(noted, around_apply(plants.under(mode)))


def _parents_backward(original, ctx, *cotangents):
    defining = [c for c in ctx._forward_cls.__mro__ if "backward" in vars(c) and issubclass(c, Function)]
    if len(defining) < 3 or defines(ctx._forward_cls, "vjp"):  # the class, its parent, and Function
        return original(ctx, *cotangents)
    return defining[1].backward(ctx, *cotangents)


def _parents_name(cls, bases, _):
    if bases[0] is not Function:
        cls._backward_cls.__name__ = bases[0]._backward_cls.__name__


def _only_backward(cls):
    return defines(cls, "backward") and not defines(cls, "vjp")


def _early_binding():
    def note(node, cls, _, __):
        if _only_backward(cls):
            node._bound = cls.backward

    return all_of(
        plants.noting_calls(note),
        around_backward(lambda original, ctx, *given: getattr(ctx, "_bound", original)(ctx, *given)),
    )


def _binding_on_first_use(original, ctx, *cotangents):
    if not _only_backward(ctx._forward_cls):
        return original(ctx, *cotangents)
    if not hasattr(ctx, "_bound"):
        ctx._bound = ctx._forward_cls.backward
    return ctx._bound(ctx, *cotangents)


def _as_runtime_error(original, ctx, *cotangents):
    try:
        return original(ctx, *cotangents)
    except Exception as raised:
        if not defines(ctx._forward_cls, "backward"):
            raise
        raise RuntimeError(str(raised)) from raised


def _without_arguments(original, ctx, *cotangents):
    try:
        return original(ctx, *cotangents)
    except KeyError:
        raise KeyError from None


def _leaving_a_mode(plant):
    """A fault that may leave grad mode changed."""
    return lambda: all_of(plant, lambda: torch.set_grad_enabled(torch.is_grad_enabled()))


def _mode_stays_off(original, cls, *args, **kwargs):
    try:
        return original(cls, *args, **kwargs)
    except Exception as raised:
        if not isinstance(raised, TypeError | NotImplementedError):
            torch.set_grad_enabled(False)
        raise


def _mode_stays_on(original, *args, create_graph=False, **options):
    try:
        return original(*args, create_graph=create_graph, **options)
    except Exception as raised:
        if not isinstance(raised, RuntimeError):
            torch.set_grad_enabled(create_graph)
        raise


def _recursive(original, outputs, *args, **options):
    seen = {y.grad_fn for y in (outputs if isinstance(outputs, (list, tuple)) else [outputs])}
    front = set(seen)
    while front and len(seen) <= 10_000:
        front = {node for last in front if last for node, _ in last.next_functions} - seen
        seen |= front
    if len(seen) > 10_000:
        raise RecursionError("maximum recursion depth exceeded")
    return original(outputs, *args, **options)


def _immortal_nodes():
    nodes = []
    return plants.noting_calls(lambda node, *_: nodes.append(node))()


FAULTS = (
    fault("FN-15", _without_forward(lambda _, __, *args, **___: args[0])),
    fault("FN-15: an AttributeError", _without_forward(_no_attribute), "AttributeError"),
    fault("FN-16", _where(lambda backward, vjp, _: not backward and not vjp, lambda *_: None), "no error"),
    fault(
        "FN-16: an AttributeError",
        _where(lambda backward, vjp, _: not backward and not vjp, _no_attribute),
        "AttributeError",
    ),
    fault("FN-17", _where(lambda backward, *_: not backward, _default_backward), neighbours=("FN-18",)),
    fault(
        "FN-17: an inherited vjp is not found",
        _where(lambda backward, _, cls: not backward and "vjp" not in vars(cls), _default_backward),
    ),
    fault(
        "FN-18",
        _where(lambda backward, vjp, _: backward and vjp, lambda _, ctx, *given: ctx._forward_cls.vjp(ctx, *given)),
        "no error",
    ),
    fault(
        "FN-18: the subclass's rule counts",
        _where(
            lambda backward, vjp, cls: backward and vjp and _nearest(cls),
            lambda _, ctx, *given: getattr(ctx._forward_cls, _nearest(ctx._forward_cls))(ctx, *given),
        ),
        "no error",
    ),
    fault("FN-19", plants.put(Function, "__init__", lambda *_: None), "no warning"),
    fault("FN-19: a class warns once", _warns_once, "no warning"),
    fault("FN-20", plants.wrapped(Function, "__call__", _applies), "no error"),
    fault(
        "FN-20: instances of a class with setup_context can be called",
        plants.wrapped(Function, "__call__", plants.where(lambda f, *_: plants.separate(type(f)), _applies)),
        "no error",
    ),
    fault("FN-22", _direct_calls(_applies_instead), "calls of the custom backward"),
    fault("FN-22: a direct call is not recorded", _direct_calls(_unrecorded), "gradients"),
    fault("FN-26", _unrecorded_in_backward, "in backward"),
    fault("FN-26: a call inside forward is recorded", _recorded_in_forward, "inside forward"),
    fault("FN-27", around_backward(_parents_backward)),
    fault("FN-27: it bears the parent's name", _new_classes(_parents_name), "type of the node"),
    fault("FN-28", _early_binding),
    fault("FN-28: a node keeps the backward that it ran first", around_backward(_binding_on_first_use)),
    fault("FN-29", around_backward(_as_runtime_error), "RuntimeError"),
    fault("FN-29: a KeyError loses its arguments", around_backward(_without_arguments)),
    fault(
        "FN-29: grad mode is off after an exception in forward",
        _leaving_a_mode(around_apply(_mode_stays_off)),
        "grad mode",
    ),
    fault(
        "FN-29: grad mode is that of the pass after an exception",
        _leaving_a_mode(plants.wrapped(torch.autograd, "grad", _mode_stays_on)),
        "grad mode",
    ),
    fault("FN-30", plants.wrapped(torch.autograd, "grad", _recursive), "RecursionError"),
    fault("FN-30: nodes are never freed", _immortal_nodes, "alive"),
)

FIXES = (Fix("FN-21", _new_classes(_refuse_undecorated)),)
