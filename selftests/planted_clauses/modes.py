"""Faults of no_grad and inference_mode."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd import forward_ad

from autograd_conformance.selftests.planted_clauses.definitions import Fix
from autograd_conformance.selftests.planted_clauses.intercept import around_apply
from autograd_conformance.selftests.planting import Fault


def _records(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
    with torch.enable_grad():
        return original(cls, *args, **kwargs)


def _records_results(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Under no_grad a call is recorded if an argument has a history."""
    history = any(isinstance(x, torch.Tensor) and x.grad_fn is not None for x in args)
    with torch.set_grad_enabled(torch.is_grad_enabled() or history):
        return original(cls, *args, **kwargs)


def _flags_outputs(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Outputs under no_grad require grad if an argument does, though they have no node."""
    outputs = original(cls, *args, **kwargs)
    flag = any(isinstance(x, torch.Tensor) and x.requires_grad for x in args)
    for y in outputs if isinstance(outputs, tuple) else (outputs,):
        if flag and isinstance(y, torch.Tensor) and y.is_floating_point() and not y.is_inference():
            y.requires_grad_()
    return outputs


def _leaves_inference_mode(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
    grad_mode = torch.is_grad_enabled()
    with torch.inference_mode(False), torch.set_grad_enabled(grad_mode):
        return original(cls, *args, **kwargs)


def _leaves_it_without_leaves(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
    tracked = any(isinstance(x, torch.Tensor) and x.requires_grad for x in args)
    return (_plain if tracked else _leaves_inference_mode)(original, cls, *args, **kwargs)


def _records_nothing_in_inference_mode(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
    with torch.set_grad_enabled(torch.is_grad_enabled() and not torch.is_inference_mode_enabled()):
        return original(cls, *args, **kwargs)


def _plain(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
    return original(cls, *args, **kwargs)


def _refuses_inference_tensors(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
    tensors = [x for x in args if isinstance(x, torch.Tensor)]
    if torch.is_grad_enabled() and any(x.requires_grad for x in tensors) and any(x.is_inference() for x in tensors):
        raise RuntimeError("inference tensors cannot be used in a recorded call")
    return original(cls, *args, **kwargs)


def _is_corrupted_by_inference_tensors(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
    corrupted = any(isinstance(x, torch.Tensor) and x.is_inference() for x in args)
    with torch.set_grad_enabled(torch.is_grad_enabled() and not corrupted):
        return original(cls, *args, **kwargs)


def _no_forward_mode(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
    with forward_ad._set_fwd_grad_enabled(torch.is_grad_enabled()):
        return original(cls, *args, **kwargs)


def _moving(args: Any) -> bool:
    if forward_ad._current_level < 0:
        return False
    with torch.inference_mode(False):
        tensors = [x for x in args if isinstance(x, torch.Tensor)]
        return any(forward_ad.unpack_dual(x).tangent is not None for x in tensors)


def _forward_mode_always(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
    return (_leaves_inference_mode if _moving(args) else _plain)(original, cls, *args, **kwargs)


FAULTS = (
    Fault("MODE-01", lambda: around_apply(_records), neighbours=("MODE-02", "MODE-05")),
    Fault(
        "MODE-01",
        lambda: around_apply(_flags_outputs),
        neighbours=("MODE-05",),
        words="outputs under no_grad keep the flag",
    ),
    Fault("MODE-01", lambda: around_apply(_records_results), words="what has a history is recorded anyway"),
    Fault("MODE-02", lambda: around_apply(_leaves_inference_mode), neighbours=("MODE-04",)),
    Fault(
        "MODE-02",
        lambda: around_apply(_leaves_it_without_leaves),
        neighbours=("MODE-04",),
        words="calls without an input that requires grad leave inference mode",
    ),
    Fault("MODE-03", lambda: around_apply(_refuses_inference_tensors)),
    Fault(
        "MODE-03",
        lambda: around_apply(_is_corrupted_by_inference_tensors),
        words="a call with an inference tensor is not recorded",
    ),
    Fault("MODE-04", lambda: around_apply(_no_forward_mode)),
    Fault("MODE-04", lambda: around_apply(_forward_mode_always), words="forward mode works under inference_mode"),
)

FIXES = (Fix("MODE-02", lambda: around_apply(_records_nothing_in_inference_mode), variant="enable_grad"),)
