"""Faults of no_grad and inference_mode."""

from __future__ import annotations

import torch
from torch.autograd import forward_ad

from autograd_conformance.selftests import plants
from autograd_conformance.selftests.planted_clauses.definitions import Fix
from autograd_conformance.selftests.planting import fault
from autograd_conformance.selftests.plants import tensors_of, tracked


def _recording_if(on):
    """A call is recorded where ``on(its tensors)``."""

    def apply(original, cls, *args, **options):
        with torch.set_grad_enabled(bool(on(tensors_of(args)))):
            return original(cls, *args, **options)

    return plants.around_apply(apply)


def _flags_outputs(original, cls, *args, **options):
    """Outputs under no_grad require grad if an argument does, though they have no node."""
    outputs = original(cls, *args, **options)
    for y in tensors_of(plants.tupled(outputs)) if any(map(tracked, args)) else ():
        if y.is_floating_point() and not y.is_inference():
            y.requires_grad_()
    return outputs


def _leaves_inference_mode(original, cls, *args, **options):
    grad_mode = torch.is_grad_enabled()
    with torch.inference_mode(False), torch.set_grad_enabled(grad_mode):
        return original(cls, *args, **options)


def _refuses_inference_tensors(original, cls, *args, **options):
    recorded = torch.is_grad_enabled() and any(map(tracked, args))
    if recorded and any(x.is_inference() for x in tensors_of(args)):
        raise RuntimeError("inference tensors cannot be used in a recorded call")
    return original(cls, *args, **options)


def _moving(_, *args):
    if forward_ad._current_level < 0:
        return False
    with torch.inference_mode(False):
        return any(forward_ad.unpack_dual(x).tangent is not None for x in tensors_of(args))


FAULTS = (
    fault("MODE-01", _recording_if(lambda _: True), neighbours=("MODE-02", "MODE-05")),
    fault("MODE-01: outputs under no_grad keep the flag", plants.around_apply(_flags_outputs), neighbours=("MODE-05",)),
    fault(
        "MODE-01: what has a history is recorded anyway",
        _recording_if(lambda given: torch.is_grad_enabled() or any(x.grad_fn is not None for x in given)),
    ),
    fault("MODE-02", plants.around_apply(_leaves_inference_mode), neighbours=("MODE-04",)),
    fault(
        "MODE-02: calls without an input that requires grad leave inference mode",
        plants.around_apply(plants.where(lambda _, *args: not any(map(tracked, args)), _leaves_inference_mode)),
        neighbours=("MODE-04",),
    ),
    fault("MODE-03", plants.around_apply(_refuses_inference_tensors)),
    fault(
        "MODE-03: a call with an inference tensor is not recorded",
        _recording_if(lambda given: torch.is_grad_enabled() and not any(x.is_inference() for x in given)),
    ),
    fault(
        "MODE-04", plants.around_apply(plants.under(lambda: forward_ad._set_fwd_grad_enabled(torch.is_grad_enabled())))
    ),
    fault(
        "MODE-04: forward mode works under inference_mode",
        plants.around_apply(plants.where(_moving, _leaves_inference_mode)),
    ),
)

FIXES = (
    Fix(
        "MODE-02",
        _recording_if(lambda _: torch.is_grad_enabled() and not torch.is_inference_mode_enabled()),
        variant="enable_grad",
    ),
)
