"""Faults of the gradients that backward gets and returns."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch

from autograd_conformance.selftests.faults import plants
from autograd_conformance.selftests.faults.clauses.definitions import Fix
from autograd_conformance.selftests.faults.planting import fault

# Generated Functions have tensors of one shape, so that a cotangent has the shape, dtype and device of the inputs.


def _cotangent(given):
    return next(g for g in given if isinstance(g, torch.Tensor) and g.is_floating_point())


def _needed(change):
    """Each value that backward returned for an input that requires grad is ``change(it, a cotangent)``."""

    def backward(original, ctx, *given):
        found = plants.tupled(original(ctx, *given))
        # Values that are too many or too few are left to the checks of torch.
        needs = (*ctx.needs_input_grad, *(False for _ in found))
        return tuple(change(g, _cotangent(given)) if need else g for g, need in zip(found, needs, strict=False))

    return plants.around_backward(backward)


def _tensors(change):
    return _needed(lambda g, like: change(g, like) if isinstance(g, torch.Tensor) else g)


def _refusing(wrong, said):
    """A backward that raises if ``wrong(gradient, cotangent)`` of one that is not needed."""

    def backward(original, ctx, *given):
        found = original(ctx, *given)
        if _full(ctx, found):
            pairs = zip(found, ctx.needs_input_grad, strict=True)
            if any(wrong(g, _cotangent(given)) for g, need in pairs if isinstance(g, torch.Tensor) and not need):
                raise RuntimeError(f"a gradient has the wrong {said}")
        return found

    return backward


_checks_shapes = _refusing(lambda g, like: g.shape != like.shape, "shape")


def _full(ctx, found):
    return isinstance(found, tuple) and len(found) == len(ctx.needs_input_grad)


def _pads(original, ctx, *given):
    found = original(ctx, *given)
    return (*found, *(None for _ in ctx.needs_input_grad[len(found) :])) if isinstance(found, tuple) else found


def _takes_lists(original, ctx, *given):
    found = original(ctx, *given)
    return tuple(found) if isinstance(found, list) else found


def _pads_what_is_not_needed(ctx, found):
    absent = ctx.needs_input_grad[len(found) :]
    return found if any(absent) else (*found, *(None for _ in absent))


def _bare_is_the_first(original, ctx, *given):
    found = original(ctx, *given)
    return found if isinstance(found, tuple | list) else (found, *(None for _ in ctx.needs_input_grad[1:]))


def _drops_extra(which):
    """Values that are too many are dropped if each is None or such."""

    def change(ctx, found):
        count = len(ctx.needs_input_grad)
        return found[:count] if all(g is None or which(g) for g in found[count:]) else found

    return plants.gradients(change)


def _drops_unneeded(ctx, found):
    needs = ctx.needs_input_grad
    if len(found) < len(needs):
        return found
    return (*(g if need else None for g, need in zip(found, needs, strict=False)), *found[len(needs) :])


def _drops_zeros(ctx, found):
    return tuple(None if isinstance(g, int) and g == 0 else g for g in found) if _full(ctx, found) else found


def _first_slice(g, like):
    while g.dim() > like.dim() and g.numel():
        g = g[0]
    for axis in range(like.dim() if g.dim() == like.dim() and g.numel() else 0):
        g = g.narrow(axis, 0, 1) if like.shape[axis] == 1 < g.shape[axis] else g
    return g


def _sums_leading_alone(g, like):
    return _first_slice(g.sum_to_size(g.shape[-like.dim() :]), like) if g.dim() > like.dim() > 0 else g


def _expanded(g, like):
    pairs = zip(reversed(g.shape), reversed(like.shape), strict=False)
    fits = g.dim() <= like.dim() and all(n in (1, m) for n, m in pairs)
    return g.expand(like.shape) if fits and g.shape != like.shape else g


def _of_arrays(g, like):
    fits = isinstance(g, np.ndarray) and g.shape == tuple(like.shape)
    return torch.as_tensor(g, dtype=like.dtype) if fits else g


def _flattened(g, like):
    fits = g.numel() == like.numel() and g.dim() <= like.dim() and g.shape != like.shape
    return g.reshape(like.shape) if fits else g


def _keeps_dtypes():
    returned = []

    def note(g, _):
        returned.append(g.dtype)
        return g

    def grad(original, *args, **options):
        returned.clear()
        found = original(*args, **options)
        if len(returned) != sum(g is not None for g in found):
            return found
        kinds = iter(returned)
        return tuple(g if g is None else g.to(next(kinds)) for g in found)

    return plants.all_of(_tensors(note), plants.around_grad(grad))


def _refuses_bool(g, _):
    if g.dtype == torch.bool:
        raise RuntimeError("bool gradients are not supported")
    return g


def _real(g, like):
    return g.real if g.is_complex() and not like.is_complex() else g


def _moved(g, like):
    return g if g.device == like.device else torch.zeros_like(g, device=like.device)


def _after(change, backward_only=True):
    """``change(outputs, cotangents)`` follows each pass."""

    def engine(run, outputs, cotangents, inputs, accumulate):
        found = run(outputs, cotangents, inputs)
        if accumulate or not backward_only:
            with torch.no_grad():
                change(outputs, cotangents)
        return found

    return plants.around_engine(engine)


def _repeated_incremented(_, given):
    for i, g in enumerate(given):
        if plants.among(given[:i], g):
            g += 1


def _repeated_summed(outputs, given):
    for i, y in enumerate(outputs):
        for j in range(i + 1, len(outputs)):
            if outputs[j] is y:
                given[i].add_(given[j])


def _alike(a, b):
    strided = a.layout == b.layout == torch.strided
    return strided and a.shape == b.shape and a.dtype == b.dtype and torch.equal(a, b)


def _shared_if(which):
    """Leaves with the same gradient share it, if they are such."""

    def change(outputs, _):
        for a, b in pairwise(x for x in plants.leaves_of(outputs) if x.grad is not None and which(x)):
            if _alike(a.grad, b.grad):
                b.grad = a.grad

    return _after(change)


def _kept_as_grad(outputs, given):
    for x in plants.leaves_of(outputs):
        for g in given:
            if x.grad is not None and _alike(x.grad, g):
                x.grad = g


def _detached_if(which):
    """apply gets an argument detached if it is a tensor and ``which(earlier, later)`` counts it among the others."""

    def change(args):
        others = [
            (sum(a is b for b in plants.tensors_of(args[:i])), sum(a is b for b in plants.tensors_of(args[i + 1 :])))
            for i, a in enumerate(args)
        ]
        return (a.detach() if which(*n) else a for a, n in zip(args, others, strict=True))

    return plants.called_with(change)


def _none_for_one_is_none_for_all():
    uses = {}

    def apply(original, cls, *args):
        uses[cls] = args
        return original(cls, *args)

    def change(ctx, found):
        args = uses[ctx._forward_cls]
        if not _full(ctx, found):
            return found
        withheld = [a for a, g in zip(args, found, strict=True) if isinstance(a, torch.Tensor) and g is None]
        return tuple(None if plants.among(withheld, a) else g for a, g in zip(args, found, strict=True))

    return plants.all_of(plants.around_apply(apply), plants.gradients(change))


def _resets_what_gets_none(run, outputs, cotangents, inputs, accumulate):
    before = [(x, x.grad, x.grad._version) for x in plants.leaves_of(outputs) if x.grad is not None]
    found = run(outputs, cotangents, inputs)
    for x, grad, version in before:
        if x.grad is grad and grad._version == version:
            x.grad = None
    return found


def _densified(outputs, _):
    for x in plants.leaves_of(outputs):
        if x.grad is not None and x.grad.is_sparse:
            x.grad = x.grad.to_dense()


_UNALIASED = _tensors(lambda g, _: g.clone() if g._is_view() else g)
_KEPT = "grad is the caller's cotangent itself"

FAULTS = (
    fault(
        "GRAD-01",
        plants.cotangents(lambda _, given: (given,) if len(given) > 3 else given),
        "number of gradients that backward gets",
    ),
    fault(
        "GRAD-01: the gradients come in the wrong order",
        plants.cotangents(lambda _, given: given[::-1] if len(given) > 3 else given),
    ),
    fault("GRAD-02", plants.around_backward(_pads), "no error"),
    fault("GRAD-02: missing gradients that are not needed count as None", plants.gradients(_pads_what_is_not_needed)),
    fault("GRAD-02: a bare gradient is that of the first", plants.around_backward(_bare_is_the_first)),
    fault("GRAD-02: missing gradients are None under create_graph", plants.around_backward(plants.recorded(_pads))),
    fault("GRAD-03", _drops_extra(lambda _: True)),
    fault(
        "GRAD-03: extra tensors without elements are dropped",
        _drops_extra(lambda g: isinstance(g, torch.Tensor) and not g.numel()),
    ),
    fault("GRAD-03: extra values that are False are dropped", _drops_extra(lambda g: g is False)),
    fault("GRAD-04", plants.gradients(_drops_unneeded)),
    fault("GRAD-04: a zero counts as None", plants.gradients(_drops_zeros)),
    fault("GRAD-05", plants.around_backward(_checks_shapes), "wrong shape"),
    fault(
        "GRAD-05: its dtype is checked",
        plants.around_backward(_refusing(lambda g, _: not g.is_floating_point(), "dtype")),
    ),
    fault("GRAD-05: its shape is checked under create_graph", plants.around_backward(plants.recorded(_checks_shapes))),
    fault("GRAD-06: None empties .grad", plants.around_engine(_resets_what_gets_none)),
    fault("GRAD-06", _needed(lambda g, like: torch.zeros_like(like) if g is None else g), neighbours=("GRAD-16",)),
    fault("GRAD-07", plants.around_backward(_takes_lists)),
    fault(
        "GRAD-07: a list of one is taken as its gradient",
        plants.around_backward(
            plants.gives(lambda found: found[0] if isinstance(found, list) and len(found) == 1 else found)
        ),
    ),
    fault("GRAD-08", _needed(lambda g, like: torch.full_like(like, g) if isinstance(g, float) else g)),
    fault("GRAD-07: a list is taken under create_graph", plants.around_backward(plants.recorded(_takes_lists))),
    fault("GRAD-08: an array of the right shape is turned into a tensor", _needed(_of_arrays)),
    fault("GRAD-08: False counts as no gradient", _needed(lambda g, _: None if g is False else g)),
    fault("GRAD-09", _tensors(_first_slice)),
    fault("GRAD-09: only leading dimensions are summed", _tensors(_sums_leading_alone)),
    fault("GRAD-10", _tensors(_expanded)),
    fault("GRAD-10: a gradient of as many elements is reshaped", _tensors(_flattened)),
    fault("GRAD-11", _keeps_dtypes, "dtypes of the gradients"),
    fault("GRAD-11: a bool gradient is refused", _tensors(_refuses_bool)),
    fault("GRAD-12", _tensors(_real)),
    fault(
        "GRAD-12: a complex gradient without imaginary part passes",
        _tensors(lambda g, like: _real(g, like) if g.is_complex() and not g.imag.any() else g),
    ),
    fault("GRAD-13", _tensors(_moved)),
    fault(
        "GRAD-13: a gradient on another device counts as None",
        _tensors(lambda g, like: g if g.device == like.device else None),
    ),
    fault("GRAD-14", _after(_repeated_incremented, backward_only=False), "cotangents after the pass"),
    fault(
        "GRAD-14: cotangents of an output that is given twice are summed in place",
        _after(_repeated_summed, backward_only=False),
    ),
    fault(f"GRAD-14: {_KEPT}", _after(_kept_as_grad), neighbours=("GRAD-15",)),
    fault("GRAD-15", _shared_if(lambda _: True), "number of pairs"),
    fault(f"GRAD-15: {_KEPT}", _after(_kept_as_grad), neighbours=("GRAD-14",)),
    fault("GRAD-15: scalars that get the same share it", _shared_if(lambda x: not x.dim())),
    fault("GRAD-16", _detached_if(lambda _, later: later)),
    fault("GRAD-16: None for one use is None for all", _none_for_one_is_none_for_all, neighbours=("GRAD-06",)),
    fault("GRAD-16: a third use does not count", _detached_if(lambda earlier, _: earlier > 1)),
    fault("GRAD-17", _tensors(lambda g, _: g.to_dense() if g.is_sparse else g)),
    fault(
        "GRAD-17: a gradient with dense dimensions is made dense",
        _tensors(lambda g, _: g.to_dense() if g.is_sparse and g.dense_dim() else g),
    ),
    fault("GRAD-17: only grad gives sparse gradients", _after(_densified)),
)

FIXES = (Fix("GRAD-14", _UNALIASED, variant="views"), Fix("GRAD-15", _UNALIASED, variant="views"))
