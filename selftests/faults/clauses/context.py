"""Faults of ctx: which object it is, what is stored on it, its flags, and setup_context."""

from __future__ import annotations

import copy
import inspect
from itertools import zip_longest
from unittest.mock import patch

import torch
from torch.autograd.function import BackwardCFunction

from autograd_conformance.selftests.faults import plants
from autograd_conformance.selftests.faults.clauses.definitions import Fix
from autograd_conformance.selftests.faults.clauses.saving import own_detached, reading
from autograd_conformance.selftests.faults.planting import fault
from autograd_conformance.selftests.faults.plants import (
    among,
    around_backward,
    ctx_attribute,
    ctx_method,
    separate,
    tracked,
    tupled,
)


def _unless(ignored):
    """An assignment to this attribute of ctx is ignored."""
    return plants.set_on_ctx(plants.where(lambda _, name, __: name == ignored, lambda *_: None))


def _calls_backward_with(other):
    return around_backward(lambda _, ctx, *cotangents: ctx._forward_cls.backward(other(ctx), *cotangents))


def _declaring(arriving):
    """`ctx.set_output_grad_dtype`, also where torch has none yet: backward gets ``arriving(declared, cotangents)``."""

    def declare(ctx, *dtypes):
        ctx.declared_dtypes = dtypes

    def arrive(ctx, cotangents):
        return arriving(getattr(ctx, "declared_dtypes", ()), cotangents)

    return lambda: plants.all_of(
        plants.put(BackwardCFunction, "set_output_grad_dtype", declare), plants.cotangents(arrive)
    )


def _as_declared(declared, cotangents):
    """Each of these in its dtype, if there is one."""
    pairs = zip_longest(cotangents, declared[: len(cotangents)])
    return tuple(g if g is None or dtype is None else g.to(dtype) for g, dtype in pairs)


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
    saved, noted = plants.last(lambda method: ctx_method("save_for_backward", method))

    def note(node, *_):
        node.to_save = tuple(saved[1:])

    return plants.all_of(noted, plants.noting_calls(note))


def _takes_lists(assign, ctx, name, value):
    pending = name in ("to_save", "dirty_tensors", "non_differentiable")
    assign(ctx, name, tuple(value) if pending and isinstance(value, list) else value)


def _flags(change):
    """ctx.needs_input_grad is ``change(ctx, what it is)``."""
    return plants.ctx_attribute("needs_input_grad", change)


def _pads_defaults(original, cls, *args):
    return original(cls, *args, *([None] * (4 - len(args)) if cls.__name__ == "Defaults" else []))


def _heeds_the_mode():
    modes = []
    noted = plants.around_apply(plants.first(lambda *_: modes.append(torch.is_grad_enabled())))
    return plants.all_of(noted, _flags(lambda _, it: tuple(f and modes[-1] for f in it)))


@plants.anew
def _heeds_arguments(change):
    """The flag of an argument is ``change(position, argument, arguments)`` if it was True."""
    call, noted = plants.last(plants.around_apply)

    def flags(_, it):
        known = call[1:]
        if len(it) != len(known):
            return it
        return tuple(f and change(i, x, known) for i, (f, x) in enumerate(zip(it, known, strict=True)))

    return plants.all_of(noted, _flags(flags))


def _unneeded(found, ctx, *_):
    return any(g is not None and not need for g, need in zip(found, ctx.needs_input_grad, strict=True))


@plants.anew
def _knowing_what_is_wanted(change):
    """Once grad was called the flags are ``change(ctx, what they are, the inputs of the last grad)``."""
    call, noted = plants.last(plants.around_grad)
    return plants.all_of(noted, _flags(lambda ctx, it: change(ctx, it, call[1]) if call else it))


def _says_what_is_wanted(ctx, _, wanted):
    leaves = [getattr(node, "variable", None) for node, _ in ctx.next_functions]
    return tuple(plants.among(wanted, leaf) for leaf in leaves)


def _forgets_partial_passes(ctx, it, wanted):
    return (False,) * len(it) if ctx.saved_tensors and len(wanted) < sum(it) else it


_OTHERS = plants.numbers("NIG", 2, 3, 4, 5, 6)


def _setup(method):
    """A Function's setup_context is ``method(original, ctx, inputs, output)``."""
    return plants.around_static("setup_context", method)


def _given(change):
    """A Function's setup_context gets ``change(inputs, output)``."""
    return _setup(lambda original, ctx, inputs, output: original(ctx, *change(inputs, output)))


def _copies_inputs(inputs, output):
    copies = tuple(x.clone() if isinstance(x, torch.Tensor) and not x.requires_grad else x for x in inputs)
    return copies, output


def _unwraps_one(inputs, output):
    return inputs, output[0] if isinstance(output, tuple) and len(output) == 1 else output


def _twice(original, ctx, inputs, output):
    original(ctx, inputs, output)
    return original(ctx, inputs, output)


def _heeds_what_it_returns():
    returned = []

    def setup(original, *given):
        returned[:] = [original(*given)]
        return returned[0]

    def apply(original, cls, *args, **kwargs):
        returned[:] = []
        found = original(cls, *args, **kwargs)
        return returned[0] if returned and returned[0] is not None else found

    return plants.all_of(_setup(setup), plants.around_apply(apply))


def _needs_grad_mode():
    modes = []
    noted = plants.around_apply(plants.first(lambda *_: modes.append(torch.is_grad_enabled())))
    skipped = plants.where(lambda *_: not modes[-1], lambda *_: None)
    return plants.all_of(_setup(skipped), noted)


def _drops_cotangents_of_saved(ctx, cotangents):
    own = {t.output_nr for t in ctx.saved_tensors if t is not None and t.grad_fn is ctx}
    return (torch.zeros_like(g) if n in own else g for n, g in enumerate(cotangents))


def _returned(inputs, output):
    return [x for x in plants.tensors_of(inputs) if among(tupled(output), x)]


def _saves_views(original, ctx, inputs, output):
    original(ctx, inputs, output)
    returned = _returned(inputs, output)
    for name in ("to_save", "saved_for_forward"):
        pending = getattr(ctx, name) or ()
        setattr(ctx, name, tuple(t.view_as(t) if among(returned, t) else t for t in pending))


def _refuses_all_returned(original, ctx, inputs, output):
    original(ctx, inputs, output)
    if _returned(inputs, output):
        raise RuntimeError("an input was returned as it is next to a setup_context")


def _binds_keywords(original, cls, *args, **kwargs):
    """Bind keyword-only arguments before apply, which then sees a forward without them."""
    mine = cls.forward
    kinds = {name: p.kind for name, p in inspect.signature(mine).parameters.items()} if separate(cls) else {}
    if inspect.Parameter.KEYWORD_ONLY not in kinds.values():
        return original(cls, *args, **kwargs)
    bound = inspect.signature(mine).bind(*args, **kwargs)
    bound.apply_defaults()
    with patch.object(cls, "forward", staticmethod(lambda *given: mine(*given, **bound.kwargs))):
        return original(cls, *bound.args)


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
    fault(
        "CTX-09: the pairs are kept on ctx",
        ctx_method("mark_shared_storage", plants.first(lambda ctx, *pairs: setattr(ctx, "shared_pairs", pairs))),
    ),
    fault("CTX-11", _declaring(lambda declared, cotangents: cotangents), "dtypes of the cotangents"),
    fault("CTX-11: what is declared is not checked", _declaring(_as_declared), neighbours=()),
    fault("CTX-10", plants.put(BackwardCFunction, "_do_backward", BackwardCFunction.apply), "_do_backward"),
    fault(
        "CTX-10: backward notes retain_variables",
        around_backward(plants.first(lambda ctx, *_: setattr(ctx, "retain_variables", False))),
    ),
    fault("NIG-01", _flags(lambda _, flags: flags[:-1]), neighbours=_OTHERS),
    fault("NIG-01: a list instead of a tuple", _flags(lambda _, flags: list(flags)), "list", neighbours=_OTHERS),
    fault("NIG-02", _flags(lambda _, flags: (True,) * len(flags)), neighbours=plants.numbers("NIG", 3, 4, 5)),
    fault(
        "NIG-02: it is False for what has a history",
        _heeds_arguments(lambda _, x, __: x.is_leaf),
        neighbours=("NIG-05",),
    ),
    fault(
        "NIG-02: it is False for what was passed before",
        _heeds_arguments(lambda i, x, args: not plants.among(args[:i], x)),
        neighbours=("NIG-04",),
    ),
    fault("NIG-03", plants.around_apply(_pads_defaults)),
    fault("NIG-04", plants.around_apply(lambda _, cls, *args: super(torch.autograd.Function, cls).apply(*args))),
    fault("NIG-05", _heeds_the_mode),
    fault("NIG-06", _knowing_what_is_wanted(_forgets_partial_passes), neighbours=("NIG-02",)),
    fault("NIG-07", around_backward(plants.refused(_unneeded, "a gradient was returned that is not needed"))),
    fault("SETUP-01", _given(_copies_inputs), neighbours=("SETUP-06",)),
    fault("SETUP-01: a list of inputs", _given(lambda inputs, output: (list(inputs), output)), "list"),
    fault("SETUP-01: setup_context runs twice", _setup(_twice), neighbours=("SETUP-04",)),
    fault("SETUP-02", _given(_unwraps_one), "Tensor", neighbours=("SETUP-03", "SETUP-07")),
    fault(
        "SETUP-02: a list of outputs",
        _given(lambda inputs, output: (inputs, list(output) if isinstance(output, tuple) else output)),
        "list",
    ),
    fault("SETUP-03", _setup(plants.under(torch.enable_grad))),
    fault("SETUP-03: what setup_context returns is the output", _heeds_what_it_returns),
    fault("SETUP-04", _setup(plants.where(lambda _, inputs, __: not any(map(tracked, inputs)), lambda *_: None))),
    fault("SETUP-04: setup_context is skipped under no_grad", _needs_grad_mode),
    fault("SETUP-05", plants.cotangents(_drops_cotangents_of_saved)),
    fault("SETUP-05: saved outputs come back detached", reading(own_detached)),
    fault("SETUP-06", _setup(_saves_views)),
    fault("SETUP-06: returning an input as it is raises", _setup(_refuses_all_returned)),
    fault(
        "SETUP-07", reading(lambda ctx, x: x.detach() if separate(ctx._forward_cls) else x), neighbours=("SETUP-05",)
    ),
    fault(
        "SETUP-07: set_materialize_grads has no effect in setup_context",
        plants.ctx_method(
            "set_materialize_grads", lambda original, ctx, value: original(ctx, value or separate(ctx._forward_cls))
        ),
    ),
)

FIXES = (
    Fix("NIG-06", _knowing_what_is_wanted(_says_what_is_wanted)),
    Fix("SETUP-08", plants.around_apply(_binds_keywords)),
)
