"""Faults of compiled transforms, changes in place, outputs that share memory, hooks and repeated runs."""

from __future__ import annotations

import torch

from autograd_conformance.selftests import plants
from autograd_conformance.selftests.planted_clauses.compile import COMPOSITE, compiled, compiled_as
from autograd_conformance.selftests.planted_clauses.definitions import Fix
from autograd_conformance.selftests.planting import fault


def _keeps_one_cotangent():
    """Of several cotangents backward gets the first, and zeros for the others."""
    zeros = plants.cotangents(lambda _, given: (given[0], *map(torch.zeros_like, given[1:])))
    return plants.all_of(compiled_as, zeros)


def _shares_what_is_saved():
    """Every ctx has the saved tensors of the last one."""
    last = []

    def save(original, ctx, *tensors):
        original(ctx, *tensors)
        last[:] = tensors

    reads = plants.ctx_attribute("saved_tensors", lambda *_: tuple(last))
    return plants.all_of(compiled_as, plants.ctx_method("save_for_backward", save), reads)


FAULTS = (
    fault("COMPILE-11", compiled(COMPOSITE)),
    fault("COMPILE-12", compiled(plants.put(torch.Tensor, "__iadd__", lambda x, _: x))),
    fault("COMPILE-13", _keeps_one_cotangent, "share memory"),
    fault("COMPILE-14", compiled(plants.ctx_method("set_materialize_grads", lambda *_: None)), "unused"),
    fault("COMPILE-15", _shares_what_is_saved),
    fault(
        "COMPILE-15: compiled code drops hooks",
        compiled(plants.put(torch.Tensor, "register_hook", lambda *_: None)),
        "gradient of compiled code",
    ),
)

FIXES = (
    *(Fix("COMPILE-11", compiled_as, variant=variant) for variant in ("grad", "jvp", "mapped")),
    Fix("COMPILE-12", compiled_as, variant="saved"),
    *(Fix("COMPILE-13", compiled_as, variant=variant) for variant in ("twice", "view")),
    Fix("COMPILE-14", compiled_as),
)
