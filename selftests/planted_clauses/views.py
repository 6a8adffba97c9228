"""Faults of outputs that are views."""

from __future__ import annotations

import torch

from autograd_conformance.selftests import plants
from autograd_conformance.selftests.planted_clauses.inplace import with_outputs
from autograd_conformance.selftests.planting import fault
from autograd_conformance.selftests.plants import among, tensors_of, tupled


@plants.anew
def _with_returned(change):
    """Each output becomes ``change(output, the argument that forward returned as it, arguments)``."""
    returned = []

    def note(_, arguments, outputs):
        known = tensors_of(arguments)
        returned.append([next((x for x in known if x is y), None) for y in tupled(outputs)])

    def changed(output, position, arguments):
        return change(output, returned[-1][position], arguments)

    return plants.all_of(plants.after_forward(note), with_outputs(changed))


def _of_returned(change):
    """An output that is an argument becomes ``change(output, argument)``."""
    return _with_returned(lambda y, source, _: y if source is None else change(y, source))


def _of_views(change):
    """An output that is a view of an argument, but not the argument, becomes ``change(output, argument)``."""

    def changed(output, source, arguments):
        seen = _seen(output, arguments)
        return output if source is not None or not seen else change(output, seen[0])

    return _with_returned(changed)


def _seen(output, arguments):
    """The arguments that the output is a view of."""
    return [x for x in arguments if output._is_view() and output._base is (x._base if x._is_view() else x)]


class _Copied(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()[...]

    @staticmethod
    def backward(ctx, cotangent):
        return cotangent


def _protects_the_first(outputs):
    views = [y for y in tensors_of(tupled(outputs)) if y._is_view()]
    return tuple(y.clone() if among(views[1:], y) else y for y in outputs) if len(views) > 1 else outputs


FAULTS = (
    fault("VIEW-01", _of_returned(lambda y, x: x if x.requires_grad else y), neighbours=("VIEW-02", "VIEW-05")),
    fault("VIEW-01: a leaf comes back as itself", _of_returned(lambda y, x: x if x.requires_grad and x.is_leaf else y)),
    fault(
        "VIEW-01: a returned input comes back as an ordinary view",
        _of_returned(lambda y, x: x.view_as(x) if x.requires_grad else y),
        neighbours=("VIEW-05",),
    ),
    fault("VIEW-02", _of_returned(lambda y, x: y if x.requires_grad else x), neighbours=("VIEW-05",)),
    fault(
        "VIEW-02: a returned input comes back as a copy",
        _of_returned(lambda y, x: y if x.requires_grad else y.clone()),
        neighbours=("VIEW-05",),
    ),
    fault(
        "VIEW-03",
        _of_views(lambda y, x: x.as_strided(y.size(), y.stride(), y.storage_offset())),
        neighbours=("VIEW-05",),
    ),
    fault(
        "VIEW-03: changes of the base go unnoticed",
        _of_views(lambda y, _: super(torch.autograd.Function, _Copied).apply(y)),
        neighbours=("VIEW-05",),
    ),
    fault(
        "VIEW-04",
        with_outputs(lambda y, _, arguments: y.clone() if y._is_view() and not _seen(y, arguments) else y),
        neighbours=("VIEW-05",),
    ),
    fault("VIEW-05", plants.outputs(_protects_the_first), neighbours=("VIEW-02",)),
)
