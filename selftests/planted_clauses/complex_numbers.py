"""Faults of complex gradients."""

from __future__ import annotations

import torch

from autograd_conformance.selftests import plants
from autograd_conformance.selftests.planting import fault


def _knowing_inputs(change):
    """Each gradient is ``change(gradient, dtype of the input, whether a cotangent is complex)``."""

    def note(node, _, args, __):
        node.kinds = [x.dtype if isinstance(x, torch.Tensor) else None for x in args]

    def backward(original, ctx, *cotangents):
        found = plants.tupled(original(ctx, *cotangents))
        kinds = getattr(ctx, "kinds", [None] * len(found))
        crossed = any(c is not None and c.is_complex() for c in cotangents)
        pairs = zip(found, kinds, strict=True)
        return tuple(g if g is None or kind is None else change(g, kind, crossed) for g, kind in pairs)

    return lambda: plants.all_of(plants.noting_calls(note), plants.around_backward(backward))


def _real_part(g, dtype, _):
    return g.real if g.is_complex() and not dtype.is_complex else g


def _refused_unless_complex(g, dtype, _):
    if dtype.is_complex and not g.is_complex():
        raise RuntimeError("a real gradient for a complex input")
    return g


FAULTS = (
    fault(
        "CPLX-01",
        _knowing_inputs(lambda g, dtype, _: g.conj() if g.is_complex() and dtype.is_complex else g),
        neighbours=("CPLX-03",),
    ),
    fault(
        "CPLX-01: cotangents of complex outputs arrive conjugated",
        plants.each_cotangent(torch.conj),
        neighbours=("CPLX-02", "CPLX-03"),
    ),
    fault("CPLX-02", _knowing_inputs(_real_part)),
    fault(
        "CPLX-02: a complex gradient with real values is accepted",
        _knowing_inputs(lambda g, dtype, _: g if g.is_complex() and g.imag.any() else _real_part(g, dtype, _)),
    ),
    fault("CPLX-02: real gradients are refused", _knowing_inputs(_refused_unless_complex)),
    fault(
        "CPLX-03",
        _knowing_inputs(lambda g, dtype, crossed: g / 2 if dtype.is_complex and g.is_complex() and not crossed else g),
    ),
    fault(
        "CPLX-03: gradients from complex outputs to real inputs are doubled",
        _knowing_inputs(
            lambda g, dtype, crossed: g * 2 if crossed and not dtype.is_complex and not g.is_complex() else g
        ),
        neighbours=("CPLX-02",),
    ),
)
