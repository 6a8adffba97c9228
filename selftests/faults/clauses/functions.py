"""Faults of how a Function is called: its arguments, its outputs, and what is recorded of a call."""

from __future__ import annotations

import inspect

import torch
from torch.autograd.function import FunctionCtx

from autograd_conformance.selftests.faults import plants
from autograd_conformance.selftests.faults.clauses.definitions import Fix
from autograd_conformance.selftests.faults.planting import fault
from autograd_conformance.selftests.faults.plants import detached, of_tensors, outputs, tracked, tupled


def _outputs_of(name, change):
    """apply gives it changed for Functions of this name alone, so that the tests that have others go on working."""
    return plants.around_apply(plants.where(lambda cls, *_: cls.__name__ == name, plants.gives(change)))


@plants.anew
def _returned(change, then):
    """apply gives ``then(kept, what it gives)``, where ``kept`` is ``change(what forward returned)``."""
    kept = []

    def forward(original, *args, **options):
        returned = original(*args, **options)
        kept.append(change(returned))
        return returned

    return plants.all_of(
        plants.around_static("forward", forward), plants.outputs(lambda found: then(kept.pop(), found))
    )


def _forward(method):
    return plants.around_static("forward", method)


def _arguments(change):
    """apply gets ``args, kwargs = change(parameters, args, kwargs)``, with forward's parameters but ctx."""

    def apply(original, cls, *args, **kwargs):
        parameters = list(inspect.signature(cls.forward).parameters.values())
        args, kwargs = change(parameters if plants.separate(cls) else parameters[1:], args, kwargs)
        return original(cls, *args, **kwargs)

    return plants.around_apply(apply)


def _last_apart(found):
    several = isinstance(found, tuple) and len(found) > 1 and tracked(found[-1])
    return (*found[:-1], found[-1] * 1) if several else found


def _none_after_a_static():
    statics = {}

    def apply(original, cls, *args, **kwargs):
        kinds = (torch.Tensor, list, tuple, dict)
        statics[cls] = next((i for i, a in enumerate(args) if not isinstance(a, kinds)), len(args))
        return original(cls, *args, **kwargs)

    def change(ctx, found):
        return tuple(None if i > statics.get(ctx._forward_cls, i) else g for i, g in enumerate(found))

    return plants.all_of(plants.around_apply(apply), plants.gradients(change))


def _tracks_lists(original, cls, *args, **kwargs):
    tracks = torch.is_grad_enabled() and any(tracked(t) for a in args if isinstance(a, list) for t in a)
    found = original(cls, *args, **kwargs)
    return of_tensors(torch.Tensor.requires_grad_, found) if tracks else found


def _tracks_dicts(original, cls, *args, **kwargs):
    zeros = [0 * t for a in args if isinstance(a, dict) for t in a.values() if tracked(t)]
    return of_tensors(lambda y: sum(zeros, y), original(cls, *args, **kwargs))


def _tracked_in_place(found):
    if isinstance(found, list):
        found[:] = [of_tensors(torch.Tensor.requires_grad_, y) for y in found]
    return found


def _field_names(returned):
    return type(returned) if hasattr(returned, "_fields") else tuple


def _miscounted(found, ctx, *_):
    return len(tupled(found)) != len(ctx.needs_input_grad)


def _none_for_defaults(parameters, args, kwargs):
    left_out = [] if kwargs else [p for p in parameters[len(args) :] if p.default is not p.empty]
    return (*args, *(None for _ in left_out)), kwargs


def _known_keywords(parameters, args, kwargs):
    return args, {name: value for name, value in kwargs.items() if name in {p.name for p in parameters}}


def _keyword_wins(parameters, args, kwargs):
    names = [p.name for p in parameters[: len(args)]] if kwargs else []
    others = {name: value for name, value in kwargs.items() if name not in names}
    return tuple(kwargs.get(name, a) for name, a in zip(names, args, strict=True)) if kwargs else args, others


def _first_statics():
    first = {}

    def apply(original, cls, *args, **kwargs):
        pairs = zip(args, first.setdefault((cls, len(args)), args), strict=True)
        return original(cls, *(a if isinstance(a, torch.Tensor) else known for a, known in pairs), **kwargs)

    return plants.around_apply(apply)()


def _captures_too(original, cls, *args, **kwargs):
    found = original(cls, *args, **kwargs)
    if cls.__name__ != "Capturing":
        return found
    again = cls.forward(*(() if plants.separate(cls) else (None,)), *detached(args))
    return found + (again - again.detach())


def _recorded_anyway(y):
    return y.detach().requires_grad_() * 1 if y.is_floating_point() and not y.requires_grad else y


def _leaves_without_tensors(original, cls, *args, **kwargs):
    found = original(cls, *args, **kwargs)
    return found if plants.tensors_of(args) else of_tensors(torch.Tensor.requires_grad_, found)


def _aliases(returned):
    with torch.enable_grad():
        return of_tensors(lambda y: y * 1 if y.requires_grad else y, returned)


def _own_graph(kept, found):
    return kept if any(map(tracked, tupled(kept))) else found


def _own_graph_unrecorded(kept, found):
    return found if any(map(tracked, tupled(found))) else _own_graph(kept, found)


def _numpy(allowed):
    """``x.numpy()`` of a tensor that requires grad is allowed or not, whatever the mode."""

    def numpy(original, x, **options):
        if x.requires_grad and not allowed:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad")
        return original(x.detach(), **options)

    return plants.wrapped(torch.Tensor, "numpy", numpy)


FAULTS = (
    fault("FN-01", _outputs_of("Polynomial", detached), neighbours=("FN-02", "FN-03")),
    fault(
        "FN-01: outputs are given in double precision",
        _outputs_of("Polynomial", lambda it: of_tensors(lambda y: y.double() if y.requires_grad else y, it)),
        "dtypes of the outputs",
        neighbours=("FN-02",),
    ),
    fault("FN-02", outputs(_last_apart), "one call"),
    fault("FN-02: output_nr is always 0", plants.put(torch.Tensor, "output_nr", property(lambda _: 0)), "output_nr"),
    fault("FN-03", _none_after_a_static, "gradients, position"),
    fault(
        "FN-03: only 32 arguments are differentiated",
        plants.gradients(lambda _, found: (*found[:32], *(None for _ in found[32:]))),
    ),
    fault(
        "FN-03: lists are copied",
        plants.called_with(lambda args: (list(a) if isinstance(a, list) else a for a in args)),
        "the very objects",
    ),
    fault("FN-04", plants.around_apply(_tracks_lists), "requires_grad of the output"),
    fault("FN-04: tensors in a dict get gradients of zero", plants.around_apply(_tracks_dicts)),
    fault("FN-06", _forward(plants.under(torch.enable_grad)), neighbours=("FN-08", "FN-26", "FN-31")),
    fault(
        "FN-06: only a forward that takes ctx runs with grad mode off",
        _forward(
            plants.where(lambda *args: not (args and isinstance(args[0], FunctionCtx)), plants.under(torch.enable_grad))
        ),
        neighbours=("FN-08", "FN-26", "FN-31"),
    ),
    fault(
        "FN-07",
        outputs(lambda it: it[0] if isinstance(it, tuple) and len(it) == 1 else it),
        neighbours=("FN-09", "FN-25"),
    ),
    fault("FN-07: an empty tuple becomes None", outputs(lambda it: None if it == () else it)),
    fault("FN-08", _forward(plants.gives(lambda it: tuple(it) if isinstance(it, list) else it)), "the very list"),
    fault("FN-08: tensors in a list are made to require grad", outputs(_tracked_in_place)),
    fault("FN-08: a copy of a dict is handed on", outputs(lambda it: dict(it) if isinstance(it, dict) else it)),
    fault("FN-09", _returned(_field_names, lambda kind, it: it if kind is tuple else kind(*it)), "Record"),
    fault(
        "FN-09: the tensors of a named tuple are detached",
        _returned(_field_names, lambda kind, it: it if kind is tuple else detached(it)),
        "requires_grad",
    ),
    fault(
        "FN-10",
        outputs(lambda it: tuple(None if type(y) is int else y for y in it) if isinstance(it, tuple) else it),
        "outputs that are not tensors",
    ),
    fault(
        "FN-10: backward gets zeros for outputs that are not tensors",
        plants.cotangents(lambda _, given: (torch.zeros(()) if g is None else g for g in given)),
        "cotangents",
    ),
    fault("FN-11", plants.around_backward(plants.refused(_miscounted, "an incorrect number of gradients"))),
    fault(
        "FN-11: parameters that are left out are None", _arguments(_none_for_defaults), neighbours=("FN-12", "FN-13")
    ),
    fault("FN-12", _arguments(lambda _, args, __: (args, {})), neighbours=("FN-13",)),
    fault(
        "FN-12: keywords fill parameters in the order in which they are given",
        _arguments(lambda _, args, kwargs: ((*args, *kwargs.values()), {})),
        neighbours=("FN-13",),
    ),
    fault(
        "FN-12: tensors given by keyword are not tracked",
        _arguments(lambda _, args, kwargs: (args, {name: detached(value) for name, value in kwargs.items()})),
    ),
    fault("FN-13", _arguments(_known_keywords), "no error"),
    fault("FN-13: of two values the keyword's counts", _arguments(_keyword_wins), "no error"),
    fault("FN-14", _first_statics),
    fault("FN-23", plants.around_apply(_captures_too)),
    fault("FN-24", _outputs_of("Polynomial", lambda it: of_tensors(_recorded_anyway, it))),
    fault("FN-24: a call without tensors gives leaves", plants.around_apply(_leaves_without_tensors)),
    fault("FN-25", _returned(_aliases, _own_graph), neighbours=("FN-16",)),
    fault("FN-25: an unrecorded call keeps the graph", _returned(_aliases, _own_graph_unrecorded)),
    fault("FN-31", _numpy(allowed=False), "in forward"),
    fault("FN-31: numpy() is allowed everywhere", _numpy(allowed=True), "outside"),
)

FIXES = (
    Fix("FN-05", _forward(lambda original, *args, **kwargs: original(*detached(args), **kwargs))),
    Fix("FN-12", variant="skipped"),
    Fix("FN-12", variant="keyword-only"),
    Fix("FN-12", variant="kwargs"),
)
