"""Faults of ctx.needs_input_grad."""

from __future__ import annotations

import torch

from autograd_conformance.selftests import plants
from autograd_conformance.selftests.planted_clauses.definitions import Fix
from autograd_conformance.selftests.planting import fault


def _flags(change):
    """ctx.needs_input_grad is ``change(ctx, what it is)``."""
    return plants.ctx_attribute("needs_input_grad", change)


def _pads_defaults(original, cls, *args):
    return original(cls, *args, *([None] * (4 - len(args)) if cls.__name__ == "Defaults" else []))


def _heeds_the_mode():
    modes = []

    def note(args):
        modes.append(torch.is_grad_enabled())
        return args

    return plants.all_of(plants.called_with(note), _flags(lambda _, it: tuple(f and modes[-1] for f in it)))


@plants.anew
def _heeds_arguments(change):
    """The flag of an argument is ``change(position, argument, arguments)`` if it was True."""
    known = []

    def note(args):
        known[:] = args
        return args

    def flags(_, it):
        if len(it) != len(known):
            return it
        return tuple(f and change(i, x, known) for i, (f, x) in enumerate(zip(it, known, strict=True)))

    return plants.all_of(plants.called_with(note), _flags(flags))


def _rejects_unneeded(ctx, found):
    if any(g is not None and not need for g, need in zip(found, ctx.needs_input_grad, strict=True)):
        raise RuntimeError("a gradient was returned that is not needed")
    return found


@plants.anew
def _knowing_what_is_wanted(change):
    """Once grad was called the flags are ``change(ctx, what they are, the inputs of the last grad)``."""
    wanted = []

    def grad(original, outputs, inputs, *args, **options):
        wanted[:] = inputs
        return original(outputs, inputs, *args, **options)

    return plants.all_of(plants.around_grad(grad), _flags(lambda ctx, it: change(ctx, it, wanted) if wanted else it))


def _says_what_is_wanted(ctx, _, wanted):
    leaves = [getattr(node, "variable", None) for node, _ in ctx.next_functions]
    return tuple(plants.among(wanted, leaf) for leaf in leaves)


def _forgets_partial_passes(ctx, it, wanted):
    return (False,) * len(it) if ctx.saved_tensors and len(wanted) < sum(it) else it


_OTHERS = plants.numbers("NIG", 2, 3, 4, 5, 6)

FAULTS = (
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
    fault("NIG-07", plants.gradients(_rejects_unneeded)),
)

FIXES = (Fix("NIG-06", _knowing_what_is_wanted(_says_what_is_wanted)),)
