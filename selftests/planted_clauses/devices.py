"""Faults of devices, as far as they can be planted without an accelerator."""

from __future__ import annotations

import torch

from autograd_conformance.selftests import plants
from autograd_conformance.selftests.planting import fault


def _left_where_they_are():
    returned = []

    def note(_, found):
        returned[:] = found
        return found

    given_back = plants.wrapped(torch.autograd, "grad", plants.gives(lambda _: tuple(returned)))
    return plants.all_of(plants.gradients(note), given_back)


def _moves_everything(original, ctx, *cotangents):
    (g,) = plants.tupled(original(ctx, *cotangents))
    return g.to(cotangents[0].device)


FAULTS = (
    fault("DEV-01", _left_where_they_are, "device of a gradient"),
    fault(
        "DEV-01: gradients of any shape move to another device",
        plants.around_backward(_moves_everything),
        "not a scalar",
    ),
)
