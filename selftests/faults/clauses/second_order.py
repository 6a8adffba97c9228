"""Faults of derivatives of derivatives."""

from __future__ import annotations

import torch

from autograd_conformance.selftests.faults import plants
from autograd_conformance.selftests.faults.clauses.definitions import Fix
from autograd_conformance.selftests.faults.clauses.saving import own_detached, reading
from autograd_conformance.selftests.faults.planting import fault
from autograd_conformance.selftests.faults.plants import around_backward, detached


def _heeds_the_caller():
    modes = [True]

    def grad(original, *args, **options):
        modes.append(torch.is_grad_enabled())
        try:
            return original(*args, **options)
        finally:
            modes.pop()

    mode = plants.recording_if(lambda: modes[-1] and torch.is_grad_enabled())
    return plants.all_of(plants.wrapped(torch.autograd, "grad", grad), around_backward(plants.under(mode)))


def _off_in_backward():
    accumulates = [False]

    def engine(run, outputs, cotangents, inputs, accumulate):
        accumulates.append(accumulate)
        try:
            return run(outputs, cotangents, inputs)
        finally:
            accumulates.pop()

    mode = plants.recording_if(lambda: torch.is_grad_enabled() and not accumulates[-1])
    return plants.all_of(plants.around_engine(engine), around_backward(plants.under(mode)))


def _of_separate(ctx, x):
    return own_detached(ctx, x) if plants.separate(ctx._forward_cls) else x


def _refuses_intermediates(ctx, x):
    if x.grad_fn is not ctx and not x.requires_grad:
        raise RuntimeError("a saved tensor is neither an input nor an output")
    return x


def _first_alone(_, given):
    return given[0], *(g if g is None else torch.zeros_like(g) for g in given[1:])


@plants.anew
def _within_backward(method):
    """``F.apply(*args)`` is ``method(original, F, *args)`` if a backward calls it."""
    running, noted = plants.noting(around_backward)
    return plants.all_of(noted, plants.around_apply(plants.where(lambda *_: running, method)))


def _of_constants(original, cls, *args, **kwargs):
    """Only the first argument keeps its history."""
    return original(cls, *args[:1], *detached(args[1:]), **kwargs)


def _all_require_grad(ctx, found):
    if not torch.is_grad_enabled():
        return found
    return tuple(g if g is None or g.requires_grad else g.detach().requires_grad_() for g in found)


def _none_requires_grad(_, found):
    """A backward one of whose gradients has no history gives no gradient a history."""
    return found if all(g is None or g.requires_grad for g in found) else detached(found)


def _cotangents_recorded(change):
    return plants.cotangents(lambda ctx, given: change(ctx, given) if torch.is_grad_enabled() else given)


_RECORDS_FORWARD = plants.around_static("forward", plants.under(torch.enable_grad))

FAULTS = (
    fault("DBL-01", _heeds_the_caller),
    fault("DBL-01: grad mode is always on in backward", around_backward(plants.under(torch.enable_grad))),
    fault("DBL-02", reading(own_detached), neighbours=("DBL-04",)),
    fault("DBL-01: backward with create_graph runs with grad mode off", _off_in_backward),
    fault("DBL-02: an output saved in setup_context has no history", reading(_of_separate), neighbours=("DBL-04",)),
    fault(
        "DBL-02: cotangents arrive without a history",
        plants.cotangents(lambda _, given: detached(given)),
        neighbours=("DBL-04", "DBL-05"),
    ),
    fault("DBL-03", _RECORDS_FORWARD, neighbours=("DBL-05",)),
    fault("DBL-03: saving an intermediate raises", reading(_refuses_intermediates), neighbours=("DBL-06",)),
    fault("DBL-04", _cotangents_recorded(_first_alone), neighbours=("DBL-07",)),
    fault(
        "DBL-04: further cotangents arrive without a history",
        plants.cotangents(lambda _, given: (*given[:1], *detached(given[1:]))),
    ),
    fault("DBL-05", _RECORDS_FORWARD, neighbours=("DBL-03",)),
    fault("DBL-06", _within_backward(plants.under(torch.no_grad))),
    fault(
        "DBL-06: a Function called within a backward sees the saved tensors as constants",
        _within_backward(_of_constants),
    ),
    fault("DBL-07", plants.gradients(_all_require_grad), neighbours=("DBL-01", "DBL-03")),
    fault(
        "DBL-07: one gradient without a history takes it from all",
        plants.gradients(_none_requires_grad),
        neighbours=("DBL-01",),
    ),
)

FIXES = (Fix("DBL-05", plants.set_on_ctx(lambda assign, ctx, name, value: assign(ctx, name, detached(value)))),)
