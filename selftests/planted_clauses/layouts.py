"""Faults of the memory layout of cotangents, gradients and .grad."""

from __future__ import annotations

import torch

from autograd_conformance.selftests import plants
from autograd_conformance.selftests.planting import fault
from autograd_conformance.selftests.plants import leaves_of

HALF = (torch.float16, torch.bfloat16)


def _seen(change):
    """Backward sees ``change(it)`` of each cotangent that is not sparse."""
    return plants.each_cotangent(lambda g: change(g) if g.layout == torch.strided else g)


def _copied_if(which):
    return _seen(lambda g: g.contiguous() if which(g) else g)


def _copied_like(g, like):
    return torch.empty_strided(g.shape, like.stride(), dtype=g.dtype, device=g.device).copy_(g)


def _grads(before=lambda x: x.grad, after=lambda x, _: x.grad):
    """``.grad`` of each leaf x is ``before(x)`` when backward starts, and ``after(x, .grad before)`` when it ends."""

    def engine(run, outputs, cotangents, inputs, accumulate):
        leaves = [(x, x.grad) for x in leaves_of(outputs)] if accumulate else []
        for x, _ in leaves:
            x.grad = before(x)
        found = run(outputs, cotangents, inputs)
        for x, grad in leaves:
            x.grad = after(x, grad)
        return found

    return plants.around_engine(engine)


def _always_row_major(x, grad):
    return x.grad.contiguous() if grad is None and x.grad is not None else x.grad


def _like_the_leaf(x, grad):
    """Leaves that are not dense keep their strides too, where no two elements of them lie in one place."""
    return _copied_like(x.grad, x) if grad is None and x.grad is not None and 0 not in x.stride() else x.grad


def _in_place(x, grad):
    return x.grad if grad is None or x.grad is grad else grad.copy_(x.grad)


def _returned(change):
    """What grad gives is ``change(gradient, input)``."""

    def engine(run, outputs, cotangents, inputs, accumulate):
        found = run(outputs, cotangents, inputs)
        pairs = zip(found or (), inputs, strict=False)
        return found if accumulate else tuple(g if g is None else change(g, x) for g, x in pairs)

    return plants.around_engine(engine)


FAULTS = (
    fault("LAYOUT-01", _copied_if(lambda _: True), "strides that backward sees"),
    fault("LAYOUT-01: expanded ones are copied", _copied_if(lambda g: 0 in g.stride())),
    fault("LAYOUT-01: vectors are copied", _copied_if(lambda g: g.dim() == 1)),
    fault("LAYOUT-01: copied in half precision alone", _copied_if(lambda g: g.dtype in HALF)),
    fault("LAYOUT-01: copied under create_graph", _copied_if(lambda _: torch.is_grad_enabled())),
    fault(
        "LAYOUT-02",
        _seen(lambda g: g.double() if g.dtype in HALF else g),
        "shape, dtype and device of the cotangents",
        neighbours=("LAYOUT-01",),
    ),
    fault(
        "LAYOUT-02: scalars come with one dimension",
        _seen(lambda g: g.reshape(1) if g.shape == () else g),
        neighbours=("LAYOUT-01",),
    ),
    fault("LAYOUT-03", _grads(after=_always_row_major), "strides of .grad"),
    fault("LAYOUT-03: leaves with gaps give gradients with gaps", _grads(after=_like_the_leaf)),
    fault(
        "LAYOUT-03: each pass replaces .grad",
        _grads(before=lambda x: None if x.grad is None else x.grad.clone()),
        neighbours=("LAYOUT-04",),
    ),
    fault("LAYOUT-04", _grads(after=_in_place), "identity of .grad"),
    fault(
        "LAYOUT-04: the new .grad has no history",
        _grads(after=lambda x, _: x.grad.detach() if plants.tracked(x.grad) else x.grad),
    ),
    fault(
        "LAYOUT-05",
        _returned(lambda g, x: g if 0 in x.stride() else _copied_like(g, x)),
        "strides of what grad returns",
    ),
    fault("LAYOUT-05: expanded gradients are copied", _returned(lambda g, _: g.contiguous() if 0 in g.stride() else g)),
)
