"""Faults of the memory layout of cotangents, gradients and .grad."""

from __future__ import annotations

from typing import Any

import torch

from autograd_conformance.selftests.planted_clauses.engine import around_engine, leaves_of
from autograd_conformance.selftests.planted_clauses.intercept import around_backward
from autograd_conformance.selftests.planting import Fault

HALF = (torch.float16, torch.bfloat16)


def _seen(change: Any) -> Any:
    """Backward sees ``change(it)`` of each cotangent."""
    return around_backward(
        lambda original, ctx, *given: original(
            ctx, *(change(g) if isinstance(g, torch.Tensor) and g.layout == torch.strided else g for g in given)
        )
    )


def _copied_like(g: Any, like: Any) -> Any:
    return torch.empty_strided(g.shape, like.stride(), dtype=g.dtype, device=g.device).copy_(g)


def _always_row_major(run: Any, outputs: Any, cotangents: Any, inputs: Any, accumulate: bool) -> Any:
    fresh = [x for x in leaves_of(outputs) if accumulate and x.grad is None]
    found = run(outputs, cotangents, inputs)
    for x in fresh:
        x.grad = None if x.grad is None else x.grad.contiguous()
    return found


def _like_the_leaf(run: Any, outputs: Any, cotangents: Any, inputs: Any, accumulate: bool) -> Any:
    """Leaves that are not dense keep their strides too, where no two elements of them lie in one place."""
    fresh = [x for x in leaves_of(outputs) if accumulate and x.grad is None]
    found = run(outputs, cotangents, inputs)
    for x in fresh:
        if x.grad is not None and 0 not in x.stride():
            x.grad = _copied_like(x.grad, x)
    return found


def _replaces(run: Any, outputs: Any, cotangents: Any, inputs: Any, accumulate: bool) -> Any:
    if accumulate:
        for x in leaves_of(outputs):
            x.grad = None if x.grad is None else x.grad.clone()
    return run(outputs, cotangents, inputs)


def _in_place(run: Any, outputs: Any, cotangents: Any, inputs: Any, accumulate: bool) -> Any:
    before = [(x, x.grad) for x in leaves_of(outputs) if accumulate and x.grad is not None]
    found = run(outputs, cotangents, inputs)
    for x, grad in before:
        if x.grad is not grad:
            grad.copy_(x.grad)
            x.grad = grad
    return found


def _without_history(run: Any, outputs: Any, cotangents: Any, inputs: Any, accumulate: bool) -> Any:
    found = run(outputs, cotangents, inputs)
    for x in leaves_of(outputs) if accumulate else ():
        x.grad = x.grad.detach() if x.grad is not None and x.grad.requires_grad else x.grad
    return found


def _laid_out(run: Any, outputs: Any, cotangents: Any, inputs: Any, accumulate: bool) -> Any:
    found = run(outputs, cotangents, inputs)
    if accumulate:
        return found
    pairs = zip(found, inputs, strict=True)
    return tuple(g if g is None or 0 in x.stride() else _copied_like(g, x) for g, x in pairs)


def _dense(run: Any, outputs: Any, cotangents: Any, inputs: Any, accumulate: bool) -> Any:
    found = run(outputs, cotangents, inputs)
    return found if accumulate else tuple(g.contiguous() if g is not None and 0 in g.stride() else g for g in found)


FAULTS = (
    Fault("LAYOUT-01", lambda: _seen(lambda g: g.contiguous()), says=("strides that backward sees",)),
    Fault(
        "LAYOUT-01", lambda: _seen(lambda g: g.contiguous() if 0 in g.stride() else g), words="expanded ones are copied"
    ),
    Fault("LAYOUT-01", lambda: _seen(lambda g: g.contiguous() if g.dim() == 1 else g), words="vectors are copied"),
    Fault(
        "LAYOUT-01",
        lambda: _seen(lambda g: g.contiguous() if g.dtype in HALF else g),
        words="copied in half precision alone",
    ),
    Fault(
        "LAYOUT-01",
        lambda: _seen(lambda g: g.contiguous() if torch.is_grad_enabled() else g),
        words="copied under create_graph",
    ),
    Fault(
        "LAYOUT-02",
        lambda: _seen(lambda g: g.double() if g.dtype in HALF else g),
        says=("shape, dtype and device of the cotangents",),
        neighbours=("LAYOUT-01",),
    ),
    Fault(
        "LAYOUT-02",
        lambda: _seen(lambda g: g.reshape(1) if g.shape == () else g),
        neighbours=("LAYOUT-01",),
        words="scalars come with one dimension",
    ),
    Fault("LAYOUT-03", lambda: around_engine(_always_row_major), says=("strides of .grad",)),
    Fault("LAYOUT-03", lambda: around_engine(_like_the_leaf), words="leaves with gaps give gradients with gaps"),
    Fault("LAYOUT-03", lambda: around_engine(_replaces), words="each pass replaces .grad", neighbours=("LAYOUT-04",)),
    Fault("LAYOUT-04", lambda: around_engine(_in_place), says=("identity of .grad",)),
    Fault("LAYOUT-04", lambda: around_engine(_without_history), words="the new .grad has no history"),
    Fault("LAYOUT-05", lambda: around_engine(_laid_out), says=("strides of what grad returns",)),
    Fault("LAYOUT-05", lambda: around_engine(_dense), words="expanded gradients are copied"),
)
